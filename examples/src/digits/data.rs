//! MNIST files: IDX, plain or compressed by gzip, the format of the MNIST database and of its successors (Fashion-MNIST, KMNIST).

use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll::core::rng::philox::philox4x32;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The first bytes of a file that gzip has compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Classes of the data.
pub const CLASSES: usize = 10;

/// A file that cannot be used.
#[derive(thiserror::Error)]
#[error("{path}: {reason}")]
pub struct DataError {
    path: PathBuf,
    reason: String,
}

eggroll::core::debug_is_message!(DataError);

/// Images with labels, in host memory.
#[derive(Clone, Debug)]
pub struct Images {
    /// `[count, pixels]`, 0 to 255.
    pub pixels: Vec<u8>,
    /// `[count]`, 0 to 9.
    pub labels: Vec<u8>,
    /// Rows and columns of pixels of one image.
    pub shape: [usize; 2],
}

#[expect(clippy::len_without_is_empty, reason = "files without images are refused")]
impl Images {
    /// Reads `{name}-images-idx3-ubyte` and `{name}-labels-idx1-ubyte` in `folder`: with `.gz` behind it or without, also with a dot before
    /// `idx`. The first bytes of a file say whether it is compressed, not its name.
    ///
    /// # Errors
    ///
    /// [`DataError`] with the file, if it is absent, damaged, or not of images with labels.
    pub fn read(folder: &Path, name: &str) -> Result<Self, DataError> {
        let [images, labels] = ["images-idx3", "labels-idx1"].map(|kind| file_of(folder, name, kind));
        let (dims, pixels) = read_idx::<3>(&images)?;
        let ([count], values) = read_idx::<1>(&labels)?;
        let refuse = |reason: String| Err(DataError { path: labels.clone(), reason });
        if count != dims[0] {
            return refuse(format!("{count} labels for {} images", dims[0]));
        }
        if let Some(image) = values.iter().position(|label| usize::from(*label) >= CLASSES) {
            return refuse(format!("label {} of image {image} (from 0) is not below {CLASSES}", values[image]));
        }
        Ok(Self { pixels, labels: values, shape: [dims[1], dims[2]] })
    }

    /// Reads `{name}` as [`read`](Self::read) does: images of the same size as these.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and if the size is another.
    pub fn read_next(&self, folder: &Path, name: &str) -> Result<Self, DataError> {
        let next = Self::read(folder, name)?;
        match next.shape == self.shape {
            true => Ok(next),
            false => {
                let reason = format!("images of {:?} pixels, where others are {:?}", next.shape, self.shape);
                Err(DataError { path: file_of(folder, name, "images-idx3"), reason })
            }
        }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Pixels of one image.
    pub fn size(&self) -> usize {
        self.shape[0] * self.shape[1]
    }

    /// Splits off the last `count` images.
    pub fn split_off(&mut self, count: usize) -> Self {
        let kept = self.len() - count;
        let pixels = self.pixels.split_off(kept * self.size());
        Self { pixels, labels: self.labels.split_off(kept), shape: self.shape }
    }

    /// The images at a fraction of their height and width: means of squares of `side` pixels, rounded down. `side` must divide
    /// both.
    pub fn pooled(self, side: usize) -> Self {
        if side == 1 {
            return self;
        }
        let [rows, columns] = self.shape.map(|length| length / side);
        let mean = |image: &[u8], i: usize| {
            let corner = (i / columns * self.shape[1] + i % columns) * side;
            let row = |k: usize| &image[corner + k * self.shape[1]..][..side];
            let sum: usize = (0..side).flat_map(row).map(|pixel| usize::from(*pixel)).sum();
            (sum / (side * side)) as u8
        };
        let images = self.pixels.chunks_exact(self.size());
        let pixels = images.flat_map(|image| (0..rows * columns).map(move |i| mean(image, i))).collect();
        Self { pixels, labels: self.labels, shape: [rows, columns] }
    }

    /// The images of a mini-batch, each moved by its shift.
    pub fn select(&self, batch: &[Sample]) -> Self {
        let mut selected = Self { pixels: Vec::with_capacity(batch.len() * self.size()), labels: Vec::new(), ..*self };
        for sample in batch {
            self.push_shifted(sample, &mut selected.pixels);
            selected.labels.push(self.labels[sample.index as usize]);
        }
        selected
    }

    /// Appends one image, moved down and right; what comes in from outside is background.
    fn push_shifted(&self, sample: &Sample, out: &mut Vec<u8>) {
        let [height, width] = self.shape;
        let start = sample.index as usize * self.size();
        let image = &self.pixels[start..start + self.size()];
        let [down, right] = sample.shift;
        for row in 0..height as i32 {
            for column in 0..width as i32 {
                let (from_row, from_column) = (row - down, column - right);
                let inside = (0..height as i32).contains(&from_row) && (0..width as i32).contains(&from_column);
                out.push(if inside { image[from_row as usize * width + from_column as usize] } else { 0 });
            }
        }
    }

    /// What pixels are divided by to have unit standard deviation. They are not centered: the background stays 0, and noise
    /// in weights of pixels that are always background changes nothing.
    pub fn scale(&self) -> PixelScale {
        let n = self.pixels.len() as f64;
        let mean = self.pixels.iter().map(|pixel| f64::from(*pixel)).sum::<f64>() / n;
        let variance = self.pixels.iter().map(|pixel| (f64::from(*pixel) - mean).powi(2)).sum::<f64>() / n;
        PixelScale(variance.max(1e-6).sqrt() as f32)
    }
}

/// What pixels are divided by.
#[derive(Clone, Copy, Debug)]
pub struct PixelScale(f32);

impl PixelScale {
    /// Pixels to network input.
    pub fn apply(&self, pixels: &[u8]) -> Vec<f32> {
        pixels.iter().map(|pixel| f32::from(*pixel) / self.0).collect()
    }
}

/// Images on a device.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// `[count, pixels]`
    pub images: Tensor<2>,
    /// `[count]`
    pub labels: Tensor<1, Int>,
}

#[expect(clippy::len_without_is_empty, reason = "there are no empty ones")]
impl Dataset {
    /// Scales the images and moves them to a device.
    pub fn new(images: &Images, scale: PixelScale, device: &Device) -> Self {
        let (count, size) = (images.len(), images.size());
        let labels: Vec<i32> = images.labels.iter().map(|label| i32::from(*label)).collect();
        Self {
            images: Tensor::from_data(TensorData::new(scale.apply(&images.pixels), [count, size]), device),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
        }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.dims()[0]
    }
}

/// One image of a mini-batch.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Which image.
    pub index: u32,
    /// Pixels by which it is moved down and right.
    pub shift: [i32; 2],
}

/// Mini-batches by generation: a pure function of the seed, so that a resumed run sees the same batches.
pub struct Batches {
    seed: u64,
    batch: usize,
    max_shift: u32,
    epoch: u64,
    order: Vec<u32>,
}

impl Batches {
    /// Batches of `batch` out of `count` images, every image once in an epoch; what does not fill a batch is left out. Images
    /// are moved by up to `max_shift` pixels either way, at random.
    pub fn new(seed: u64, count: usize, batch: usize, max_shift: u32) -> Self {
        Self { seed, batch, max_shift, epoch: u64::MAX, order: (0..count as u32).collect() }
    }

    /// The batch of a generation.
    pub fn samples(&mut self, generation: u64) -> Vec<Sample> {
        let batches = (self.order.len() / self.batch) as u64;
        let (epoch, index) = (generation / batches, (generation % batches) as usize);
        if epoch != self.epoch {
            self.shuffle(epoch);
        }
        let rows = &self.order[index * self.batch..(index + 1) * self.batch];
        rows.iter().map(|index| Sample { index: *index, shift: self.shift(*index) }).collect()
    }

    fn shift(&self, index: u32) -> [i32; 2] {
        let words = self.words(index, u32::MAX - 1);
        let choices = u64::from(2 * self.max_shift + 1);
        [words[0], words[1]].map(|word| ((u64::from(word) * choices) >> 32) as i32 - self.max_shift as i32)
    }

    /// Fisher and Yates.
    fn shuffle(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.order.sort_unstable();
        for i in (1..self.order.len()).rev() {
            let word = self.words(i as u32, u32::MAX)[0];
            let j = (u64::from(word) * (i as u64 + 1)) >> 32;
            self.order.swap(i, j as usize);
        }
    }

    /// Random words addressed by seed, epoch and what they are for.
    fn words(&self, index: u32, purpose: u32) -> [u32; 4] {
        let counter = [index, self.epoch as u32, (self.epoch >> 32) as u32, purpose];
        philox4x32(counter, [self.seed as u32, (self.seed >> 32) as u32])
    }
}

/// The file of a kind, `images-idx3` for one; where there is none, the name that it usually has.
fn file_of(folder: &Path, name: &str, kind: &str) -> PathBuf {
    let with_dot = kind.replace("-idx", ".idx");
    let names = [kind, &with_dot].map(|kind| [".gz", ""].map(|end| folder.join(format!("{name}-{kind}-ubyte{end}"))));
    let [usual, ..] = &names[0];
    names.iter().flatten().find(|path| path.exists()).unwrap_or(usual).clone()
}

/// Reads an IDX file of unsigned bytes with `D` dimensions, compressed by gzip or not.
fn read_idx<const D: usize>(path: &Path) -> Result<([usize; D], Vec<u8>), DataError> {
    let refuse = |reason: String| DataError { path: path.to_owned(), reason };
    let mut file = BufReader::new(File::open(path).map_err(|error| refuse(error.to_string()))?);
    let compressed = file.fill_buf().map_err(|error| refuse(error.to_string()))?.starts_with(&GZIP);
    // Several gzip members are one file, as when files were appended to each other.
    let mut reader: Box<dyn Read> = if compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut header = |what: &str| -> Result<u32, DataError> {
        let mut word = [0; 4];
        reader.read_exact(&mut word).map_err(|error| refuse(format!("cannot read {what}: {}", explain(&error))))?;
        Ok(u32::from_be_bytes(word))
    };
    let magic = header("the magic number")?;
    let expected = 0x0800 + D as u32;
    if magic != expected {
        let neither = if compressed || magic >> 16 == 0 && magic > 0xff { "" } else { ": neither IDX nor gzip" };
        let expected = format!("expected {expected:#06x} (bytes, {D} dimensions)");
        return Err(refuse(format!("magic number {magic:#06x}, {expected}{neither}")));
    }
    let mut dims = [0; D];
    for dim in &mut dims {
        *dim = header("the dimensions")? as usize;
    }
    let total = dims
        .iter()
        .try_fold(1usize, |total, dim| total.checked_mul(*dim))
        .filter(|total| *total > 0 && *total <= 1 << 32);
    let total = total.ok_or_else(|| refuse(format!("dimensions {dims:?} are empty or too large")))?;
    let mut values = Vec::new();
    // One byte more than expected tells a file that is too long.
    reader
        .take(total as u64 + 1)
        .read_to_end(&mut values)
        .map_err(|error| refuse(format!("cannot read the data after {} bytes: {}", values.len(), explain(&error))))?;
    if values.len() != total {
        let found = if values.len() > total { "more".to_owned() } else { values.len().to_string() };
        return Err(refuse(format!("{found} bytes of data, expected {total} for dimensions {dims:?}")));
    }
    Ok((dims, values))
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file is truncated".to_owned(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => format!("the file is corrupt ({error})"),
        _ => error.to_string(),
    }
}
