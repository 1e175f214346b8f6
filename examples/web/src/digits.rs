//! Images of digits with their labels.

use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll::core::rng::philox::philox4x32;

/// Rows and columns of pixels.
pub(crate) const SIDE: usize = 28;
/// Pixels of an image.
pub(crate) const PIXELS: usize = SIDE * SIDE;
/// What pixels are divided by: their standard deviation in MNIST.
const SCALE: f32 = 78.6;
/// Pixels by which images of a mini-batch are moved at most.
const SHIFT: u64 = 1;

/// A file of digits that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the digits have {found} bytes; {expected} were expected")]
pub struct DigitsError {
    found: usize,
    expected: u64,
}

/// Images of 28 × 28 pixels, and which digits they are.
pub struct Digits {
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl Digits {
    /// Reads digits to learn from and digits to test with: their two counts, 32 bits each, then pixels and labels of the first and of the second.
    ///
    /// # Errors
    ///
    /// [`DigitsError`] if the length does not fit the counts.
    pub fn read(file: &[u8]) -> Result<[Self; 2], DigitsError> {
        let count =
            |at: usize| file.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        let counts = [count(0), count(4)];
        let expected = 8 + counts.map(|count| u64::from(count) * (PIXELS as u64 + 1)).iter().sum::<u64>();
        if counts.contains(&0) || expected != file.len() as u64 {
            return Err(DigitsError { found: file.len(), expected });
        }
        let mut rest = &file[8..];
        Ok(counts.map(|count| {
            let (pixels, after) = rest.split_at(count as usize * PIXELS);
            let (labels, after) = after.split_at(count as usize);
            rest = after;
            Self { pixels: pixels.to_vec(), labels: labels.to_vec() }
        }))
    }

    /// All images, `[count, 784]`, and labels, `[count]`.
    pub(crate) fn all(&self, device: &Device) -> (Tensor<2>, Tensor<1, Int>) {
        (images(&self.pixels, device), labels(self.labels.iter(), device))
    }

    /// The mini-batch of a generation: digits drawn at random, moved by a pixel at most.
    pub(crate) fn batch(&self, size: usize, generation: u64, device: &Device) -> (Tensor<2>, Tensor<1, Int>) {
        let mut pixels = vec![0; size * PIXELS];
        let mut drawn = Vec::with_capacity(size);
        for (i, to) in pixels.chunks_exact_mut(PIXELS).enumerate() {
            let words = philox4x32([i as u32, generation as u32, (generation >> 32) as u32, 0], [0, 0]);
            let below = |word: u32, count: u64| ((u64::from(word) * count) >> 32) as usize;
            let index = below(words[0], self.labels.len() as u64);
            let image = &self.pixels[index * PIXELS..][..PIXELS];
            moved(image, [words[1], words[2]].map(|word| below(word, 2 * SHIFT + 1) as isize - SHIFT as isize), to);
            drawn.push(&self.labels[index]);
        }
        (images(&pixels, device), labels(drawn.into_iter(), device))
    }
}

/// Copies an image, moved down and right, onto an empty one.
fn moved(image: &[u8], [down, right]: [isize; 2], to: &mut [u8]) {
    let source = |at: usize, by: isize| at.checked_add_signed(-by).filter(|at| *at < SIDE);
    for row in 0..SIDE {
        for column in 0..SIDE {
            if let (Some(from_row), Some(from_column)) = (source(row, down), source(column, right)) {
                to[row * SIDE + column] = image[from_row * SIDE + from_column];
            }
        }
    }
}

/// `[count, 784]`
pub(crate) fn images(pixels: &[u8], device: &Device) -> Tensor<2> {
    let values: Vec<f32> = pixels.iter().map(|pixel| f32::from(*pixel) / SCALE).collect();
    Tensor::from_data(TensorData::new(values, [pixels.len() / PIXELS, PIXELS]), device)
}

fn labels<'a>(labels: impl Iterator<Item = &'a u8>, device: &Device) -> Tensor<1, Int> {
    let labels: Vec<i32> = labels.map(|label| i32::from(*label)).collect();
    let count = labels.len();
    Tensor::from_data(TensorData::new(labels, [count]), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_a_short_one_refused() {
        let mut file = [2u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
        file.extend([7; 2 * PIXELS]);
        file.extend([1, 2]);
        file.extend([9; PIXELS]);
        file.push(3);
        let [train, test] = Digits::read(&file).expect("whole");
        assert_eq!((train.labels, test.labels), (vec![1, 2], vec![3]));
        assert!(train.pixels.iter().all(|pixel| *pixel == 7) && test.pixels == [9; PIXELS]);
        file.pop();
        assert!(Digits::read(&file).is_err() && Digits::read(&[1]).is_err());
    }

    #[test]
    fn images_are_moved_down_and_right() {
        let mut image = [0; PIXELS];
        image[5 * SIDE + 27] = 1;
        image[6 * SIDE + 3] = 2;
        let mut to = [0; PIXELS];
        moved(&image, [1, 1], &mut to);
        // The pixel at the edge is gone, and not in the next row.
        let found: Vec<_> = to.iter().enumerate().filter(|(_, pixel)| **pixel > 0).collect();
        assert_eq!(found, [(7 * SIDE + 4, &2)]);
    }
}
