//! int8 noise as a tensor, made once for a noise epoch.

use super::{IntegerOps, integer_type, traced};
use crate::ops::checks::{check_range, len};
use crate::rng::integer::table_index;
use crate::rng::key::{NoiseKey, PairRange};
use crate::work::counters;
use crate::work::profile::Component;
use burn::backend::Dispatch;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// The first `elements` elements of the integer streams of `pairs` ([`crate::rng::integer`]); only the key is stored.
///
/// # Shapes
///
/// - output: `[pairs, elements]`, of the device's [`integer_type`]
///
/// # Example
///
/// ```
/// use burn::tensor::Device;
/// use eggroll_core::{NoiseKey, PairRange, ops::integer::noise, rng::integer::fill_integers};
///
/// let key = NoiseKey::new(3, 0, 1);
/// let mut expected = [0; 10];
/// fill_integers(key, 6, &mut expected);
/// let noise = noise(key, PairRange::new(5, 2), 10, &Device::flex());
/// assert_eq!(noise.slice(1..2).into_data().try_to_vec::<i8>().unwrap(), expected);
/// ```
pub fn noise(key: NoiseKey, pairs: PairRange, elements: usize, device: &Device) -> Tensor<2, Int> {
    check_range("integer noise", pairs);
    len("integer noise", &[pairs.count as usize, elements]);
    let dtype = integer_type(device);
    counters::add_launch();
    counters::add_noise_bytes(pairs.count as usize * elements * dtype.size());
    traced(Component::Noise, || {
        // A tensor routes the operation to its device.
        let like = Tensor::<1, Int>::empty([1], (device, dtype)).into_dispatch();
        Tensor::from_dispatch(Dispatch::integer_noise(like, key, pairs, elements))
    })
}

/// The noise of `pairs` as runs of a table: element `e` of pair `q` is `table[(i_q mod runs) + e]`,
/// `runs = len − elements + 1`, `i_q` as in [`table_index`].
///
/// # Shapes
///
/// - output: `[pairs, elements]`, of the device's [`integer_type`]
///
/// # Panics
///
/// Panics if the table is shorter than `elements`.
#[track_caller]
pub fn table_noise(table: &[i8], key: NoiseKey, pairs: PairRange, elements: usize, device: &Device) -> Tensor<2, Int> {
    assert!(elements <= table.len(), "a noise table of {} has no run of {elements} elements", table.len());
    check_range("integer noise", pairs);
    len("integer noise", &[pairs.count as usize, elements]);
    let dtype = integer_type(device);
    counters::add_noise_bytes(pairs.count as usize * elements * dtype.size());
    let runs = table.len() - elements + 1;
    let run = |pair| {
        let start = table_index(key, pair) as usize % runs;
        table[start..start + elements].iter().copied()
    };
    traced(Component::Noise, || {
        let values: Vec<i8> = (0..pairs.count).flat_map(|p| run(pairs.first + p)).collect();
        Tensor::from_data(TensorData::new(values, [pairs.count as usize, elements]), (device, dtype))
    })
}
