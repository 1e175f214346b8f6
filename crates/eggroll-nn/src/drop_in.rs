//! Conversions between perturbed modules and Burn's modules that they replace.

/// Implements conversions between a module of Burn and its twin, both ways. Both have exactly these fields; each converts by
/// [`Into`], or by the expression after its name.
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
