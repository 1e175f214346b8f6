//! A drawing as the images of MNIST are: the digit fills a box of 20 × 20 pixels, and its center of mass is in the middle.

use crate::digits::{PIXELS, SIDE};

/// Pixels of the longer side of a digit.
const BOX: f32 = 20.0;
/// Points along each side of a pixel whose ink is averaged.
const POINTS: usize = 4;

/// The image of a drawing: `ink` has `width` columns, 255 where there is ink. An empty drawing is an empty image.
///
/// # Panics
///
/// Panics if `ink` is not made of whole rows.
pub fn centered(ink: &[u8], width: usize) -> [u8; PIXELS] {
    assert!(width > 0 && ink.len().is_multiple_of(width), "{} values are not rows of {width}", ink.len());
    let mut image = [0; PIXELS];
    let dark: Vec<[f32; 3]> = (0..ink.len())
        .filter(|at| ink[*at] > 0)
        .map(|at| [(at / width) as f32 + 0.5, (at % width) as f32 + 0.5, f32::from(ink[at])])
        .collect(); // row, column, ink
    if dark.is_empty() {
        return image;
    }
    let total: f32 = dark.iter().map(|point| point[2]).sum();
    let [row, column] = [0, 1].map(|axis| dark.iter().map(|point| point[axis] * point[2]).sum::<f32>() / total);
    let [height, breadth] = [0, 1].map(|axis| {
        let ends = dark.iter().map(|point| point[axis]);
        ends.clone().fold(0.0, f32::max) - ends.fold(f32::MAX, f32::min) + 1.0
    });
    let step = height.max(breadth) / BOX; // pixels of the drawing for one of the image
    let at = |row: f32, column: f32| {
        let (row, column) = (row.floor(), column.floor());
        let inside = row >= 0.0 && column >= 0.0 && (column as usize) < width;
        if inside { ink.get(row as usize * width + column as usize).copied().unwrap_or(0) } else { 0 }
    };
    let middle = SIDE as f32 / 2.0;
    for (i, pixel) in image.iter_mut().enumerate() {
        let [top, left] = [(i / SIDE) as f32, (i % SIDE) as f32];
        let mut sum = 0;
        for point in 0..POINTS * POINTS {
            let inner = |k: usize| (k as f32 + 0.5) / POINTS as f32;
            let down = top + inner(point / POINTS) - middle;
            let right = left + inner(point % POINTS) - middle;
            sum += usize::from(at(row + down * step, column + right * step));
        }
        *pixel = (sum / (POINTS * POINTS)) as u8;
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows and columns from the first with ink to the last.
    fn extent(image: &[u8; PIXELS]) -> [usize; 4] {
        let of = |axis: fn(usize) -> usize| {
            let dark = (0..PIXELS).filter(|at| image[*at] > 127).map(axis);
            [dark.clone().min().expect("ink"), dark.max().expect("ink")]
        };
        [of(|at| at / SIDE), of(|at| at % SIDE)].concat().try_into().expect("four")
    }

    /// Wherever and however large a bar is drawn, its image is the same.
    #[test]
    fn a_bar_fills_the_box_in_the_middle() {
        for (top, left, scale) in [(0, 0, 1), (50, 150, 1), (20, 10, 3)] {
            let mut ink = vec![0; 280 * 280];
            for row in top..top + 40 * scale {
                ink[row * 280 + left..][..8 * scale].fill(255);
            }
            assert_eq!(extent(&centered(&ink, 280)), [4, 23, 12, 15], "{top}, {left}, {scale}");
        }
        assert_eq!(centered(&[0; 100], 10), [0; PIXELS]);
    }
}
