//! Conversions between perturbed modules and those of Burn that they are twins of.

/// Makes the twin of a module of Burn, and the module of the twin. Both have these fields and no others, each of which converts by
/// [`Into`] or as is said behind its name.
macro_rules! drop_in {
    ($twin:ident, $burn:path { $($field:ident $(=> $converted:expr)?),* $(,)? }) => {
        impl From<$burn> for $twin {
            fn from(module: $burn) -> Self {
                let $burn { $($field),* } = module;
                Self { $($field: drop_in!(@$field $(=> $converted)?)),* }
            }
        }

        impl From<$twin> for $burn {
            fn from(module: $twin) -> Self {
                let $twin { $($field),* } = module;
                Self { $($field: drop_in!(@$field $(=> $converted)?)),* }
            }
        }
    };
    (@$field:ident) => { $field.into() };
    (@$field:ident => $converted:expr) => { $converted };
}

pub(crate) use drop_in;
