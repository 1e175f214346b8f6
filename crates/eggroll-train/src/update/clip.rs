//! Clipping of a whole gradient: the direction stays.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor};
use std::collections::HashSet;

/// Scales the gradients of `model` down to `g·min(1, longest/|g|)`, `|g|` the Euclidean norm over all parameters together. Burn clips each
/// parameter's gradient by itself, which changes the direction of the whole.
///
/// Computed in f32 on the gradients' devices; nothing is read to the host.
///
/// # Example
///
/// ```
/// use burn::module::Param;
/// use burn::optim::GradientsParams;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_train::clip_norm;
///
/// let model = Param::from_tensor(Tensor::<1>::zeros([2], &Device::flex()));
/// let mut gradients = GradientsParams::new();
/// gradients.register(model.id, Tensor::<1>::from_floats([3.0, 4.0], &Device::flex()));
/// let clipped = clip_norm(&model, gradients, 1.0).get::<1>(model.id).unwrap();
/// let length: f32 = clipped.square().sum().sqrt().into_scalar();
/// assert!((length - 1.0).abs() < 1e-6);
/// ```
///
/// # References
///
/// Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", arXiv 1211.5063, Algorithm 1.
pub fn clip_norm<M: Module>(model: &M, gradients: GradientsParams, longest: f64) -> GradientsParams {
    let mut squares = Squares { gradients: &gradients, seen: HashSet::new(), sum: None };
    model.visit(&mut squares);
    let Some((device, sum)) = squares.sum else {
        return gradients;
    };
    let norm = sum.sqrt().clamp_min(f32::MIN_POSITIVE);
    let factor = norm.clone().clamp_max(longest) / norm; // exactly 1 where nothing is clipped
    let mut scale = ClipScale { gradients, clipped: GradientsParams::new(), factor: (device, factor) };
    model.visit(&mut scale);
    scale.clipped
}

/// Sums up squares.
struct Squares<'a> {
    gradients: &'a GradientsParams,
    /// A tied parameter is visited more than once.
    seen: HashSet<ParamId>,
    sum: Option<(Device, Tensor<1>)>,
}

impl ModuleVisitor for Squares<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id).filter(|_| self.seen.insert(param.id)) else {
            return;
        };
        let device = gradient.device();
        let square = gradient.cast(DType::F32).square().sum(); // [1]
        self.sum = Some(match self.sum.take() {
            None => (device, square),
            Some((first, sum)) => {
                let sum = sum + square.to_device(&first);
                (first, sum)
            }
        });
    }
}

/// Moves gradients over, scaled.
struct ClipScale {
    gradients: GradientsParams,
    clipped: GradientsParams,
    factor: (Device, Tensor<1>),
}

impl ModuleVisitor for ClipScale {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else {
            return;
        };
        let (device, dtype) = (gradient.device(), gradient.dtype());
        let factor = self.factor.1.clone();
        let factor = if device == self.factor.0 { factor } else { factor.to_device(&device) };
        let clipped = gradient.cast(DType::F32) * factor.reshape([1; D]);
        self.clipped.register(param.id, clipped.cast(dtype));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eggroll_nn::{Linear, LinearConfig};

    fn gradients(layer: &Linear, size: f32) -> GradientsParams {
        let mut gradients = GradientsParams::new();
        gradients
            .register(layer.weight.id, Tensor::<2>::from_floats([[size, 0.0], [0.0, -2.0 * size]], &Device::flex()));
        let bias = layer.bias.as_ref().expect("a bias");
        gradients.register(bias.id, Tensor::<1>::from_floats([0.0, 2.0 * size], &Device::flex()));
        gradients
    }

    /// Of norm 3·size: over weight and bias together, in the same direction; exactly as it was if it is short enough.
    #[test]
    fn clips_the_whole() {
        let layer = LinearConfig::new(2, 2).init(&Device::flex());
        let values = |gradients: GradientsParams| {
            let weight = gradients.get::<2>(layer.weight.id).expect("a gradient").into_data().try_to_vec::<f32>();
            let bias = gradients.get::<1>(layer.bias.as_ref().expect("a bias").id).expect("a gradient");
            [weight.expect("f32"), bias.into_data().try_to_vec().expect("f32")].concat()
        };
        for (size, longest) in [(5.0, 3.0), (1e-3, 1.5e-3), (1e12, 0.3)] {
            let found = values(clip_norm(&layer, gradients(&layer, size), longest));
            let unit = [1.0, 0.0, 0.0, -2.0, 0.0, 2.0].map(|value| value / 3.0 * longest as f32);
            assert!(found.iter().zip(unit).all(|(f, e)| (f - e).abs() <= 1e-6 * longest as f32), "{found:?} {unit:?}");
        }
        for (size, longest) in [(5.0, 15.5), (0.0, 1.0), (0.05, 0.2)] {
            assert_eq!(values(clip_norm(&layer, gradients(&layer, size), longest)), values(gradients(&layer, size)));
        }
        assert!(clip_norm(&layer, GradientsParams::new(), 1.0).is_empty());
    }
}
