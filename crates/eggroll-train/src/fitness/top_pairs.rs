//! The rule of augmented random search: only the best pairs count.

/// Shapes the `pairs` pairs with the largest `max(f₊, f₋)` among themselves; 0 for all others. Ties go to the lower number.
pub(super) fn top_pairs(scores: &[f64], pairs: usize, shape: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    // −0 and 0 are equal scores, which total_cmp tells apart.
    let best: Vec<f64> =
        scores.chunks(2).map(|pair| pair.iter().fold(f64::NEG_INFINITY, |best, f| best.max(*f)) + 0.0).collect();
    let mut order: Vec<usize> = (0..best.len()).collect();
    order.sort_by(|a, b| best[*b].total_cmp(&best[*a])); // stable: ties stay in their order
    order.truncate(pairs);
    let members: Vec<usize> = order.iter().flat_map(|q| 2 * q..(2 * q + 2).min(scores.len())).collect();
    let used: Vec<f64> = members.iter().map(|member| scores[*member]).collect();
    let mut weights = vec![0.0; scores.len()];
    members.iter().zip(shape(&used)).for_each(|(member, weight)| weights[*member] = weight);
    weights
}
