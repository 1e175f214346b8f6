//! Refuses settings from which no layer can be built, with field and value, before anything is allocated.

use eggroll_core::numbers::{self, Bound, Number, NumberError, last_name};
use serde::Serialize;

/// Largest number of values of a parameter: 256 GiB in f32, or 1 GiB where addresses have 32 bits.
const MOST_VALUES: usize = 1 << if usize::BITS > 32 { 36 } else { 28 };
/// Largest number of layers of a model: parameters have this many addresses in the noise.
const MOST_LAYERS: usize = 1 << 24;

/// Sizes of a parameter, by the fields that they come from.
pub(crate) type Sizes<'a> = &'a [(&'a str, usize)];

/// Panics if a number of `config` is out of range, or if a parameter of these sizes would be larger than any memory.
#[track_caller]
pub(crate) fn check(name: &str, config: &impl Serialize, parameters: &[Sizes<'_>]) {
    for (field, number) in numbers::all(config) {
        match number {
            Number::Float(number) => {
                let bound = bound(&field);
                assert!(bound.fits(number), "{name}: {}", NumberError { field, number, bound });
            }
            Number::Integer(number) => {
                let (least, most) = range(&field);
                assert!(
                    (least..=most as i128).contains(&number),
                    "{name}: {field} must be at least {least} and at most {most}, not {number}"
                );
            }
        }
    }
    check_uniform(name, config);
    for sizes in parameters {
        let values = sizes.iter().fold(1usize, |values, (_, size)| values.saturating_mul(*size));
        assert!(values <= MOST_VALUES, "{name}: {sizes:?} are a parameter of more than {MOST_VALUES} values");
    }
}

fn bound(field: &str) -> Bound {
    match last_name(field) {
        // A range that is empty cannot be drawn from.
        "gain" if field.contains("Uniform") => Bound::Positive,
        "epsilon" | "layer_norm_eps" | "clip" => Bound::Positive,
        "dropout" | "momentum" => Bound::Share,
        "gain" | "std" => Bound::NotNegative,
        // These divide.
        "alpha" if field.contains("Celu") => Bound::Positive,
        "beta" if field.contains("Softplus") => Bound::Positive,
        _ => Bound::Any,
    }
}

/// The least and the largest size.
fn range(field: &str) -> (i128, usize) {
    match last_name(field) {
        "layers" | "n_layers" => (0, MOST_LAYERS),
        _ if field.contains("padding") => (0, MOST_VALUES),
        _ => (1, MOST_VALUES),
    }
}

/// Uniform numbers are drawn from a range that is not empty.
#[track_caller]
fn check_uniform(name: &str, config: &impl Serialize) {
    let numbers = numbers::all(config);
    let of = |end: &str| {
        numbers.iter().find_map(|(field, number)| match number {
            Number::Float(number) if field.ends_with(end) => Some(*number),
            _ => None,
        })
    };
    if let (Some(min), Some(max)) = (of("Uniform.min"), of("Uniform.max")) {
        assert!(min < max, "{name}: initializer.Uniform.min must be below max, not {min:?} and {max:?}");
    }
}
