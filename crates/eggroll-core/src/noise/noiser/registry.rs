//! The registry of noisers: by name and settings.

use super::no_op::NoOp;
use super::{
    BaselineSubtractionConfig, CustomNoiser, EggrollConfig, Noiser, NoiserError, OpenEsConfig, QEggrollConfig,
    SparseConfig, sign_eggroll,
};
use crate::rng::integer;
use crate::rng::key::NoiseDistribution;
use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::sync::Arc;

/// A noiser by name and settings, as in configuration files; command lines give the name only.
///
/// | name | noise of matrices | of other parameters | estimate |
/// |---|---|---|---|
/// | `eggroll` | `(σ/√r)·B·Aᵀ` | `σ·ε` | of the noise |
/// | `open_es` | `σ·ε` | `σ·ε` | of the noise |
/// | `q_eggroll` | int8 factors | int8 products | votes |
/// | `baseline_subtraction` | EGGROLL's, but none for two members of each group | the same | of the noise |
/// | `sign_eggroll` | EGGROLL's | `σ·ε` | by the signs of the factors |
/// | `sparse` | `max(d_input, d_output)` entries `σ·ε` | `σ·ε` | of the noise, times the share of entries |
/// | `no_op` | none | none | none |
///
/// # Example
///
/// ```
/// use eggroll_core::{EggrollConfig, NoiserConfig};
///
/// let config = NoiserConfig::from(EggrollConfig::new().with_rank(4));
/// let json = serde_json::to_string(&config).unwrap();
/// assert_eq!(json, r#"{"name":"eggroll","rank":4,"freeze_non_matrix":false}"#);
/// assert_eq!(serde_json::from_str::<NoiserConfig>(&json).unwrap(), config);
///
/// assert_eq!("eggroll".parse::<NoiserConfig>().unwrap(), NoiserConfig::from(EggrollConfig::new()));
/// let error = "egroll".parse::<NoiserConfig>().unwrap_err().to_string();
/// assert!(error.contains("`open_es`"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoiserConfig {
    /// Low-rank noise for matrices.
    Eggroll(EggrollConfig),
    /// Independent noise for every element.
    OpenEs(OpenEsConfig),
    /// Integers only.
    QEggroll(QEggrollConfig),
    /// EGGROLL with unperturbed members in every group.
    BaselineSubtraction(BaselineSubtractionConfig),
    /// EGGROLL's members, with the estimate `Σ_q w_q·(σ/√r)·sign(B_q)·sign(A_q)ᵀ`, which uses only the signs of the factors. For
    /// normal noise and a linear or quadratic fitness its expectation is `2/π` of EGGROLL's.
    SignEggroll(EggrollConfig),
    /// A few entries of every matrix.
    Sparse(SparseConfig),
    /// No noise and no update.
    NoOp,
    /// A noiser of another crate: not built by name.
    Custom(CustomNoiser),
}

impl NoiserConfig {
    /// The names of all noisers that are built by name.
    pub const NAMES: [&str; 7] =
        ["eggroll", "open_es", "q_eggroll", "baseline_subtraction", "sign_eggroll", "sparse", "no_op"];

    /// The distribution of every noise element.
    pub fn distribution(&self) -> NoiseDistribution {
        match self {
            Self::Eggroll(config) | Self::SignEggroll(config) => config.distribution,
            Self::OpenEs(config) => config.distribution,
            Self::BaselineSubtraction(config) => config.eggroll.distribution,
            Self::Sparse(config) => config.distribution,
            Self::Custom(custom) => custom.properties().distribution,
            Self::QEggroll(_) | Self::NoOp => NoiseDistribution::Normal,
        }
    }

    /// Members of a group whose first two are baselines without noise, if there are any.
    pub fn baselines(&self) -> Option<usize> {
        match self {
            Self::BaselineSubtraction(config) => Some(config.group),
            Self::Custom(custom) => Some(2 * custom.properties().baselines as usize).filter(|group| *group > 0),
            _ => None,
        }
    }

    /// Version of its noise stream: a change of any value is a new version, and old checkpoints are refused.
    pub fn stream_version(&self) -> u32 {
        match self {
            Self::QEggroll(_) => integer::STREAM_VERSION,
            // Both streams: versions only rise, and so does their sum.
            Self::Custom(custom) if custom.properties().integer.is_some() => {
                integer::STREAM_VERSION + self.distribution().stream_version()
            }
            _ => self.distribution().stream_version(),
        }
    }

    /// Builds the noiser.
    ///
    /// # Errors
    ///
    /// [`NoiserError`] with the value that cannot be used.
    pub fn init(&self) -> Result<Arc<dyn Noiser>, NoiserError> {
        Ok(match self {
            Self::Eggroll(config) => Arc::new(config.init()?),
            Self::OpenEs(config) => Arc::new(config.init()),
            Self::QEggroll(config) => Arc::new(config.init()?),
            Self::BaselineSubtraction(config) => Arc::new(config.init()?),
            Self::SignEggroll(config) => Arc::new(sign_eggroll::init(config)?),
            Self::Sparse(config) => Arc::new(config.init()),
            Self::NoOp => Arc::new(NoOp),
            Self::Custom(custom) => custom.init()?,
        })
    }

    /// The noiser to continue with, from this saved one: the `given` one, which must be equal, or itself if none is given. A
    /// [`CustomNoiser`], which files only name, must be given.
    ///
    /// # Errors
    ///
    /// [`NoiserError::Other`], with both, if a different one is given; [`NoiserError::NotGiven`] for a custom noiser if
    /// none is.
    pub fn restored(&self, given: Option<&Self>) -> Result<Self, NoiserError> {
        match (self, given) {
            (Self::Custom(saved), None) => Err(NoiserError::NotGiven(saved.name().to_owned())),
            (_, None) => Ok(self.clone()),
            (_, Some(given)) if self == given => Ok(given.clone()),
            (_, Some(given)) => Err(NoiserError::Other { saved: self.described(), given: given.described() }),
        }
    }

    fn described(&self) -> String {
        match self {
            Self::Custom(custom) => custom.to_string(),
            registered => format!("{registered:?}"),
        }
    }
}

/// `From<XConfig> for NoiserConfig`.
macro_rules! registered {
    ($($config:ty => $variant:ident),*) => {$(
        impl From<$config> for NoiserConfig {
            fn from(config: $config) -> Self {
                Self::$variant(config)
            }
        }
    )*};
}

registered! {
    BaselineSubtractionConfig => BaselineSubtraction,
    EggrollConfig => Eggroll,
    OpenEsConfig => OpenEs,
    QEggrollConfig => QEggroll,
    SparseConfig => Sparse,
    CustomNoiser => Custom
}

/// The noiser of that name with its default settings; hyphens count as underscores.
impl FromStr for NoiserConfig {
    type Err = NoiserError;

    fn from_str(name: &str) -> Result<Self, NoiserError> {
        let name = name.replace('-', "_");
        if name == "custom" {
            let reason = "`custom` stands for a noiser of another crate, which only a program can give";
            return Err(NoiserError::Name(reason.to_owned()));
        }
        let settings = MapDeserializer::<_, serde::de::value::Error>::new([("name", &*name)].into_iter());
        Self::deserialize(settings).map_err(|error| NoiserError::Name(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
