//! Utilities of natural evolution strategies: weights by rank, of which the upper half of the members has nearly all.

use std::f64::consts::LN_2;

/// `u_i = max(0, ln(N/2 + 1) − ln i) / Σ_j max(0, ln(N/2 + 1) − ln j) − 1/N` for the `i`-th best of `N` scores; those that tie share the mean of
/// their utilities.
pub(super) fn utilities(scores: &[f64]) -> Vec<f64> {
    let n = scores.len() as f64;
    let by_rank: Vec<f64> = (1..=scores.len()).map(|i| logarithm(((n / 2.0 + 1.0) / i as f64).max(1.0))).collect();
    let total: f64 = by_rank.iter().sum();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let mut weights = vec![0.0; scores.len()];
    let mut start = 0;
    for tied in order.chunk_by(|a, b| scores[*a] == scores[*b]) {
        let sum: f64 = by_rank[start..start + tied.len()].iter().sum();
        for member in tied {
            weights[*member] = sum / tied.len() as f64 / total - 1.0 / n;
        }
        start += tied.len();
    }
    weights
}

/// `ln x` for finite `x ≥ 1`, with the same bits on all systems, which those of mathematical libraries are not: `x = 2ᵏ·m` with `1 ≤ m < 2`,
/// and `ln m = 2·artanh z` of `z = (m − 1)/(m + 1) < ⅓` by its series, whose first term left out is below `3⁻⁴¹`.
fn logarithm(x: f64) -> f64 {
    let (mut mantissa, mut twos) = (x, 0.0);
    while mantissa >= 2.0 {
        mantissa /= 2.0;
        twos += 1.0;
    }
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..20).rev().fold(0.0, |rest, k| 1.0 / f64::from(2 * k + 1) + z * z * rest);
    twos * LN_2 + 2.0 * z * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_the_library() {
        for i in 0..20_000 {
            let x = 1.0 + f64::from(i) * 0.37;
            assert!((logarithm(x) - x.ln()).abs() <= 4.0 * f64::EPSILON * x.ln(), "{x}: {} {}", logarithm(x), x.ln());
        }
        assert_eq!(logarithm(1.0), 0.0);
        assert!((logarithm(f64::MAX) / f64::MAX.ln() - 1.0).abs() < 1e-15);
    }
}
