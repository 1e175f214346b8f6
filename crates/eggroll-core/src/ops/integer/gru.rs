//! The recurrence of the minimal GRU over whole sequences.

use super::{GatePrimitive, IntegerNoise, IntegerOps, primitive, traced};
use crate::work::counters;
use crate::work::profile::Component;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// One gate: its input, already multiplied, and its recurrent weight and bias.
#[derive(Clone, Debug)]
pub struct Gate {
    /// `x·W` for all rows: `[members · sequences · steps, width]`
    pub input: Tensor<2, Int>,
    /// `U`: `[width, width]`
    pub weight: Tensor<2, Int>,
    /// Noise of `U`.
    pub weight_noise: Option<IntegerNoise>,
    /// `b`: `[width]`
    pub bias: Tensor<1, Int>,
    /// Noise of `b`.
    pub bias_noise: Option<IntegerNoise>,
}

/// Runs the recurrence of a minimal GRU, whose sigmoid and tanh are the identity, step after step:
///
/// - `f = clip(x·W_f + h·U_f + b_f)`, `g = ⌊(f + 127)·h / 2⁸⌋`
/// - `c = clip(x·W_h + g·U_h + b_h)`, `h' = h + ⌊(f + 127)·(c − h) / 2⁸⌋` in wrapping int8
///
/// The output of a step is its state `h'`; the last row of a sequence is the state to continue from. Where `starts` is not 0 the state
/// is 0 before the step.
///
/// # Shapes
///
/// - state: `[members · sequences, width]`
/// - starts: `[members · sequences · steps]`
/// - output: `[members · sequences · steps, width]`, member-major, of the state's type
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes.
#[track_caller]
pub fn gru(state: Tensor<2, Int>, starts: Tensor<1, Int>, forget: Gate, candidate: Gate) -> Tensor<2, Int> {
    let ([states, width], [rows]) = (state.dims(), starts.dims());
    assert!(
        states > 0 && width > 0 && rows.is_multiple_of(states),
        "integer GRU: {rows} rows are not whole sequences of the states {:?}",
        state.dims()
    );
    forget.check("forget", rows, states, width);
    candidate.check("candidate", rows, states, width);
    counters::add_launch();
    traced(Component::BaseProduct, || {
        let (forget, candidate) = (forget.into_primitive(), candidate.into_primitive());
        Tensor::from_dispatch(Dispatch::integer_gru(state.into_dispatch(), starts.into_dispatch(), forget, candidate))
    })
}

impl Gate {
    #[track_caller]
    fn check(&self, name: &str, rows: usize, states: usize, width: usize) {
        assert!(
            self.input.dims() == [rows, width] && self.weight.dims() == [width, width] && self.bias.dims() == [width],
            "integer GRU: the {name} gate's input {:?}, weight {:?} and bias {:?} do not fit {rows} rows of width {width}",
            self.input.dims(),
            self.weight.dims(),
            self.bias.dims()
        );
        if let Some(noise) = &self.weight_noise {
            noise.check_matrix("integer GRU", [width; 2], rows);
        }
        if let Some(noise) = &self.bias_noise {
            noise.check("integer GRU", 2 * width, rows);
        }
        for noise in [&self.weight_noise, &self.bias_noise].into_iter().flatten() {
            assert!(
                states.is_multiple_of(noise.pairs.members()),
                "integer GRU: {states} states for {} members",
                noise.pairs.members()
            );
        }
    }

    pub(crate) fn into_primitive(self) -> GatePrimitive<Dispatch> {
        GatePrimitive {
            input: self.input.into_dispatch(),
            weight: self.weight.into_dispatch(),
            weight_noise: primitive(self.weight_noise),
            bias: self.bias.into_dispatch(),
            bias_noise: primitive(self.bias_noise),
        }
    }
}
