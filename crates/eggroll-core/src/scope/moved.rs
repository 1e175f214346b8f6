//! Members without noise, with some rows moved: finds what depends on a row.

use burn::tensor::{Tensor, TensorData};
use std::cell::RefCell;
use std::ops::Range;

/// Rows of a parameter's outputs that [`run_moved`](super::Perturbation::run_moved) moves for one member.
#[derive(Clone, Debug)]
pub struct MovedRows {
    /// The member, counted from the first of the scope.
    pub member: usize,
    /// The parameter's position in the table.
    pub position: usize,
    /// Rows of this member, for every use of the parameter in order.
    pub rows: Vec<Range<usize>>,
    /// The number of a direction.
    pub direction: usize,
}

/// The rows that a scope moves.
#[derive(Debug)]
pub(super) struct Moves {
    rows: Vec<MovedRows>,
    /// How often each parameter was used already.
    uses: RefCell<Vec<usize>>,
}

impl Moves {
    pub fn new(rows: Vec<MovedRows>, parameters: usize) -> Self {
        Self { rows, uses: RefCell::new(vec![0; parameters]) }
    }

    /// The output of a use of the parameter at `position`, `[members · rows, width]`, with its rows moved.
    pub fn apply(&self, position: usize, members: usize, mut y: Tensor<2>) -> Tensor<2> {
        let number = {
            let used = &mut self.uses.borrow_mut()[position];
            *used += 1;
            *used - 1
        };
        let ([all, width], device) = (y.dims(), y.device());
        let of_member = all / members;
        for moved in self.rows.iter().filter(|moved| moved.position == position && moved.member < members) {
            let fits = |rows: &&Range<usize>| !rows.is_empty() && rows.end <= of_member;
            let Some(rows) = moved.rows.get(number).filter(fits) else { continue };
            let rows = moved.member * of_member + rows.start..moved.member * of_member + rows.end;
            let before = y.clone().slice_dim(0, rows.clone());
            let size: f32 = before.clone().abs().mean().into_scalar();
            let size = if size.is_finite() && size > 0.0 { size } else { 1.0 };
            // A different number in every column: no norm and no sum cancels it.
            let angle = 2.4 - 1.1 * moved.direction as f32;
            let step: Vec<f32> = (0..width).map(|column| size * (angle * (column + 1) as f32).cos()).collect();
            let step = Tensor::<2>::from_data(TensorData::new(step, [1, width]), &device).cast(y.dtype());
            y = y.slice_assign([rows, 0..width], before + step);
        }
        y
    }
}
