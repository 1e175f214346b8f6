//! Values of tensors and of matrices on the host.

use burn::tensor::{DType, Tensor};

/// The values of a tensor, as float32.
pub(crate) fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.cast(DType::F32).into_data().try_to_vec().expect("cast to f32")
}

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

/// Reads float32 to the host.
pub(crate) fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    eggroll_core::counters::add_host_read();
    floats(tensor)
}
