//! Causal attention by tables.

use super::operands::check_heads;
use super::{IntegerOps, traced};
use crate::arithmetic::integer::transformer::MAX_CONTEXT;
use crate::work::counters;
use crate::work::profile::Component;
use burn::backend::Dispatch;
use burn::tensor::{Int, Tensor};

/// Causal attention of every head: for the scores `S_j = q·k_j` of the positions up to a row's own
///
/// `o = round(Σ_j w_j·v_j / Σ_j w_j)`, `w_j = round(round(2¹²·2^(−(i mod 16)/16)) / 2^⌊i/16⌋)`, `i = round((max S − S_j) / 2^(7 + h(d)))`
///
/// and `w_j = 0` from `i = 208` on. The queries belong to the last positions of the keys.
///
/// # Shapes
///
/// - query and output: `[sequences · steps, heads · d]`, [turned](super::rotary)
/// - keys, values: `[sequences, context, heads · d]`, the keys turned
///
/// # Panics
///
/// Panics if shapes do not fit, with the shapes, and for contexts of more than 2,048 positions.
#[track_caller]
pub fn attention(query: Tensor<2, Int>, keys: Tensor<3, Int>, values: Tensor<3, Int>, heads: usize) -> Tensor<2, Int> {
    let name = "integer attention";
    let (shape @ [rows, width], [sequences, context, of_keys]) = (query.dims(), keys.dims());
    assert!(
        of_keys == width && values.dims() == keys.dims() && sequences > 0 && rows.is_multiple_of(sequences),
        "{name}: the queries {shape:?}, keys {:?} and values {:?} do not fit",
        keys.dims(),
        values.dims()
    );
    let steps = rows / sequences;
    check_heads(name, shape, steps, heads);
    assert!(
        (steps..=MAX_CONTEXT).contains(&context),
        "{name}: a context of {context} positions for {steps} queries: at least as many, and at most {MAX_CONTEXT}"
    );
    counters::add_launch();
    traced(Component::BaseProduct, || {
        let (query, keys, values) = (query.into_dispatch(), keys.into_dispatch(), values.into_dispatch());
        Tensor::from_dispatch(Dispatch::integer_attention(query, keys, values, heads))
    })
}
