//! An int8 vector, perturbed.

use super::IntegerNoise;
use crate::ops::integer::portable;
use crate::work::counters;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// `clip(θ + ⌊s·n₀·n₁ / 2^(4 + sigma shift)⌋)` for every member: [`Rounding::Floor`](super::Rounding::Floor).
///
/// Composed of ordinary operations on the device, for uses without a kernel: layers perturb their vectors inside their own
/// kernels.
///
/// # Shapes
///
/// - vector: `[n]`
/// - output: `[members, n]`, of the vector's type
///
/// # Panics
///
/// Panics if the noise is not for `n` elements.
///
/// # Example
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor};
/// use eggroll_core::PairRange;
/// use eggroll_core::ops::integer::{IntegerNoise, perturbed_vector};
///
/// let on = (&Device::flex(), DType::I8);
/// let factors = Tensor::<2, Int>::from_data([[16, 16, 3, -3]], on); // n₀ = [16, 16], n₁ = [3, −3]
/// let noise = IntegerNoise { noise: factors, first_pair: 0, rank: 0, sigma_shift: 0, pairs: PairRange::new(0, 1) };
/// let members = perturbed_vector(Tensor::from_data([100, 126], on), noise);
/// assert_eq!(members.into_data().try_to_vec::<i8>().unwrap(), [103, 123, 97, 127]);
/// ```
#[track_caller]
pub fn perturbed_vector(vector: Tensor<1, Int>, noise: IntegerNoise) -> Tensor<2, Int> {
    noise.check("integer vector", 2 * vector.dims()[0], noise.pairs.members());
    counters::add_launch();
    let members = noise.members();
    let (vector, noise) = (vector.into_dispatch(), noise.noise.into_dispatch());
    Tensor::from_dispatch(portable::perturbed_vector::<Dispatch>(vector, noise, members))
}
