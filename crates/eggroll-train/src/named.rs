//! Functions of the program in a configuration.

use crate::error::ConfigError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A function of the program, with the name that files save. Read from a file it has the name only, until the program gives the
/// function again.
#[derive(Serialize, Deserialize)]
#[serde(bound = "", transparent)]
pub(crate) struct Named<F: ?Sized> {
    pub name: String,
    #[serde(skip, default = "none")]
    function: Option<Arc<F>>,
}

fn none<F: ?Sized>() -> Option<Arc<F>> {
    None
}

impl<F: ?Sized> Named<F> {
    pub fn new(name: impl Into<String>, function: Arc<F>) -> Self {
        Self { name: name.into(), function: Some(function) }
    }

    /// The function.
    ///
    /// # Errors
    ///
    /// [`ConfigError::NotGiven`] if the program has not given it again.
    pub fn function(&self, field: &'static str) -> Result<&Arc<F>, ConfigError> {
        self.function.as_ref().ok_or_else(|| ConfigError::NotGiven { field, name: self.name.clone() })
    }
}

impl<F: ?Sized> Clone for Named<F> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), function: self.function.clone() }
    }
}

impl<F: ?Sized> PartialEq for Named<F> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl<F: ?Sized> fmt::Debug for Named<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)
    }
}
