//! Optimizers on estimated gradients: burn-optim's, and others in the same form, whose state its machinery keeps.
//!
//! burn's module optimizer requires parameters on an autodiff device. Models here are never on one: their parameters
//! are lifted for the step and lowered again, which moves no data.

mod clip_up;
mod flattened;
mod integer_adam_w;
mod integer_muon;
mod integers;
mod muon;
mod stepped;
mod tied;
mod validate;

pub use clip_up::ClipUpConfig;
pub use integer_adam_w::IntegerAdamWConfig;
pub use integer_muon::IntegerMuonConfig;
pub use muon::MuonAdamWConfig;
pub(crate) use stepped::is_half;
use stepped::stepped;
pub(crate) use tied::tie;

use crate::error::ConfigError;
use crate::settings::filled;
use burn::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::module::{Module, Param, ParamId};
use burn::optim::{
    AdaGradConfig, AdafactorConfig, AdamConfig, AdamWConfig, AdanConfig, GradientsParams, LambConfig, LionConfig,
    ModuleOptimizer, OptimizerRecord, RmsPropConfig, SgdConfig,
};
use burn::tensor::Tensor;
use eggroll_core::numbers;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::str::FromStr;

/// Far below the size of estimates at a small σ. Burn's 1e-5 is not.
const EPSILON: f32 = 1e-8;

/// The registry: a line for each optimizer, with the setting whose default is not Burn's.
macro_rules! optimizers {
    ($($(#[$doc:meta])* $name:literal => $variant:ident($config:ty) $(.$setting:ident($value:expr))?,)*) => {
        /// An optimizer by name and settings, as in configuration files; command lines give the name only. The default is Adam.
        ///
        /// # Epsilon
        ///
        /// By name, in files and by default, optimizers that divide by a running size of gradients have an epsilon of 1e-8. Burn's own
        /// `AdamConfig::new()`, `AdamWConfig::new()`, `RmsPropConfig::new()` and `AdaGradConfig::new()` have 1e-5, and a value that is given in
        /// code stays as it is. An estimate is small where σ is. With the default [scale](crate::GradientScale) the standard deviation of its
        /// values is σ under standardized fitness and 0.29·σ under ranks. At σ 1e-3, with ranks and a projection that leaves a 64th of the
        /// dimensions, it is 3.6e-5, and 1e-5 makes the steps of Adam 22 % shorter.
        ///
        /// # Other settings
        ///
        /// Optimizers of burn-optim have Burn's defaults. Their `grad_clipping` clips the gradient of each parameter by value or norm;
        /// [`with_clip_norm`](crate::EvolutionStrategyConfig::with_clip_norm) clips all of them together. Frozen parameters have no
        /// gradient and never change, also with weight decay.
        ///
        /// burn-optim's L-BFGS is not among them: its line search evaluates the true loss again and again.
        ///
        /// # Example
        ///
        /// ```
        /// use burn::optim::AdamWConfig;
        /// use eggroll_train::OptimizerConfig;
        ///
        /// let config = OptimizerConfig::from(AdamWConfig::new().with_weight_decay(0.01));
        /// let json = serde_json::to_string(&config).unwrap();
        /// assert!(json.starts_with(r#"{"name":"adam_w""#), "{json}");
        /// assert!(serde_json::from_str::<OptimizerConfig>(&json).is_ok());
        /// assert!(serde_json::from_str::<OptimizerConfig>(r#"{"name":"adam_w","weight_decay":0.01}"#).is_ok());
        ///
        /// assert!(matches!("muon".parse::<OptimizerConfig>().unwrap(), OptimizerConfig::Muon(_)));
        /// let error = "moun".parse::<OptimizerConfig>().unwrap_err().to_string();
        /// assert!(error.contains("`clip_up`"), "{error}");
        /// ```
        #[derive(Clone, Debug, Serialize)]
        #[serde(tag = "name")]
        #[non_exhaustive]
        pub enum OptimizerConfig {
            $($(#[$doc])* #[serde(rename = $name)] $variant($config),)*
        }

        impl OptimizerConfig {
            /// The names of all optimizers.
            pub const NAMES: &[&str] = &[$($name),*];

            fn steps(&self) -> ModuleOptimizer {
                match self {
                    $(Self::$variant(config) => config.init(),)*
                }
            }
        }

        /// Settings that are left out are the defaults.
        impl<'de> Deserialize<'de> for OptimizerConfig {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut given = Map::<String, Value>::deserialize(deserializer)?;
                match given.remove("name").as_ref().and_then(Value::as_str) {
                    $(Some($name) => filled(&<$config>::new()$(.$setting($value))?, given).map(Self::$variant),)*
                    Some(name) => Err(D::Error::custom(unknown(name))),
                    None => Err(D::Error::missing_field("name")),
                }
            }
        }

        /// The optimizer of that name with its default settings; hyphens in it count as underscores.
        impl FromStr for OptimizerConfig {
            type Err = ConfigError;

            fn from_str(name: &str) -> Result<Self, ConfigError> {
                match &*name.replace('-', "_") {
                    $($name => Ok(Self::$variant(<$config>::new()$(.$setting($value))?)),)*
                    _ => Err(unknown(name)),
                }
            }
        }

        $(impl From<$config> for OptimizerConfig {
            fn from(config: $config) -> Self {
                Self::$variant(config)
            }
        })*
    };
}

optimizers! {
    /// Gradient descent: plain, with momentum, or with Nesterov momentum.
    "sgd" => Sgd(SgdConfig),
    /// Adam.
    "adam" => Adam(AdamConfig).with_epsilon(EPSILON),
    /// Adam with decoupled weight decay.
    "adam_w" => AdamW(AdamWConfig).with_epsilon(EPSILON),
    /// Gradients scaled by a running mean of squared gradients.
    "rms_prop" => RmsProp(RmsPropConfig).with_epsilon(EPSILON),
    /// Gradients scaled by the accumulated squared gradients.
    "ada_grad" => AdaGrad(AdaGradConfig).with_epsilon(EPSILON),
    /// Adam with Nesterov momentum from gradient differences.
    "adan" => Adan(AdanConfig),
    /// Adam with a trust ratio for each parameter, for large batches.
    "lamb" => Lamb(LambConfig).with_epsilon(EPSILON),
    /// The sign of a momentum.
    "lion" => Lion(LionConfig),
    /// Adam with factored second moments.
    "adafactor" => Adafactor(AdafactorConfig),
    /// Orthogonalized updates of matrices, AdamW for other parameters.
    "muon" => Muon(MuonAdamWConfig),
    /// Normalized gradients and a velocity of bounded length.
    "clip_up" => ClipUp(ClipUpConfig),
    /// AdamW on the votes of integer parameters.
    "integer_adam_w" => IntegerAdamW(IntegerAdamWConfig),
    /// Muon on the votes of integer matrices, AdamW on the votes of vectors.
    "integer_muon" => IntegerMuon(IntegerMuonConfig),
}

/// Adam with an epsilon of 1e-8.
impl Default for OptimizerConfig {
    fn default() -> Self {
        Self::Adam(AdamConfig::new().with_epsilon(EPSILON))
    }
}

/// An optimizer with the name of its field, for errors.
#[derive(Serialize)]
struct InField<'a> {
    optimizer: &'a OptimizerConfig,
}

fn unknown(name: &str) -> ConfigError {
    let known: Vec<String> = OptimizerConfig::NAMES.iter().map(|name| format!("`{name}`")).collect();
    ConfigError::OptimizerName(format!("`{name}`, expected one of {}", known.join(", ")))
}

impl OptimizerConfig {
    /// The default learning rate of a strategy: a start, for the default σ of 0.02 and the default [scale](crate::GradientScale) of the
    /// estimate. Under a fitness without information, a value then moves by a hundredth to about half of σ in a generation.
    ///
    /// | optimizer | rate | |
    /// |---|---|---|
    /// | Adam, AdamW, Adan | 0.002 | a step of about the rate |
    /// | RMSProp | 0.0002 | its momentum adds up ten steps |
    /// | SGD | 0.1 | a step of `0.1·σ` for every σ; with momentum take a tenth |
    /// | Lion | 0.0005 | every value moves by the rate, however unsure |
    /// | Muon | 0.002 | Adam's, as [`MuonAdamWConfig`] adjusts it |
    /// | AdaGrad | 0.01 | falls as `1/√g` over generations `g` |
    /// | LAMB, Adafactor | 0.01 | relative to the size of a parameter |
    /// | ClipUp | `max_speed/2` | as its paper advises |
    /// | integer AdamW | 0.1 | a weight moves in ten generations of unanimous votes |
    /// | integer Muon | 0.1 | integer AdamW's |
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_train::{ClipUpConfig, OptimizerConfig};
    ///
    /// assert_eq!(OptimizerConfig::default().default_rate(), 0.002);
    /// assert_eq!(OptimizerConfig::from(ClipUpConfig::new().with_max_speed(0.3)).default_rate(), 0.15);
    /// ```
    pub fn default_rate(&self) -> f64 {
        match self {
            Self::Adam(_) | Self::AdamW(_) | Self::Adan(_) | Self::Muon(_) => 0.002,
            Self::RmsProp(_) => 0.0002,
            Self::Lion(_) => 0.0005,
            Self::AdaGrad(_) | Self::Lamb(_) | Self::Adafactor(_) => 0.01,
            Self::Sgd(_) | Self::IntegerAdamW(_) | Self::IntegerMuon(_) => 0.1,
            Self::ClipUp(config) => config.max_speed / 2.0,
        }
    }

    /// Whether it is an optimizer of integer parameters; it moves no float parameters.
    pub fn moves_integers(&self) -> bool {
        matches!(self, Self::IntegerAdamW(_) | Self::IntegerMuon(_))
    }

    /// Builds the optimizer.
    pub fn init(&self) -> Optimizer {
        let over = match self {
            Self::ClipUp(_) => Over::Whole,
            _ if self.moves_integers() => Over::Integers,
            _ => Over::Parameters,
        };
        Optimizer { steps: self.steps(), over }
    }

    /// Refuses settings from which no optimizer can be built, or which turn parameters into NaN.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Adafactor`], [`ConfigError::NewtonSchulz`], [`ConfigError::NewtonSchulzCoefficients`], [`ConfigError::MuonClipping`],
    /// [`ConfigError::ClipUp`], [`ConfigError::IntegerAdamW`] or, for all
    /// others, [`ConfigError::Number`], with the values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Adafactor(config) => validate::adafactor(config),
            Self::Muon(config) => validate::muon(&config.matrices, &config.others),
            Self::ClipUp(config) => config.validate(),
            Self::IntegerAdamW(config) => config.validate(),
            _ => Ok(()),
        }?;
        Ok(numbers::check(&InField { optimizer: self }, validate::bound)?)
    }
}

/// An optimizer for models that are not on an autodiff device.
#[derive(Clone)]
pub struct Optimizer {
    steps: ModuleOptimizer,
    over: Over,
}

/// The parameters of an optimizer's steps.
#[derive(Clone, Copy, PartialEq)]
enum Over {
    /// Each parameter alone.
    Parameters,
    /// All parameters as one vector.
    Whole,
    /// Integer parameters, each alone.
    Integers,
}

impl Optimizer {
    /// One step on `model`, with gradients by parameter on its own device. Parameters without a gradient do not change, also with
    /// weight decay. Tied fields, which share an identifier, take one step; all then have the value of the first.
    pub fn step<M: Module>(&mut self, rate: impl Into<ModuleLearningRate>, model: M, gradients: GradientsParams) -> M {
        let tied = tied::tied(&model, &gradients);
        let model = match self.over {
            Over::Whole => flattened::step(&mut self.steps, rate.into(), model, &gradients),
            _ => stepped(&mut self.steps, rate.into(), model, gradients),
        };
        if tied.is_empty() { model } else { tie(model, |id| tied.contains(&id)) }
    }

    /// Whether it steps on float parameters one by one, so that each can have its own rate.
    pub(crate) fn steps_on_each(&self) -> bool {
        self.over == Over::Parameters
    }

    /// Whether it moves integer parameters, by [`step_integer`](Self::step_integer).
    pub(crate) fn moves_integers(&self) -> bool {
        self.over == Over::Integers
    }

    /// One step on the values of an integer parameter.
    pub(crate) fn step_integer<const D: usize>(
        &mut self,
        rate: ModuleLearningRate,
        id: ParamId,
        values: Tensor<D>,
        gradient: Tensor<D>,
    ) -> Tensor<D> {
        let mut gradients = GradientsParams::new();
        gradients.register(id, gradient);
        stepped(&mut self.steps, rate, Param::initialized(id, values), gradients).val()
    }

    pub(crate) fn to_record(&self) -> OptimizerRecord {
        self.steps.to_record()
    }

    pub(crate) fn load_record(self, record: OptimizerRecord) -> Self {
        Self { steps: self.steps.load_record(record), ..self }
    }
}
