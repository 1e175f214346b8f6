//! Noise as a tensor.

use super::checks::{check_range, len};
use super::source::{NoiseSource, baseline_mask, table_start};
use super::{PairRange, PerturbedOps};
use crate::rng::key::NoiseKey;
use crate::work::counters;
use crate::work::profile::{self, Component};
use burn::backend::Dispatch;
use burn::tensor::{DType, Device, Tensor, TensorData};

/// The first `elements` elements of the noise streams of `pairs`, in the distribution of `key`, as a tensor. For noise that is held and
/// used often ([`NoiseSource::Cached`]), and for tables.
///
/// For low-rank noise, `rank·(d_input + d_output)` elements: `B` as `[rank, d_input]`, then `A` as `[rank, d_output]`.
///
/// # Shapes
///
/// - output: `[pairs, elements]`
///
/// # Panics
///
/// Panics if the pairs end beyond the last one, 2³² − 1, or no memory holds so many elements.
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
#[track_caller]
pub fn noise(key: NoiseKey, pairs: PairRange, elements: usize, device: &Device, dtype: DType) -> Tensor<2> {
    check_range("noise", pairs);
    len("noise", &[pairs.count as usize, elements]);
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

impl NoiseSource {
    /// The noise of `pairs` under `key`, from any source, as a tensor: for operations without a kernel.
    ///
    /// # Shapes
    ///
    /// - output: `[pairs, elements]`
    ///
    /// # Panics
    ///
    /// Panics if the source does not hold it.
    #[track_caller]
    pub fn noise(
        &self,
        key: NoiseKey,
        pairs: PairRange,
        elements: usize,
        (device, dtype): (&Device, DType),
    ) -> Tensor<2> {
        self.check(pairs, elements);
        let held = match self {
            Self::Drawn => return noise(key, pairs, elements, device, dtype),
            Self::Cached { noise, first_pair } => {
                let first = (pairs.first - first_pair) as usize;
                noise.clone().slice_dim(0, first..first + pairs.count as usize)
            }
            Self::Table(table) => {
                let run = |pair| {
                    let start = table_start(key, pairs.first + pair, elements, table.dims()[0]);
                    table.clone().slice_dim(0, start..start + elements).unsqueeze::<2>()
                };
                Tensor::cat((0..pairs.count).map(run).collect(), 0)
            }
        };
        if !key.has_baselines() {
            return held;
        }
        let loud = TensorData::new(baseline_mask(key, pairs), [pairs.count as usize, 1]);
        held * Tensor::<2>::from_data(loud, (device, dtype))
    }
}
