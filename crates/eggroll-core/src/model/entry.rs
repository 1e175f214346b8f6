//! One parameter of a model: its shape and role, and why it cannot have them.

use crate::noise::role::Role;
use crate::rng::key::NoiseKey;
use crate::work::messages::listed;
use burn::module::ParamId;

/// One parameter of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterEntry {
    /// Burn's identifier: finds the parameter when a module uses it. Random, not part of any draw.
    pub id: ParamId,
    /// Names of fields from the model down, joined by dots.
    pub path: String,
    /// Shape.
    pub shape: Vec<usize>,
    /// How it is perturbed.
    pub role: Role,
    /// The kind of its values.
    pub kind: ParameterKind,
}

impl ParameterEntry {
    /// Elements of one pair's noise of the parameter.
    pub fn noise_elements(&self) -> usize {
        match (self.kind, self.role) {
            // The product of two draws.
            (ParameterKind::Integer, Role::Dense) => self.role.noise_elements(&self.shape).saturating_mul(2),
            _ => self.role.noise_elements(&self.shape),
        }
    }

    /// Whether its values are of that kind, and it is not frozen.
    pub fn is_trained_as(&self, kind: ParameterKind) -> bool {
        self.kind == kind && self.role != Role::Frozen
    }

    pub(crate) fn validate(&self) -> Result<(), TableError> {
        let (path, shape, role, elements) = (&self.path, &self.shape, self.role, self.noise_elements());
        if role != Role::Frozen && shape.contains(&0) {
            return Err(TableError::Empty { path: path.clone(), shape: shape.clone() });
        }
        // Where `usize` has 32 bits, no count that it holds is above the bound.
        if elements as u64 > MAX_NOISE_ELEMENTS || elements == usize::MAX {
            return Err(TableError::TooMuchNoise { path: path.clone(), shape: shape.clone(), role, elements });
        }
        Ok(())
    }
}

/// The kind of a parameter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// Floating point: updated by an optimizer.
    Float,
    /// Integers: updated by votes.
    Integer,
}

/// Elements that every distribution's stream has for a pair and a parameter.
pub(crate) const MAX_NOISE_ELEMENTS: u64 = 1 << 34;

/// A parameter table that cannot be made.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// A name or pattern that matches no parameter.
    #[error(
        "{setting}: \"{name}\" matches no parameter: expected a path, the path of a module, or a pattern such as \"encoder.*\", among {}",
        listed(known)
    )]
    Unmatched {
        /// The setting: `roles`, `frozen` or `scales`.
        setting: &'static str,
        /// The name as given.
        name: String,
        /// The paths that exist, the nearest ones first.
        known: Vec<String>,
    },
    /// A pattern that gives a parameter a role that it cannot have.
    #[error("the pattern \"{pattern}\" gives {role:?} to \"{path}\" of shape {shape:?}: {reason}")]
    Role {
        /// The pattern as given.
        pattern: String,
        /// Its role.
        role: Role,
        /// The parameter.
        path: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Why it cannot have the role.
        reason: &'static str,
    },
    /// A factor of the noise scale that is not above 0, or that f32 cannot hold.
    #[error(
        "the pattern \"{pattern}\" has the noise scale {scale:?}: it must be above 0 and fit f32 (1.2e-38 to \
         3.4e38). Freeze parameters that should have no noise"
    )]
    Scale {
        /// The pattern as given.
        pattern: String,
        /// Its factor.
        scale: f64,
    },
    /// A factor of the noise scale for a parameter whose noise has no σ.
    #[error(
        "the pattern \"{pattern}\" has the noise scale {scale:?}, which is for float parameters, but \"{path}\" is a \
         trained integer parameter. Freeze it, or name float parameters only"
    )]
    IntegerScale {
        /// The pattern as given.
        pattern: String,
        /// Its factor.
        scale: f64,
        /// The parameter.
        path: String,
    },
    /// No parameter to train.
    #[error(
        "the model has no parameter to train: the noiser is for {0} of its parameters, and all are frozen. Unfreeze \
         one, or choose a noiser of the model's type: QEggrollConfig for integer parameters, any other for floats"
    )]
    NothingToTrain(usize),
    /// No parameter to train, because of `no_grad()`.
    #[error(
        "the model has no parameter to train: of the {parameters} that the noiser is for, {inactive} have no_grad(), \
         and the others are frozen. Leave out no_grad(), or call set_require_grad(true) on the model. \
         Param::initialized of a plain tensor counts as no_grad(), Param::from_tensor does not"
    )]
    NothingActive {
        /// Parameters that the noiser is for.
        parameters: usize,
        /// Parameters that only `no_grad()` freezes.
        inactive: usize,
    },
    /// Two fields of one identifier that cannot be one parameter.
    #[error(
        "\"{other}\" has the identifier of \"{path}\", as tied fields have, but differs from it in {differs}. Make \
         one a clone of the other to tie them, or give it another identifier (ParamId::new())"
    )]
    Tied {
        /// The first field.
        path: String,
        /// The other field.
        other: String,
        /// What they differ in.
        differs: &'static str,
    },
    /// A parameter without values.
    #[error("\"{path}\" of shape {shape:?} has no values to train: freeze it by name")]
    Empty {
        /// The parameter.
        path: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// More noise than a stream has, by a huge rank for example.
    #[error(
        "one pair's noise of \"{path}\" of shape {shape:?} has {elements} elements under {role:?}, more than the \
         {MAX_NOISE_ELEMENTS} of a noise stream"
    )]
    TooMuchNoise {
        /// The parameter.
        path: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Its role.
        role: Role,
        /// Elements of one pair's noise, `usize::MAX` for more.
        elements: usize,
    },
    /// Quantized values, which no optimizer moves.
    #[error(
        "\"{0}\" is quantized and cannot be trained: attach an adapter (apply_qlora, apply_lora), call no_grad() on it, or freeze it by name"
    )]
    Quantized(String),
    /// More parameters than noise addresses.
    #[error("the model has {0} parameters, more than {max}", max = NoiseKey::MAX_PARAMETERS)]
    TooMany(usize),
}

crate::debug_is_message!(TableError);
