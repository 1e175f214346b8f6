//! What a network loses, and keeps losing while it recovers.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Tensor, TensorData};
use std::collections::HashMap;
use std::fmt;

/// Steps that quantization tries for each weight matrix, up to one that the largest weight still fits.
const STEPS: usize = 64;

/// The kind of damage.
#[derive(Clone, Copy, Debug)]
pub enum DamageKind {
    /// This share of every matrix becomes 0, the smallest magnitudes first.
    Prune { share: f64 },
    /// Every matrix is rounded to `2^bits` multiples of its own step size, `−2^(bits−1)` to `2^(bits−1) − 1`.
    Quantize { bits: u32 },
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prune { share } => write!(f, "{:.0} % of the weights are 0", 100.0 * share),
            Self::Quantize { bits } => write!(f, "weights of {bits} bits"),
        }
    }
}

/// Damage to the matrices of one network: what is lost is decided once, from its weights.
pub struct Damage {
    kind: DamageKind,
    matrices: HashMap<ParamId, Loss>,
}

/// What one matrix loses.
enum Loss {
    /// 1 where a weight stays, else 0.
    Mask(Box<Tensor<2>>),
    /// Rounds to multiples of the step from `−levels` to `levels − 1`.
    Round { step: f32, levels: f32 },
}

impl Damage {
    /// Decides what the matrices of `model` lose.
    pub fn new<M: Module>(kind: DamageKind, model: &M) -> Self {
        let mut planner = Planner { kind, matrices: HashMap::new() };
        model.visit(&mut planner);
        Self { kind, matrices: planner.matrices }
    }

    /// The network with the damage: of the same network at any later time, or of its members.
    pub fn apply<M: Module>(&self, model: M) -> M {
        model.map(&mut Apply(self))
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

struct Planner {
    kind: DamageKind,
    matrices: HashMap<ParamId, Loss>,
}

impl ModuleVisitor for Planner {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if D != 2 {
            return;
        }
        let weight = param.val();
        let (shape, device) = (weight.dims(), weight.device());
        let values: Vec<f32> = weight.into_data().iter::<f32>().collect();
        let loss = match self.kind {
            DamageKind::Prune { share } => {
                let data = TensorData::new(mask(&values, share), shape);
                Loss::Mask(Box::new(Tensor::from_data(data, &device)))
            }
            DamageKind::Quantize { bits } => {
                let levels = (1u32 << (bits - 1)) as f32;
                Loss::Round { step: best_step(&values, levels), levels }
            }
        };
        self.matrices.insert(param.id, loss);
    }
}

/// 0 for the share of the values that is smallest in magnitude.
fn mask(values: &[f32], share: f64) -> Vec<f32> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].abs().total_cmp(&values[*b].abs()));
    let mut mask = vec![1.0; values.len()];
    let lost = (share * values.len() as f64).round() as usize;
    order[..lost].iter().for_each(|i| mask[*i] = 0.0);
    mask
}

/// The step that loses least, in squares.
fn best_step(values: &[f32], levels: f32) -> f32 {
    let largest = values.iter().fold(f32::MIN_POSITIVE, |largest, value| largest.max(value.abs()));
    let lost = |step: f32| -> f32 {
        let rounded = |value: &f32| (value / step).round().clamp(-levels, levels - 1.0) * step;
        values.iter().map(|value| (value - rounded(value)).powi(2)).sum()
    };
    let steps = (1..=STEPS).map(|i| largest / levels * i as f32 / STEPS as f32);
    steps.min_by(|a, b| lost(*a).total_cmp(&lost(*b))).expect("some steps")
}

struct Apply<'a>(&'a Damage);

impl ModuleMapper for Apply<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(loss) = self.0.matrices.get(&param.id) else {
            return param;
        };
        param.map(|weight| match loss {
            Loss::Mask(mask) => {
                let shape = weight.dims();
                weight * (**mask).clone().reshape(shape)
            }
            Loss::Round { step, levels } => (weight / *step).round().clamp(-levels, levels - 1.0) * *step,
        })
    }
}
