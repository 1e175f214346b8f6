//! The registry of noisers: by name and settings.

use super::no_op::NoOp;
use super::{BaselineConfig, EggrollConfig, Noiser, OpenEsConfig, QEggrollConfig, SparseConfig, sign_eggroll};
use crate::integer::MAX_SIGMA_SHIFT;
use crate::rng::{NoiseDistribution, integer};
use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::sync::Arc;

/// A noiser by name and settings: what configuration files hold, and command lines by the name alone.
///
/// | name | noise of matrices | of other parameters | estimate |
/// |---|---|---|---|
/// | `eggroll` | `(σ/√r)·B·Aᵀ` | `σ·ε` | of the noise |
/// | `open_es` | `σ·ε` | `σ·ε` | of the noise |
/// | `q_eggroll` | int8 factors | int8 products | votes |
/// | `baseline` | EGGROLL's, but none for two members of each group | the same | of the noise |
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
    Baseline(BaselineConfig),
    /// EGGROLL's members, and an estimate `Σ_q w_q·(σ/√r)·sign(B_q)·sign(A_q)ᵀ` that counts the signs of the factors only: for normal
    /// noise and a linear or quadratic fitness `2/π` of EGGROLL's in expectation.
    SignEggroll(EggrollConfig),
    /// A few entries of every matrix.
    Sparse(SparseConfig),
    /// No noise and no update.
    NoOp,
}

impl NoiserConfig {
    /// The names of all noisers.
    pub const NAMES: [&str; 7] = ["eggroll", "open_es", "q_eggroll", "baseline", "sign_eggroll", "sparse", "no_op"];

    /// The distribution of every noise element.
    pub fn distribution(&self) -> NoiseDistribution {
        match self {
            Self::Eggroll(config) | Self::SignEggroll(config) => config.distribution,
            Self::OpenEs(config) => config.distribution,
            Self::Baseline(config) => config.eggroll.distribution,
            Self::Sparse(config) => config.distribution,
            Self::QEggroll(_) | Self::NoOp => NoiseDistribution::Normal,
        }
    }

    /// Members of a group whose first two are baselines without noise, if there are any.
    pub fn baselines(&self) -> Option<usize> {
        match self {
            Self::Baseline(config) => Some(config.group),
            _ => None,
        }
    }

    /// Version of the stream that its noise comes from: a change of any value is a new version, and old checkpoints are refused.
    pub fn stream_version(&self) -> u32 {
        match self {
            Self::QEggroll(_) => integer::STREAM_VERSION,
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
            Self::Baseline(config) => Arc::new(config.init()?),
            Self::SignEggroll(config) => Arc::new(sign_eggroll::init(config)?),
            Self::Sparse(config) => Arc::new(config.init()),
            Self::NoOp => Arc::new(NoOp),
        })
    }
}

/// The noiser of that name with its default settings; hyphens in it count as underscores.
impl FromStr for NoiserConfig {
    type Err = NoiserError;

    fn from_str(name: &str) -> Result<Self, NoiserError> {
        let name = name.replace('-', "_");
        let settings = MapDeserializer::<_, serde::de::value::Error>::new([("name", &*name)].into_iter());
        Self::deserialize(settings).map_err(|error| NoiserError::Name(error.to_string()))
    }
}

/// Settings that no noiser can be built from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoiserError {
    /// A name that no noiser has: what was given, and the names there are.
    #[error("no such noiser: {0}")]
    Name(String),
    /// The rank is 0.
    #[error("the rank of EGGROLL must be at least 1, not {0}")]
    Rank(usize),
    /// A group of members without a pair beside its baselines.
    #[error("a group with two baselines must be even and have at least 4 members, not {0}")]
    BaselineGroup(usize),
    /// The sigma shift is above 24.
    #[error("the sigma shift must be at most {MAX_SIGMA_SHIFT}, not {0}")]
    SigmaShift(u32),
    /// The threshold's alpha is not in (0, 64].
    #[error("the threshold's alpha must be above 0 and at most 64, not {0}")]
    Alpha(f64),
    /// The threshold's schedule has no generations.
    #[error("the threshold's decay must be at least 1 generation, not {0}")]
    Decay(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_registry() {
        for name in NoiserConfig::NAMES {
            let config: NoiserConfig = name.parse().expect("a name of the registry");
            assert!(serde_json::to_string(&config).expect("writes").contains(&format!("\"name\":\"{name}\"")));
            assert!(config.init().is_ok(), "{name}");
            assert_eq!(name.replace('_', "-").parse::<NoiserConfig>(), Ok(config));
        }
        let error = "eggrol".parse::<NoiserConfig>().unwrap_err().to_string();
        let all = NoiserConfig::NAMES.map(|name| format!("`{name}`")).join(", ");
        assert!(error.contains("`eggrol`") && error.contains(&all), "{error}");
        let error = serde_json::from_str::<NoiserConfig>(r#"{"name":"eggroll","rnk":2}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `rnk`"), "{error}");
    }
}
