//! Burn's CPU backend: the slice kernels of [`cpu`](super::cpu) for f32, the portable defaults for other types.

use super::cpu::{self, BiasSlice, LinearSlices};
use crate::ops::{
    BiasPrimitive, DenseNoise, InputRows, LinearMembers, LowRankNoise, PairRange, PerturbedOps, portable,
};
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{Bytes, DType, Shape};
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::rc::Rc;

type Bias = BiasPrimitive<Flex>;

impl PerturbedOps for Flex {
    fn low_rank_linear(
        x: FlexTensor,
        weight: FlexTensor,
        bias: Bias,
        noise: LowRankNoise,
        members: LinearMembers,
    ) -> FlexTensor {
        if x.dtype() != DType::F32 {
            return portable::low_rank_linear::<Flex>(x, weight, bias, noise, members);
        }
        linear(x, weight, bias, members, |op, shape| {
            // SAFETY: the kernel writes every element.
            unsafe { written(shape, |y| cpu::low_rank_linear(op, &noise, y)) }
        })
    }

    fn dense_linear(
        x: FlexTensor,
        weight: FlexTensor,
        bias: Bias,
        noise: DenseNoise,
        members: LinearMembers,
    ) -> FlexTensor {
        if x.dtype() != DType::F32 {
            return portable::dense_linear::<Flex>(x, weight, bias, noise, members);
        }
        linear(x, weight, bias, members, |op, shape| filled(shape, |y| cpu::dense_linear(op, &noise, y)))
    }

    fn perturbed_vector(vector: FlexTensor, noise: DenseNoise, pairs: PairRange) -> FlexTensor {
        if vector.dtype() != DType::F32 {
            return portable::perturbed_vector::<Flex>(vector, noise, pairs);
        }
        let vector = vector.to_contiguous();
        let shape = [pairs.members(), vector.shape()[0]];
        filled(shape, |y| cpu::perturbed_vector(slice(&vector), noise, pairs, y))
    }

    fn low_rank_estimate(
        weights: FlexTensor,
        noise: LowRankNoise,
        first_pair: u32,
        d_input: usize,
        d_output: usize,
    ) -> FlexTensor {
        let shape = [d_input, d_output];
        if weights.dtype() != DType::F32 {
            return portable::low_rank_estimate::<Flex>(weights, noise, first_pair, shape);
        }
        let weights = weights.to_contiguous();
        filled(shape, |sum| cpu::low_rank_estimate(slice(&weights), &noise, first_pair, shape, sum))
    }

    fn dense_estimate(weights: FlexTensor, noise: DenseNoise, first_pair: u32, elements: usize) -> FlexTensor {
        if weights.dtype() != DType::F32 {
            return portable::dense_estimate::<Flex>(weights, noise, first_pair, elements);
        }
        let weights = weights.to_contiguous();
        filled([elements], |sum| cpu::dense_estimate(slice(&weights), &noise, first_pair, sum))
    }

    fn row_projection(gradient: FlexTensor, x: FlexTensor) -> FlexTensor {
        if gradient.dtype() != DType::F32 {
            return portable::row_projection::<Flex>(gradient, x);
        }
        let (gradient, x) = (gradient.to_contiguous(), x.to_contiguous());
        let shape = [gradient.shape()[0], gradient.shape()[1]];
        filled(shape, |projected| cpu::row_projection(slice(&gradient), slice(&x), shape, projected))
    }

    fn member_cross_entropy(logits: FlexTensor, targets: FlexTensor, members: usize) -> FlexTensor {
        if logits.dtype() != DType::F32 {
            return portable::member_cross_entropy::<Flex>(logits, targets, members);
        }
        let logits = logits.to_contiguous();
        let targets = class_indices(targets, logits.shape()[1]);
        let classes = logits.shape()[1];
        filled([members], |losses| cpu::member_cross_entropy(slice(&logits), &targets, classes, losses))
    }
}

/// Brings the operands to slices and runs `kernel` with the shape of the output.
fn linear(
    x: FlexTensor,
    weight: FlexTensor,
    bias: Bias,
    members: LinearMembers,
    kernel: impl FnOnce(&LinearSlices, [usize; 2]) -> FlexTensor,
) -> FlexTensor {
    let (x, weight) = (x.to_contiguous(), weight.to_contiguous());
    let (d_input, d_output) = (weight.shape()[0], weight.shape()[1]);
    let bias = match bias {
        Bias::None => Bias::None,
        Bias::Plain(bias) => Bias::Plain(bias.to_contiguous()),
        Bias::Perturbed(bias, noise) => Bias::Perturbed(bias.to_contiguous(), noise),
    };
    let rows = members.rows_per_member(x.shape()[0]);
    let shared = match members.input {
        InputRows::PerMember => None,
        InputRows::Shared => Some(shared_product(&x, &weight, [d_input, d_output])),
    };
    let op = LinearSlices {
        x: slice(&x),
        shared: shared.as_deref().map(Vec::as_slice),
        weight: slice(&weight),
        bias: match &bias {
            Bias::None => BiasSlice::None,
            Bias::Plain(bias) => BiasSlice::Plain(slice(bias)),
            Bias::Perturbed(bias, noise) => BiasSlice::Perturbed(slice(bias), *noise),
        },
        d_input,
        d_output,
        rows,
        pairs: members.pairs,
    };
    kernel(&op, [members.pairs.members() * rows, d_output])
}

thread_local! {
    /// The last product of shared rows on this thread: every chunk of a generation asks for the same one.
    static SHARED_PRODUCT: RefCell<Option<SharedProduct>> = const { RefCell::new(None) };
}

/// A product with its operands, which stay alive and so unchanged: equal addresses are equal operands.
struct SharedProduct {
    x: FlexTensor,
    weight: FlexTensor,
    product: Rc<Vec<f32>>,
}

fn shared_product(x: &FlexTensor, weight: &FlexTensor, shape: [usize; 2]) -> Rc<Vec<f32>> {
    let same = |a: &FlexTensor, b: &FlexTensor| std::ptr::eq(slice(a), slice(b)) && a.shape() == b.shape();
    let known = SHARED_PRODUCT.with_borrow(|last| {
        let last = last.as_ref().filter(|last| same(&last.x, x) && same(&last.weight, weight));
        last.map(|last| last.product.clone())
    });
    known.unwrap_or_else(|| {
        // Not borrowed while it runs: a waiting worker may take up another task that comes here.
        let product = Rc::new(cpu::shared_product(slice(x), slice(weight), shape));
        let last = SharedProduct { x: x.clone(), weight: weight.clone(), product: product.clone() };
        SHARED_PRODUCT.set(Some(last));
        product
    })
}

#[track_caller]
fn slice(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("the tensor was made contiguous")
}

/// A new tensor that `fill` writes: it starts as zeros.
fn filled<const D: usize>(shape: [usize; D], fill: impl FnOnce(&mut [f32])) -> FlexTensor {
    let mut values = vec![0.0; shape.iter().product()];
    fill(&mut values);
    from_vec(values, shape)
}

/// A new tensor that `write` writes, without clearing it before: for outputs as large as the activations.
///
/// # Safety
///
/// `write` must write every element.
unsafe fn written<const D: usize>(shape: [usize; D], write: impl FnOnce(&mut [MaybeUninit<f32>])) -> FlexTensor {
    let len = shape.iter().product();
    let mut values = Vec::with_capacity(len);
    write(&mut values.spare_capacity_mut()[..len]);
    // SAFETY: the capacity is there, and `write` wrote it.
    unsafe { values.set_len(len) };
    from_vec(values, shape)
}

fn from_vec<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> FlexTensor {
    let layout = Layout::contiguous(Shape::new(shape));
    FlexTensor::new(Bytes::from_elems(values), layout, DType::F32)
}

/// Class indices of an integer tensor of any type.
///
/// # Panics
///
/// Panics if an index is not below `classes`.
fn class_indices(targets: FlexTensor, classes: usize) -> Vec<usize> {
    let data = targets.into_data().convert::<i64>();
    let index = |target: i64| {
        let index = usize::try_from(target).ok().filter(|index| *index < classes);
        index.unwrap_or_else(|| panic!("cross-entropy: target {target} is not one of {classes} classes"))
    };
    data.iter::<i64>().map(index).collect()
}
