//! Bounds of sizes and numbers in a configuration.

use super::super::error::LoadError;

/// Refuses sizes of 0.
pub(super) fn positive(sizes: &[(&str, usize)]) -> Result<(), LoadError> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        Some((field, _)) => Err(LoadError::config(field, 0, "1 or more")),
        None => Ok(()),
    }
}

/// Refuses numbers that are not positive and finite, in f32 too.
pub(super) fn positive_number(field: &str, number: f64) -> Result<(), LoadError> {
    let single = number as f32;
    // Subnormal numbers lose their digits.
    if single > 0.0 && single.is_normal() {
        return Ok(());
    }
    Err(LoadError::config(field, number, "a positive number, from 1.2e-38 to 3.4e38"))
}

/// Largest number of layers of a model: parameters have this many addresses in the noise.
const MOST_LAYERS: usize = 1 << 24;
/// Largest number of weights of a matrix.
const MOST_WEIGHTS: usize = 1 << 36;

/// Refuses numbers of layers, and sizes of matrices, above the bounds of modules.
pub(super) fn buildable(layers: usize, matrices: &[(&str, &[usize])]) -> Result<(), LoadError> {
    if layers > MOST_LAYERS {
        return Err(LoadError::config("layers", layers, format!("{MOST_LAYERS} at most")));
    }
    let weights = |sizes: &[usize]| sizes.iter().try_fold(1usize, |weights, &size| weights.checked_mul(size));
    match matrices.iter().find(|(_, sizes)| weights(sizes).is_none_or(|weights| weights > MOST_WEIGHTS)) {
        Some((fields, sizes)) => {
            let found = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ");
            Err(LoadError::config(fields, found, format!("{MOST_WEIGHTS} weights of a matrix at most")))
        }
        None => Ok(()),
    }
}

/// Refuses a number of weights whose f32 values memory cannot address.
pub(super) fn addressable(weights: Option<usize>) -> Result<(), LoadError> {
    let bytes = weights.and_then(|weights| weights.checked_mul(size_of::<f32>()));
    if bytes.is_some_and(|bytes| bytes <= isize::MAX as usize) {
        return Ok(());
    }
    let found = weights.map_or("beyond counting".into(), |weights| weights.to_string());
    Err(LoadError::config("the number of weights", found, format!("{} at most", isize::MAX / 4)))
}

/// The sum of products, unless it overflows.
pub(super) fn total(products: &[&[usize]]) -> Option<usize> {
    products.iter().try_fold(0usize, |sum, product| {
        sum.checked_add(product.iter().try_fold(1usize, |product, &size| product.checked_mul(size))?)
    })
}
