//! The slice kernels of [`cpu`](super::cpu) on a backend whose tensors are slices: for f32, the portable defaults for other
//! types.

use super::cpu::{self, BiasSlice, EmbeddingSlices, LinearSlices, SharedRows, Source};
use super::memo::{Address, Memo, recall, remember};
use crate::key::NoiseKey;
use crate::ops::{
    BiasPrimitive, DenseNoise, InputRows, LinearMembers, LowRankNoise, MatrixNoise, PairRange, SourcePrimitive, Window,
    portable,
};
use crate::{profile, scope};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, Shape, TensorData};
use std::any::Any;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::rc::Rc;

/// A backend whose f32 tensors are slices of memory.
pub(crate) trait SliceBackend: Backend {
    /// The same values, row after row without gaps.
    fn contiguous(tensor: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Values of a contiguous f32 tensor.
    fn slice(tensor: &FloatTensor<Self>) -> &[f32];

    /// Where the elements of an f32 tensor are.
    fn address(tensor: &FloatTensor<Self>) -> Address;

    /// A tensor of these values, which are not copied.
    fn from_vec(values: Vec<f32>, shape: Shape) -> FloatTensor<Self>;

    /// Values of an integer tensor.
    fn int_data(tensor: IntTensor<Self>) -> TensorData;

    /// The same values of type I8, row after row without gaps.
    fn int8(tensor: IntTensor<Self>) -> IntTensor<Self>;

    /// Values of a contiguous I8 tensor.
    fn int8_slice(tensor: &IntTensor<Self>) -> &[i8];

    /// A tensor of these values, which are not copied.
    fn from_int8(values: Vec<i8>, shape: Shape) -> IntTensor<Self>;
}

/// Implements [`PerturbedOps`](crate::ops::PerturbedOps) for a [`SliceBackend`] by the functions of this module.
macro_rules! perturbed_ops_on_slices {
    ($backend:ty) => {
        impl $crate::ops::PerturbedOps for $backend {
            fn low_rank_linear(
                x: FloatTensor<Self>,
                weight: FloatTensor<Self>,
                bias: BiasPrimitive<Self>,
                noise: LowRankNoise,
                source: SourcePrimitive<Self>,
                members: LinearMembers,
            ) -> FloatTensor<Self> {
                slices::low_rank_linear::<Self>(x, weight, bias, noise, source, members)
            }

            fn dense_linear(
                x: FloatTensor<Self>,
                weight: FloatTensor<Self>,
                bias: BiasPrimitive<Self>,
                noise: DenseNoise,
                source: SourcePrimitive<Self>,
                members: LinearMembers,
            ) -> FloatTensor<Self> {
                slices::dense_linear::<Self>(x, weight, bias, noise, source, members)
            }

            fn perturbed_embedding(
                weight: FloatTensor<Self>,
                indices: IntTensor<Self>,
                noise: MatrixNoise,
                source: SourcePrimitive<Self>,
                members: LinearMembers,
            ) -> FloatTensor<Self> {
                slices::perturbed_embedding::<Self>(weight, indices, noise, source, members)
            }

            fn patches(images: FloatTensor<Self>, window: Window, input: InputRows) -> FloatTensor<Self> {
                slices::patches::<Self>(images, window, input)
            }

            fn perturbed_vector(
                vector: FloatTensor<Self>,
                noise: DenseNoise,
                source: SourcePrimitive<Self>,
                pairs: PairRange,
            ) -> FloatTensor<Self> {
                slices::perturbed_vector::<Self>(vector, noise, source, pairs)
            }

            fn low_rank_estimate(
                weights: FloatTensor<Self>,
                noise: LowRankNoise,
                source: SourcePrimitive<Self>,
                first_pair: u32,
                d_input: usize,
                d_output: usize,
            ) -> FloatTensor<Self> {
                slices::low_rank_estimate::<Self>(weights, noise, source, first_pair, [d_input, d_output])
            }

            fn dense_estimate(
                weights: FloatTensor<Self>,
                noise: DenseNoise,
                source: SourcePrimitive<Self>,
                first_pair: u32,
                elements: usize,
            ) -> FloatTensor<Self> {
                slices::dense_estimate::<Self>(weights, noise, source, first_pair, elements)
            }

            fn noise(like: FloatTensor<Self>, key: NoiseKey, pairs: PairRange, elements: usize) -> FloatTensor<Self> {
                slices::noise::<Self>(like, key, pairs, elements)
            }

            fn row_projection(gradient: FloatTensor<Self>, x: FloatTensor<Self>) -> FloatTensor<Self> {
                slices::row_projection::<Self>(gradient, x)
            }

            fn member_cross_entropy(
                logits: FloatTensor<Self>,
                targets: IntTensor<Self>,
                members: usize,
            ) -> FloatTensor<Self> {
                slices::member_cross_entropy::<Self>(logits, targets, members)
            }
        }
    };
}
pub(crate) use perturbed_ops_on_slices;

pub(crate) fn low_rank_linear<B: SliceBackend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: BiasPrimitive<B>,
    noise: LowRankNoise,
    source: SourcePrimitive<B>,
    members: LinearMembers,
) -> FloatTensor<B> {
    if x.dtype() != DType::F32 {
        return portable::low_rank_linear::<B>(x, weight, bias, noise, source, members);
    }
    let source = held::<B>(source);
    linear::<B>(x, weight, bias, members, |op, shape| {
        // SAFETY: the kernel writes every element.
        unsafe { written::<B, 2>(shape, |y| cpu::low_rank_linear(op, &noise, on_slices::<B>(&source), y)) }
    })
}

pub(crate) fn dense_linear<B: SliceBackend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: BiasPrimitive<B>,
    noise: DenseNoise,
    source: SourcePrimitive<B>,
    members: LinearMembers,
) -> FloatTensor<B> {
    if x.dtype() != DType::F32 {
        return portable::dense_linear::<B>(x, weight, bias, noise, source, members);
    }
    let source = held::<B>(source);
    linear::<B>(x, weight, bias, members, |op, shape| {
        filled::<B, 2>(shape, |y| cpu::dense_linear(op, &noise, on_slices::<B>(&source), y))
    })
}

pub(crate) fn perturbed_embedding<B: SliceBackend>(
    weight: FloatTensor<B>,
    indices: IntTensor<B>,
    noise: MatrixNoise,
    source: SourcePrimitive<B>,
    members: LinearMembers,
) -> FloatTensor<B> {
    if weight.dtype() != DType::F32 {
        return portable::perturbed_embedding::<B>(weight, indices, noise, source, members);
    }
    let (weight, source) = (B::contiguous(weight), held::<B>(source));
    let shape = [weight.shape()[0], weight.shape()[1]];
    let indices = indices_below(B::int_data(indices), shape[0], "perturbed embedding: index", "rows");
    let op = EmbeddingSlices {
        weight: B::slice(&weight),
        indices: &indices,
        shared: members.input == InputRows::Shared,
        shape,
        rows: members.rows_per_member(indices.len()),
        pairs: members.pairs,
    };
    filled::<B, 2>([members.pairs.members() * op.rows, shape[1]], |y| {
        cpu::perturbed_embedding(&op, noise, on_slices::<B>(&source), y)
    })
}

pub(crate) fn patches<B: SliceBackend>(images: FloatTensor<B>, window: Window, input: InputRows) -> FloatTensor<B> {
    thread_local! {
        /// The patches of the images that members shared last: every chunk of a generation asks for the same ones.
        static PATCHES: Memo<(Address, Window), Box<dyn Any>> = const { RefCell::new(None) };
    }
    if images.dtype() != DType::F32 {
        return portable::patches::<B>(images, window);
    }
    let cut = |images: &FloatTensor<B>| {
        let images = B::contiguous(images.clone());
        let shape = images.shape();
        let shape = [shape[0], shape[1], shape[2], shape[3]];
        let [rows, columns] = window.positions([shape[2], shape[3]]);
        let patches = [shape[0] * rows * columns, shape[1] * window.size()];
        // SAFETY: the kernel writes every element.
        unsafe { written::<B, 2>(patches, |y| cpu::patches(B::slice(&images), shape, &window, y)) }
    };
    if input == InputRows::PerMember {
        return cut(&images);
    }
    let key = |images: &FloatTensor<B>| (B::address(images), window);
    let known = recall(&PATCHES, &key(&images), |patches| patches.downcast_ref::<FloatTensor<B>>().cloned());
    known.flatten().unwrap_or_else(|| {
        let patches = cut(&images);
        remember(&PATCHES, images, key, Box::new(patches.clone()));
        patches
    })
}

pub(crate) fn perturbed_vector<B: SliceBackend>(
    vector: FloatTensor<B>,
    noise: DenseNoise,
    source: SourcePrimitive<B>,
    pairs: PairRange,
) -> FloatTensor<B> {
    if vector.dtype() != DType::F32 {
        return portable::perturbed_vector::<B>(vector, noise, source, pairs);
    }
    let (vector, source) = (B::contiguous(vector), held::<B>(source));
    let shape = [pairs.members(), vector.shape()[0]];
    filled::<B, 2>(shape, |y| cpu::perturbed_vector(B::slice(&vector), noise, on_slices::<B>(&source), pairs, y))
}

pub(crate) fn low_rank_estimate<B: SliceBackend>(
    weights: FloatTensor<B>,
    noise: LowRankNoise,
    source: SourcePrimitive<B>,
    first_pair: u32,
    shape: [usize; 2],
) -> FloatTensor<B> {
    if weights.dtype() != DType::F32 {
        return portable::low_rank_estimate::<B>(weights, noise, source, first_pair, shape);
    }
    let (weights, source) = (B::contiguous(weights), held::<B>(source));
    filled::<B, 2>(shape, |sum| {
        cpu::low_rank_estimate(B::slice(&weights), &noise, on_slices::<B>(&source), first_pair, shape, sum)
    })
}

pub(crate) fn dense_estimate<B: SliceBackend>(
    weights: FloatTensor<B>,
    noise: DenseNoise,
    source: SourcePrimitive<B>,
    first_pair: u32,
    elements: usize,
) -> FloatTensor<B> {
    if weights.dtype() != DType::F32 {
        return portable::dense_estimate::<B>(weights, noise, source, first_pair, elements);
    }
    let (weights, source) = (B::contiguous(weights), held::<B>(source));
    filled::<B, 1>([elements], |sum| {
        cpu::dense_estimate(B::slice(&weights), &noise, on_slices::<B>(&source), first_pair, sum)
    })
}

pub(crate) fn noise<B: SliceBackend>(
    like: FloatTensor<B>,
    key: NoiseKey,
    pairs: PairRange,
    elements: usize,
) -> FloatTensor<B> {
    if like.dtype() != DType::F32 {
        return portable::noise::<B>(key, pairs, elements, &like);
    }
    filled::<B, 2>([pairs.count as usize, elements], |noise| cpu::noise(key, pairs, elements, noise))
}

pub(crate) fn row_projection<B: SliceBackend>(gradient: FloatTensor<B>, x: FloatTensor<B>) -> FloatTensor<B> {
    if gradient.dtype() != DType::F32 {
        return portable::row_projection::<B>(gradient, x);
    }
    let (gradient, x) = (B::contiguous(gradient), B::contiguous(x));
    let shape = [gradient.shape()[0], gradient.shape()[1]];
    filled::<B, 2>(shape, |projected| cpu::row_projection(B::slice(&gradient), B::slice(&x), shape, projected))
}

pub(crate) fn member_cross_entropy<B: SliceBackend>(
    logits: FloatTensor<B>,
    targets: IntTensor<B>,
    members: usize,
) -> FloatTensor<B> {
    if logits.dtype() != DType::F32 {
        return portable::member_cross_entropy::<B>(logits, targets, members);
    }
    let logits = B::contiguous(logits);
    let classes = logits.shape()[1];
    let targets = indices_below(B::int_data(targets), classes, "cross-entropy: target", "classes");
    filled::<B, 1>([members], |losses| cpu::member_cross_entropy(B::slice(&logits), &targets, classes, losses))
}

/// Makes noise that is held readable as a slice.
fn held<B: SliceBackend>(source: SourcePrimitive<B>) -> SourcePrimitive<B> {
    match source {
        SourcePrimitive::Drawn => SourcePrimitive::Drawn,
        SourcePrimitive::Cached(noise, first) => SourcePrimitive::Cached(B::contiguous(noise), first),
        SourcePrimitive::Table(table) => SourcePrimitive::Table(B::contiguous(table)),
    }
}

fn on_slices<B: SliceBackend>(source: &SourcePrimitive<B>) -> Source<'_> {
    match source {
        SourcePrimitive::Drawn => Source::Drawn,
        SourcePrimitive::Cached(noise, first) => Source::Cached { noise: B::slice(noise), first: *first },
        SourcePrimitive::Table(table) => Source::Table(B::slice(table)),
    }
}

/// Brings the operands to slices and runs `kernel` with the shape of the output.
fn linear<B: SliceBackend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: BiasPrimitive<B>,
    members: LinearMembers,
    kernel: impl FnOnce(&LinearSlices, [usize; 2]) -> FloatTensor<B>,
) -> FloatTensor<B> {
    let operands = (members.input == InputRows::Shared).then(|| (x.clone(), weight.clone()));
    let (x, weight) = (B::contiguous(x), B::contiguous(weight));
    let (d_input, d_output) = (weight.shape()[0], weight.shape()[1]);
    let bias = match bias {
        BiasPrimitive::None => BiasPrimitive::None,
        BiasPrimitive::Plain(bias) => BiasPrimitive::Plain(B::contiguous(bias)),
        BiasPrimitive::Perturbed(bias, noise, source) => {
            BiasPrimitive::Perturbed(B::contiguous(bias), noise, held::<B>(source))
        }
    };
    let rows = members.rows_per_member(x.shape()[0]);
    let shared = operands.map(|operands| shared_rows::<B>(operands, [&x, &weight], [d_input, d_output]));
    let op = LinearSlices {
        x: B::slice(&x),
        shared: shared.as_deref(),
        weight: B::slice(&weight),
        bias: match &bias {
            BiasPrimitive::None => BiasSlice::None,
            BiasPrimitive::Plain(bias) => BiasSlice::Plain(B::slice(bias)),
            BiasPrimitive::Perturbed(bias, noise, source) => {
                BiasSlice::Perturbed(B::slice(bias), *noise, on_slices::<B>(source))
            }
        },
        d_input,
        d_output,
        rows,
        pairs: members.pairs,
    };
    kernel(&op, [members.pairs.members() * rows, d_output])
}

/// What shared rows have in common; `operands` are the tensors that the contiguous `x` and `W` were made from.
fn shared_rows<B: SliceBackend>(
    operands: (FloatTensor<B>, FloatTensor<B>),
    [x, weight]: [&FloatTensor<B>; 2],
    shape: [usize; 2],
) -> Rc<SharedRows> {
    thread_local! {
        /// Every chunk of a generation asks for the same product.
        static SHARED: Memo<[Address; 2], Rc<SharedRows>> = const { RefCell::new(None) };
    }
    let key = |(x, weight): &(FloatTensor<B>, FloatTensor<B>)| [B::address(x), B::address(weight)];
    recall(&SHARED, &key(&operands), Rc::clone).unwrap_or_else(|| {
        // Nothing is borrowed while it runs: a waiting worker may take up another task that comes here.
        let waiting = profile::waiting_for_pool();
        let shared = scope::suspended(|| Rc::new(SharedRows::new(B::slice(x), B::slice(weight), shape)));
        drop(waiting);
        remember(&SHARED, operands, key, shared.clone());
        shared
    })
}

/// A new tensor that `fill` writes: it starts as zeros.
fn filled<B: SliceBackend, const D: usize>(shape: [usize; D], fill: impl FnOnce(&mut [f32])) -> FloatTensor<B> {
    let mut values = vec![0.0; shape.iter().product()];
    let waiting = profile::waiting_for_pool();
    scope::suspended(|| fill(&mut values));
    drop(waiting);
    B::from_vec(values, Shape::new(shape))
}

/// A new tensor that `write` writes, without clearing it before: for outputs as large as the activations.
///
/// # Safety
///
/// `write` must write every element.
unsafe fn written<B: SliceBackend, const D: usize>(
    shape: [usize; D],
    write: impl FnOnce(&mut [MaybeUninit<f32>]),
) -> FloatTensor<B> {
    let len = shape.iter().product();
    let mut values = Vec::with_capacity(len);
    let waiting = profile::waiting_for_pool();
    scope::suspended(|| write(&mut values.spare_capacity_mut()[..len]));
    drop(waiting);
    // SAFETY: the capacity is there, and `write` wrote it.
    unsafe { values.set_len(len) };
    B::from_vec(values, Shape::new(shape))
}

/// Indices of an integer tensor of any type.
///
/// # Panics
///
/// Panics if an index is not below `count`.
fn indices_below(indices: TensorData, count: usize, what: &str, of: &str) -> Vec<usize> {
    let data = indices.convert::<i64>();
    let index = |value: i64| {
        let index = usize::try_from(value).ok().filter(|index| *index < count);
        index.unwrap_or_else(|| panic!("{what} {value} is not one of {count} {of}"))
    };
    data.iter::<i64>().map(index).collect()
}
