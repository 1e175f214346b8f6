//! Matrices the other way round.

/// The transpose of a row-major matrix.
pub(crate) fn transposed(values: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    const BLOCK: usize = 32;
    let mut result = vec![0.0; values.len()];
    for row in (0..rows).step_by(BLOCK) {
        for column in 0..columns {
            for row in row..rows.min(row + BLOCK) {
                result[column * rows + row] = values[row * columns + column];
            }
        }
    }
    result
}
