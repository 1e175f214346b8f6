//! The angle between two gradients.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use std::collections::HashSet;

/// Cosine of the angle between two gradients of a model, `⟨a, b⟩ / (|a|·|b|)`, over all float parameters that both have. An
/// example is an estimated [`gradient`](crate::EvolutionStrategy::gradient) and one by backpropagation. `None` if they have
/// no parameter in common or one of them is 0.
///
/// # What to expect
///
/// Where the fitness is linear at the scale of σ, pair `q` contributes `x_q = E_q·⟨E_q, g⟩`, whose mean is the gradient `g`. The
/// mean of `P` pairs has the squared length `E|ĝ|² = |g|²·(1 + d/P)` with `d = E|x|²/|g|² − 1`, so that
///
/// `cos ≈ 1 / √(1 + d/P)`.
///
/// For normal noise, over all parameters `j` with `n_j` values and shares `w_j = |g_j|²/|g|²` of the gradient,
///
/// `d = 1 + Σ_j n_j + Σ_j w_j·c_j`, `c_j = 0` for dense noise, `c_j = 2·(d_input + d_output + 1)/r` for rank `r`:
///
/// a low rank costs little more than dense noise, as `c_j` is small next to `n_j = d_input·d_output`. `d/99` pairs give a cosine of 0.1,
/// `d` pairs 0.71.
///
/// # Panics
///
/// Panics if a parameter's two gradients differ in shape, and names both shapes.
///
/// # Example
///
/// ```
/// use burn::module::Param;
/// use burn::optim::GradientsParams;
/// use burn::tensor::{Device, Tensor};
/// use eggroll_train::gradient_cosine;
///
/// let model = Param::from_tensor(Tensor::<1>::zeros([2], &Device::flex()));
/// let gradient = |values: [f32; 2]| {
///     let mut gradient = GradientsParams::new();
///     gradient.register(model.id, Tensor::<1>::from_floats(values, &Device::flex()));
///     gradient
/// };
/// let cosine = gradient_cosine(&model, &gradient([3.0, 0.0]), &gradient([1.0, 1.0])).unwrap();
/// assert!((cosine - 0.5f64.sqrt()).abs() < 1e-6);
/// assert_eq!(gradient_cosine(&model, &gradient([0.0, 0.0]), &gradient([1.0, 1.0])), None);
/// ```
#[track_caller]
pub fn gradient_cosine<M: Module>(model: &M, a: &GradientsParams, b: &GradientsParams) -> Option<f64> {
    let mut sums = CosineSums { a, b, seen: HashSet::new(), products: 0.0, squares: [0.0; 2] };
    model.visit(&mut sums);
    let lengths = (sums.squares[0] * sums.squares[1]).sqrt();
    (lengths > 0.0).then(|| sums.products / lengths)
}

struct CosineSums<'a> {
    a: &'a GradientsParams,
    b: &'a GradientsParams,
    /// A tied parameter is visited more than once.
    seen: HashSet<ParamId>,
    products: f64,
    squares: [f64; 2],
}

impl ModuleVisitor for CosineSums<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let (Some(a), Some(b)) = (self.a.get::<D>(param.id), self.b.get::<D>(param.id)) else {
            return;
        };
        if !self.seen.insert(param.id) {
            return;
        }
        assert!(a.dims() == b.dims(), "cosine of gradients: {:?} and {:?} for the same parameter", a.dims(), b.dims());
        let [a, b] = [a, b].map(|gradient| gradient.into_data());
        for (a, b) in a.iter::<f64>().zip(b.iter::<f64>()) {
            self.products += a * b;
            self.squares[0] += a * a;
            self.squares[1] += b * b;
        }
    }
}
