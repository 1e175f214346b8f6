//! Rows with gaps between them, as CUDA allocates them: operations read them where they are.

use super::{Layout, int8, operand, read};
use crate::arithmetic::integer::{Rounding, Votes};
use crate::backend::cube::device::tested;
use crate::backend::cube::eligibility::extent;
use crate::backend::cube::integer::operands::Operand;
use crate::backend::cube::integer::packed_int8::Form;
use crate::ops::integer::{
    GatePrimitive, IntegerBias, IntegerMembers, IntegerNoisePrimitive, IntegerOps, VectorPrimitive,
};
use crate::rng::key::PairRange;
use burn::backend::ops::IntTensorOps;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;

const RANK: usize = 2;
const D: usize = 45;

/// A matrix with as many values between its rows.
fn matrix(shape: [usize; 2], salt: u32, gap: usize) -> CubeTensor {
    let values = int8(shape[0] * shape[1], salt);
    let Operand { mut tensor, stride, .. } = operand(&values, shape, Layout { form: Form::Value, gap });
    (tensor.meta.shape, tensor.meta.strides) = (shape.into(), [stride, 1].into());
    tensor
}

fn held(elements: usize, rank: usize, gap: usize) -> IntegerNoisePrimitive<CubeBackend> {
    let members = IntegerMembers { skip: 0, rank, shift: 5, pairs: PairRange::new(0, 2) };
    IntegerNoisePrimitive::Held(matrix([2, elements], 7, gap), members)
}

fn vector(salt: u32) -> CubeTensor {
    CubeBackend::int_reshape(matrix([1, D], salt, 0), Shape::new([D]))
}

/// Every operation on matrices, with gaps of so many values.
fn outputs(gap: usize) -> Vec<Vec<i8>> {
    let rows = || matrix([4 * 3, D], 1, gap);
    let square = || matrix([D, D], 2, gap);
    let noise = || held(2 * RANK * D, RANK, gap);
    let flags = |len: usize| CubeBackend::int_zeros(Shape::new([len]), &tested(), DType::I32.into());
    let gate = |salt| GatePrimitive {
        input: matrix([4 * 3, D], salt, gap),
        weight: square(),
        weight_noise: noise(),
        bias: vector(salt + 1),
        bias_noise: held(2 * D, 1, gap),
    };
    let bias = || match held(2 * D, 1, gap) {
        IntegerNoisePrimitive::Held(noise, members) => IntegerBias::Perturbed(vector(3), noise, members),
        IntegerNoisePrimitive::None => IntegerBias::None,
    };
    let scores = CubeBackend::int_add_scalar(flags(2), 1.into());
    let gain = VectorPrimitive { values: vector(4), noise: held(2 * D, 1, gap) };
    let mut all = vec![
        CubeBackend::integer_linear(rows(), square(), noise(), IntegerBias::None, false, Rounding::Floor),
        CubeBackend::integer_embedding(flags(12), square(), noise(), IntegerBias::None, Rounding::Floor),
        CubeBackend::integer_norm(rows(), gain, IntegerBias::None, Rounding::Floor),
        CubeBackend::integer_gru(matrix([4, D], 5, gap), flags(12), gate(10), gate(20)),
        CubeBackend::integer_update(square(), matrix([2, 2 * RANK * D], 7, gap), scores, RANK, Votes::Values, 99),
        CubeBackend::integer_linear(rows(), square(), noise(), bias(), true, Rounding::Nearest),
    ];
    all.push(CubeBackend::int_clamp(CubeBackend::integer_head(rows(), square(), noise()), (-127).into(), 127.into()));
    all.push(CubeBackend::int_clamp(
        CubeBackend::integer_log_likelihood(rows(), flags(12), 4, Rounding::Floor),
        (-127).into(),
        127.into(),
    ));
    all.into_iter().map(read).collect()
}

#[test]
fn gaps_change_no_bit() {
    let expected = outputs(0);
    for gap in [1, 19] {
        assert!(outputs(gap) == expected, "gaps of {gap}");
    }
    assert_eq!(extent(&matrix([3, 5], 1, 2)), 2 * 7 + 5);
}
