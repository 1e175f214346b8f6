//! Models of PyTorch as Burn code, and the digits that they read. `models.py` has made them.

use burn::tensor::{Device, Distribution, Int, Tensor, TensorData};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

macro_rules! imported {
    ($($name:ident)*) => {
        $(
            #[allow(missing_docs, clippy::all, reason = "burn-onnx wrote it")]
            pub mod $name {
                include!(concat!(env!("OUT_DIR"), "/models/", stringify!($name), ".rs"));
            }
        )*
    };
}

imported! { perceptron convolutional transformer recurrent blank_token sequence_first batch_statistics }

/// Images with labels.
pub struct Digits {
    /// `[images, 784]`, from 0 to 1.
    pub images: Tensor<2>,
    /// `[images]`
    pub labels: Tensor<1, Int>,
}

impl Digits {
    /// A part of the repository's MNIST files.
    ///
    /// # Errors
    ///
    /// The file's error.
    pub fn read(name: &str, part: Range<usize>, device: &Device) -> io::Result<Self> {
        let pixels = bytes(&format!("{name}-images-idx3"), 16)?;
        let labels = bytes(&format!("{name}-labels-idx1"), 8)?;
        let pixels: Vec<f32> =
            pixels[part.start * 784..part.end * 784].iter().map(|pixel| f32::from(*pixel) / 255.0).collect();
        let labels: Vec<i32> = labels[part.clone()].iter().map(|label| i32::from(*label)).collect();
        Ok(Self {
            images: Tensor::from_data(TensorData::new(pixels, [part.len(), 784]), device),
            labels: Tensor::from_data(TensorData::new(labels, [part.len()]), device),
        })
    }

    /// `count` images at random, by the device's generator.
    pub fn sample(&self, count: usize) -> Self {
        let range = Distribution::Uniform(0.0, self.labels.dims()[0] as f64);
        let chosen = Tensor::<1, Int>::random([count], range, &self.images.device());
        Self { images: self.images.clone().select(0, chosen.clone()), labels: self.labels.clone().select(0, chosen) }
    }

    /// Share of the images, in percent, whose largest logit is the label's.
    pub fn accuracy(&self, logits: Tensor<2>) -> f32 {
        let hits = logits.argmax(1).squeeze_dim::<1>(1).equal(self.labels.clone());
        hits.float().mean().into_scalar::<f32>() * 100.0
    }
}

/// What follows the header of a file.
fn bytes(name: &str, header: usize) -> io::Result<Vec<u8>> {
    let file = File::open(format!("{}/../../data/mnist/{name}-ubyte.gz", env!("CARGO_MANIFEST_DIR")))?;
    let mut bytes = Vec::new();
    MultiGzDecoder::new(file).read_to_end(&mut bytes)?;
    Ok(bytes.split_off(header))
}
