//! Rotations that spread outliers before values are rounded to few bits.
//!
//! `x·W = (x·H)·(Hᵀ·W)` for an orthogonal `H`: a product does not change if rows and weight are both rotated. The rotated rows have no
//! outliers that would make their scales coarse (Ashkboos et al., "QuaRot", arXiv 2404.00456). `H` is made of Hadamard matrices over
//! every 16th element: vectors are added and subtracted as they lie in memory.

/// Elements side by side that are treated alike.
const LANES: usize = 16;
/// Elements that are mixed at most.
const MIXED: usize = 32;

/// Rotates `values : [depth, width]` along the depth, without the factor `1/n` of a Hadamard matrix of size `n`. Less than 16 at the end
/// stay.
#[inline(always)]
pub(super) fn rotate(values: &mut [f32], width: usize) {
    for part in parts(values, width) {
        let mut half = LANES * width;
        while half < part.len() {
            for pair in part.chunks_exact_mut(2 * half) {
                let (a, b) = pair.split_at_mut(half);
                for (a, b) in a.iter_mut().zip(b) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
            half *= 2;
        }
    }
}

/// [`rotate`] and the factor, so that rotating the other side of a product gives the product.
pub(super) fn rotate_back(values: &mut [f32], width: usize) {
    rotate(values, width);
    for part in parts(values, width) {
        let factor = (LANES * width) as f32 / part.len() as f32;
        part.iter_mut().for_each(|value| *value *= factor);
    }
}

/// The parts that are mixed within, of a power of two of lanes each.
#[inline(always)]
fn parts(mut values: &mut [f32], width: usize) -> impl Iterator<Item = &mut [f32]> {
    let lane = LANES * width;
    std::iter::from_fn(move || {
        let lanes = values.len() / lane;
        if lanes == 0 {
            return None;
        }
        let count = MIXED.min(1 << lanes.ilog2());
        let (part, rest) = std::mem::take(&mut values).split_at_mut(count * lane);
        values = rest;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_stay() {
        for depth in [1, 15, 16, 40, 576, 1536] {
            let columns = 3;
            let x: Vec<f32> = (0..depth).map(|k| (k * k % 17) as f32 - 8.0).collect();
            let w: Vec<f32> = (0..depth * columns).map(|k| (k * 7 % 13) as f32 - 6.0).collect();
            let product = |x: &[f32], w: &[f32]| {
                let column =
                    |c: usize| (0..depth).map(|k| f64::from(x[k]) * f64::from(w[k * columns + c])).sum::<f64>();
                (0..columns).map(column).collect::<Vec<f64>>()
            };
            let (mut rotated, mut back) = (x.clone(), w.clone());
            rotate(&mut rotated, 1);
            rotate_back(&mut back, columns);
            let (expected, found) = (product(&x, &w), product(&rotated, &back));
            assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-3), "{expected:?} {found:?}");
            assert_eq!(rotated == x, depth < 32, "depth {depth}");
        }
    }
}
