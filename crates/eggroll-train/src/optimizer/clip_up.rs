//! ClipUp (Toklu, Liskowski and Srivastava, "ClipUp: A Simple and Powerful Optimizer for Distribution-based Policy Evolution",
//! arXiv 2008.02387).

use crate::error::ConfigError;
use burn::config::Config;
use burn::optim::{ModuleOptimizer, Optimizer, RecordState, StateSink, StateSource};
use burn::tensor::{Device, Tensor};

/// Settings of ClipUp, made for evolution strategies: only the direction of an estimate counts, as its length says little.
///
/// `v ← m·v + α·g/|g|`, then `v ← v·min(1, v_max/|v|)` and `θ ← θ − v`, with the learning rate `α`. Norms are taken over all
/// trained parameters together, as in the paper. In any other [`ModuleOptimizer`] each parameter has its own norm.
///
/// The paper's advice: choose the largest speed `v_max` for the problem, `α = v_max/2` and a momentum of 0.9. Both are the
/// [defaults](crate::OptimizerConfig::default_rate).
///
/// # Example
///
/// ```
/// use eggroll_core::EggrollConfig;
/// use eggroll_train::{ClipUpConfig, EvolutionStrategyConfig};
///
/// let config = EvolutionStrategyConfig::new(EggrollConfig::new(), ClipUpConfig::new().with_max_speed(0.3));
/// # let _ = config;
/// ```
///
/// # References
///
/// Toklu, Liskowski and Srivastava, arXiv 2008.02387, Algorithm 1.
#[derive(Config, Debug, PartialEq)]
pub struct ClipUpConfig {
    /// Share `m` of the velocity that is kept, from 0 to below 1.
    #[config(default = 0.9)]
    pub momentum: f64,
    /// The longest step `v_max`.
    #[config(default = 0.15)]
    pub max_speed: f64,
}

impl ClipUpConfig {
    /// The optimizer of a module, with norms by parameter.
    pub fn init(&self) -> ModuleOptimizer {
        ModuleOptimizer::from(ClipUp { momentum: self.momentum, max_speed: self.max_speed })
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let Self { momentum, max_speed } = *self;
        let fits = (0.0..1.0).contains(&momentum) && max_speed > 0.0 && max_speed.is_finite();
        if fits { Ok(()) } else { Err(ConfigError::ClipUp { momentum, max_speed }) }
    }
}

#[derive(Clone)]
struct ClipUp {
    momentum: f64,
    max_speed: f64,
}

#[derive(Clone)]
struct Velocity<const D: usize>(Tensor<D>);

const VELOCITY: &str = "velocity";

impl<const D: usize> RecordState for Velocity<D> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        out.push_tensor(prefix, VELOCITY, self.0.to_data());
    }

    fn state_unflatten(prefix: &str, src: &mut StateSource, device: &Device) -> Option<Self> {
        src.take_tensor(prefix, VELOCITY).map(|data| Self(Tensor::from_data(data, device)))
    }
}

impl Optimizer for ClipUp {
    type State<const D: usize> = Velocity<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        tensor: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<Velocity<D>>,
    ) -> (Tensor<D>, Option<Velocity<D>>) {
        let push = gradient.clone() * (norm(gradient).recip() * rate);
        let velocity = match state {
            None => push,
            Some(Velocity(velocity)) => velocity * self.momentum + push,
        };
        let speed = norm(velocity.clone());
        let velocity = velocity * (speed.clone().clamp_max(self.max_speed) / speed);
        (tensor - velocity.clone(), Some(Velocity(velocity)))
    }

    fn to_device<const D: usize>(state: Velocity<D>, device: &Device) -> Velocity<D> {
        Velocity(state.0.to_device(device))
    }
}

/// The Euclidean norm, `[1, 1, …]`; not 0, so that it may divide.
fn norm<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    tensor.square().sum().sqrt().clamp_min(f32::MIN_POSITIVE).reshape([1; D])
}
