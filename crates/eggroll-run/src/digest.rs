//! Hashes: of all parameters (equal models, equal digests), and of data.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, TensorData};
use eggroll_core::paths::{ModulePath, PathVisitor, visit_with_paths};
use sha2::{Digest, Sha256};

/// SHA-256 over path, shape, type and little-endian values of every parameter in traversal order, as hexadecimal digits.
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_nn::LinearConfig;
/// use eggroll_run::parameter_digest;
///
/// let layer = LinearConfig::new(3, 2).init(&Device::flex());
/// assert_eq!(parameter_digest(&layer), parameter_digest(&layer.clone()));
/// assert_eq!(parameter_digest(&layer).len(), 64);
/// ```
pub fn parameter_digest<M: Module>(model: &M) -> String {
    digest(model, true)
}

/// [`parameter_digest`] without the width of integers, which depends on the device: equal integer models have equal digests on all
/// devices.
pub fn portable_digest<M: Module>(model: &M) -> String {
    digest(model, false)
}

/// SHA-256 over the lengths and the bytes of all parts of some data, as hexadecimal digits. A run detects different data by it.
///
/// # Example
///
/// ```
/// use eggroll_run::data_digest;
///
/// let (images, labels) = ([0, 255, 17], [3, 7]);
/// assert_ne!(data_digest([&images[..], &labels[..]]), data_digest([&images[..2], &labels[..]]));
/// ```
pub fn data_digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

fn digest<M: Module>(model: &M, widths: bool) -> String {
    let mut hasher = Hasher { widths, state: Sha256::new() };
    visit_with_paths(model, &mut hasher);
    hex(&hasher.state.finalize())
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of a file's bytes, as `sha256sum` prints it.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

struct Hasher {
    /// Whether the width of integers counts.
    widths: bool,
    state: Sha256,
}

impl Hasher {
    fn add(&mut self, path: &ModulePath, data: TensorData) {
        let header = format!("{path}{:?}{:?}", data.shape(), data.dtype());
        self.state.update(header);
        self.state.update(data.as_bytes());
    }
}

impl PathVisitor for Hasher {
    fn visit_float<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D>>) {
        self.add(path, param.val().into_data());
    }

    fn visit_int<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D, Int>>) {
        let data = param.val().into_data();
        self.add(path, if self.widths { data } else { data.convert::<i64>() });
    }
}
