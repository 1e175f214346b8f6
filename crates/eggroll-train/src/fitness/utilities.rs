//! Utilities of natural evolution strategies: weights by rank, nearly all of them on the upper half of the members.

use eggroll_core::elementary::ln;

/// `u_i = max(0, ln(N/2 + 1) − ln i) / Σ_j max(0, ln(N/2 + 1) − ln j) − 1/N` for the `i`-th best of `N` scores; ties share the mean of their
/// utilities.
pub(super) fn utilities(scores: &[f64]) -> Vec<f64> {
    let n = scores.len() as f64;
    let by_rank: Vec<f64> = (1..=scores.len()).map(|i| ln(((n / 2.0 + 1.0) / i as f64).max(1.0))).collect();
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
