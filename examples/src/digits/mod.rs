//! MNIST: its files, mini-batches of it, and a perceptron that reads digits.

mod data;
mod model;

pub use data::{Batches, CLASSES, DataError, Dataset, Images, Sample, Scale};
pub use model::{Mlp, accuracy};
