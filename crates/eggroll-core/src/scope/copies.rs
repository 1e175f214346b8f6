//! Fields of the model, and clones with its identifiers.

use crate::model::entry::ParameterKind;
use crate::model::identity::{Field, ParameterTensor};
use crate::model::table::ParameterTable;
use crate::noise::role::Role;
use burn::module::Param;

/// The fields through which a program has reached one parameter.
#[derive(Debug, Default)]
pub(crate) struct ReachedFields {
    /// Fields of the model.
    own: Vec<Field>,
    /// Fields of clones without gradient.
    plain: Vec<Field>,
}

impl ReachedFields {
    /// Whether `param` is a field of the model: a clone is not, if it has `no_grad()` and the model has not.
    pub fn admit<T: ParameterTensor>(
        &mut self,
        param: &Param<T>,
        table: &ParameterTable,
        position: usize,
    ) -> Result<bool, CloneError> {
        if self.own.iter().any(|field| field.is(param)) {
            return Ok(true);
        }
        if self.plain.iter().any(|field| field.is(param)) {
            return Ok(false);
        }
        self.admit_next(param, table, position)
    }

    /// [`admit`](Self::admit) of a field that was not met before.
    pub fn admit_next<T: ParameterTensor>(
        &mut self,
        param: &Param<T>,
        table: &ParameterTable,
        position: usize,
    ) -> Result<bool, CloneError> {
        if table.is_clone(position, param) {
            self.plain.push(Field::of(param));
            return Ok(false);
        }
        let (entry, fields) = (&table.entries()[position], table.fields(position));
        // Without noise a clone is not distinguished from the model, nor does it need to be.
        let is_full = self.own.len() >= fields;
        if entry.role != Role::Frozen {
            let path = || entry.path.clone();
            if is_full && entry.kind == ParameterKind::Integer {
                return Err(CloneError::Integers { path: path(), fields });
            }
            if is_full {
                return Err(CloneError::Floats { path: path(), fields });
            }
            if self.own.first().is_some_and(|first| !first.has_values_of(param)) {
                return Err(CloneError::Values { path: path(), fields });
            }
        }
        if !is_full {
            self.own.push(Field::of(param));
        }
        Ok(true)
    }

    /// The first field of the model that was met.
    pub fn into_first(self) -> Option<Field> {
        self.own.into_iter().next()
    }
}

/// A parameter that is reached through more fields than the model has: some belong to a clone, which keeps the identifiers.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloneError {
    /// Of floats.
    #[error(
        "\"{path}\" is used through more fields than the {fields} of the strategy's model: there is a clone, which \
         keeps the model's identifiers. If the clone is a separate model, such as a frozen teacher, call no_grad() \
         on it, or compute its output before evaluate. If it is to have noise, use the model by reference instead"
    )]
    Floats {
        /// The parameter.
        path: String,
        /// Fields of the model that are the parameter: several if they are tied.
        fields: usize,
    },
    /// Of integers.
    #[error(
        "\"{path}\" is used through more fields than the {fields} of the strategy's model: there is a clone, which \
         keeps the model's identifiers. If the clone is a separate model, such as a frozen teacher, compute its \
         output before evaluate: no_grad() leaves no mark on integer parameters. If it is to have noise, use the \
         model by reference instead"
    )]
    Integers {
        /// The parameter.
        path: String,
        /// Fields of the model that are the parameter: several if they are tied.
        fields: usize,
    },
    /// Tied fields that differ.
    #[error(
        "\"{path}\" has different values in two of the {fields} fields that the strategy's model ties. If one is in \
         a clone, call no_grad() on the clone. If fields were changed separately, give all of them the values of the \
         first"
    )]
    Values {
        /// The parameter.
        path: String,
        /// Fields of the model that are the parameter.
        fields: usize,
    },
}

crate::debug_is_message!(CloneError);
