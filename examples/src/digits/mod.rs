//! MNIST: its files, mini-batches of it, and a perceptron that reads digits.

mod data;
mod model;

pub use data::{Batches, CLASSES, DataError, Dataset, Images, PixelScale, Sample};
pub use model::{DigitsMlp, accuracy};
