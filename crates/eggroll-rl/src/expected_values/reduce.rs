//! From the values of actions in worlds to their expectation, on the device.

use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{Bool, Int, Tensor};

/// The logit of an illegal action: no number that an oracle gives comes near, and f32 holds its difference to any
/// other.
const ILLEGAL: f32 = -1e30;

/// The logarithm of each world's likelihood: `Σ_t log π(a_t)`, `π = softmax(Q/τ)` over the legal actions.
///
/// # Shapes
///
/// - values, legal: `[moves, actions]`; actions: `[moves]`
/// - index: `[worlds of all games, most]`, `moves` for none
/// - output: `[worlds of all games]`
pub fn log_likelihood(
    values: Tensor<2>,
    legal: Tensor<2, Bool>,
    moves: Tensor<1, Int>,
    index: Tensor<2, Int>,
    temperature: f64,
) -> Tensor<1> {
    let logits = (values / temperature).mask_fill(legal.bool_not(), ILLEGAL);
    let chosen = log_softmax(logits, 1).gather(1, moves.unsqueeze_dim(1)).squeeze_dim::<1>(1); // [moves]
    let nobody = chosen.clone().narrow(0, 0, 1).zeros_like();
    let shape = index.dims();
    let each = Tensor::cat(vec![chosen, nobody], 0).select(0, index.flatten(0, 1)); // [worlds · most]
    each.reshape(shape).sum_dim(1).squeeze_dim(1)
}

/// Weights of worlds that add up to 1 in every game: equal ones, or by the logarithm of likelihoods, less its maximum.
///
/// # Shapes
///
/// - log_likelihood: `[games · worlds]`
/// - output: `[games, worlds]`
pub fn weights(log_likelihood: Tensor<1>, [games, worlds]: [usize; 2]) -> Tensor<2> {
    softmax(log_likelihood.reshape([games, worlds]), 1)
}

/// Expected values, squares of standard errors without `W/(W − 1)`, whether an action is legal in all worlds, and the
/// effective sample size.
///
/// # Shapes
///
/// - values, legal: `[games · worlds, actions]`; weights: `[games, worlds]`
/// - output: `[games, 3 · actions + 1]`
pub fn expectation(values: Tensor<2>, legal: Tensor<2, Bool>, weights: Tensor<2>) -> Tensor<2> {
    let ([games, worlds], [_, actions]) = (weights.dims(), values.dims());
    let values = values.mask_fill(legal.clone().bool_not(), 0.0).reshape([games, worlds, actions]);
    let legal = legal.float().reshape([games, worlds, actions]).min_dim(1).squeeze_dim::<2>(1); // [games, actions]
    let squares = weights.clone().square();
    let effective = squares.clone().sum_dim(1).recip(); // [games, 1]
    let expected = (values.clone() * weights.unsqueeze_dim(2)).sum_dim(1); // [games, 1, actions]
    let spread = ((values - expected.clone()).square() * squares.unsqueeze_dim(2)).sum_dim(1);
    Tensor::cat(vec![expected.squeeze_dim(1), spread.squeeze_dim(1), legal, effective], 1)
}
