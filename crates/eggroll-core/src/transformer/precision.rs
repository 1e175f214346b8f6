//! Number formats of products.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The number format of a packed weight, and of the rows that it is multiplied with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// float32.
    F32,
    /// int8: weights with a scale for each column, rows with a scale for each row, both symmetric; sums in int32.
    #[default]
    Int8,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::Int8 => "int8",
        })
    }
}
