//! Noise as a tensor.

use super::{PairRange, PerturbedOps};
use crate::counters;
use crate::key::NoiseKey;
use crate::profile::{self, Component};
use burn::backend::Dispatch;
use burn::tensor::{DType, Device, Tensor};

/// The first `elements` elements of the noise streams of `pairs`, in the distribution of `key`, as a tensor: to be held, and used often
/// ([`NoiseSource::Cached`](super::NoiseSource::Cached)), or to be read as a table.
///
/// For low-rank noise, `rank·(d_input + d_output)` elements: `B` as `[rank, d_input]`, then `A` as `[rank, d_output]`.
///
/// # Shapes
///
/// - output: `[pairs, elements]`
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device};
/// use eggroll_core::{NoiseKey, ops::{PairRange, noise}, rng::fill_noise};
///
/// let key = NoiseKey::new(3, 0, 1);
/// let noise = noise(key, PairRange::new(5, 2), 10, &Device::flex(), DType::F32);
/// let mut expected = [0.0; 10];
/// fill_noise(key, 6, 0, &mut expected);
/// assert_eq!(noise.slice(1..2).into_data().try_to_vec::<f32>().unwrap(), expected);
/// ```
pub fn noise(key: NoiseKey, pairs: PairRange, elements: usize, device: &Device, dtype: DType) -> Tensor<2> {
    // The bytes are counted where they are drawn.
    let span = profile::span(Component::Noise, 0);
    counters::add_launch();
    counters::add_noise_bytes(pairs.count as usize * elements * dtype.size());
    // A tensor routes the operation to its device.
    let like = Tensor::<1>::empty([1], (device, dtype)).into_dispatch();
    let noise = Tensor::from_dispatch(Dispatch::noise(like, key, pairs, elements));
    span.end_waiting(|| drop(device.sync()));
    noise
}
