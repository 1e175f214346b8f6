//! A noiser of another crate.

use super::{Noiser, NoiserError, NoiserProperties};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A noiser that is not in the registry, given to a strategy by the program, wherever a
/// [`NoiserConfig`](crate::NoiserConfig) is accepted.
///
/// Files cannot hold it: they save its [name](Noiser::name) and [properties](NoiserProperties). One that is read from a file serves only
/// for comparison; [`NoiserConfig::restored`](crate::NoiserConfig::restored) replaces it by the program's. Two are equal if name and
/// properties are.
///
/// # Example
///
/// ```
/// use eggroll_core::{CustomNoiser, Noiser, NoiserConfig, Role};
///
/// /// Low-rank noise for matrices of at least `width` columns, dense noise for other parameters.
/// #[derive(Debug)]
/// struct WideOnly {
///     width: usize,
/// }
///
/// impl Noiser for WideOnly {
///     fn role(&self, shape: &[usize]) -> Role {
///         match *shape {
///             [_, columns] if columns >= self.width => Role::LowRank { rank: 1 },
///             _ => Role::Dense,
///         }
///     }
/// }
///
/// let config = NoiserConfig::from(CustomNoiser::new(WideOnly { width: 8 }));
/// assert_eq!(config.init().unwrap().role(&[4, 8]), Role::LowRank { rank: 1 });
///
/// let saved = serde_json::to_string(&config).unwrap();
/// assert!(saved.starts_with(r#"{"name":"custom","noiser":"WideOnly { width: 8 }","properties":{"#), "{saved}");
/// let saved: NoiserConfig = serde_json::from_str(&saved).unwrap();
/// assert!(saved.init().is_err());
/// assert!(saved.restored(Some(&config)).unwrap().init().is_ok());
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomNoiser {
    /// Its name.
    noiser: String,
    properties: NoiserProperties,
    /// None if it was read.
    #[serde(skip)]
    given: Option<Arc<dyn Noiser>>,
}

impl CustomNoiser {
    /// Takes a noiser.
    pub fn new(noiser: impl Noiser + 'static) -> Self {
        Self { noiser: noiser.name(), properties: noiser.properties(), given: Some(Arc::new(noiser)) }
    }

    /// The name of the noiser: [`Noiser::name`].
    pub fn name(&self) -> &str {
        &self.noiser
    }

    /// Properties of the noiser apart from its roles.
    pub fn properties(&self) -> &NoiserProperties {
        &self.properties
    }

    pub(super) fn init(&self) -> Result<Arc<dyn Noiser>, NoiserError> {
        if self.properties.baselines == 1 {
            return Err(NoiserError::BaselineGroup(2));
        }
        self.given.clone().ok_or_else(|| NoiserError::NotGiven(self.noiser.clone()))
    }
}

impl PartialEq for CustomNoiser {
    fn eq(&self, other: &Self) -> bool {
        self.noiser == other.noiser && self.properties == other.properties
    }
}

/// The name, with the properties if they are not the default.
impl fmt::Display for CustomNoiser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noiser, properties, .. } = self;
        if *properties == NoiserProperties::default() {
            return write!(f, "\"{noiser}\"");
        }
        write!(f, "\"{noiser}\" with {properties:?}")
    }
}
