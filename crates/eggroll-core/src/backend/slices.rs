//! The slice kernels of [`cpu`](super::cpu) on a backend whose tensors are slices: for f32, the portable defaults for other
//! types.

use super::cpu::{self, BiasSlice, EmbeddingSlices, LinearSlices, SharedRows, SourceSlice};
use super::memo::{Address, Memo, recall, remember};
use super::slice_backend::{SliceBackend, dims, filled, indices_below, readable, written};
use crate::ops::{
    BiasPrimitive, DenseNoise, InputRows, LinearMembers, LowRankNoise, MatrixNoise, PairRange, PerturbedOps,
    SourcePrimitive, Window, portable,
};
use crate::rng::key::NoiseKey;
use crate::scope;
use crate::work::profile;
use burn::backend::TensorMetadata;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::DType;
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

/// The names that panics give the operations.
const LINEAR: &str = "perturbed linear";
const EMBEDDING: &str = "perturbed embedding";
const VECTOR: &str = "perturbed vector";

impl<B: SliceBackend> PerturbedOps for B {
    fn low_rank_linear(
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
        let source = held::<B>(LINEAR, source);
        linear::<B>([x, weight], bias, members, |op, shape| {
            // SAFETY: the kernel writes every element of an output of this shape.
            unsafe { written::<B, 2>(LINEAR, shape, |y| cpu::low_rank_linear(op, &noise, on_slices::<B>(&source), y)) }
        })
    }

    fn dense_linear(
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
        let source = held::<B>(LINEAR, source);
        linear::<B>([x, weight], bias, members, |op, shape| {
            filled::<B, 2>(LINEAR, shape, |y| cpu::dense_linear(op, &noise, on_slices::<B>(&source), y))
        })
    }

    fn perturbed_embedding(
        weight: FloatTensor<B>,
        indices: IntTensor<B>,
        noise: MatrixNoise,
        source: SourcePrimitive<B>,
        members: LinearMembers,
    ) -> FloatTensor<B> {
        if weight.dtype() != DType::F32 {
            return portable::perturbed_embedding::<B>(weight, indices, noise, source, members);
        }
        let (shape, rows) = (dims(&weight), members.rows_per_member(indices.shape()[0]));
        let (weight, source) = (B::contiguous(weight), held::<B>(EMBEDDING, source));
        let indices = indices_below(B::int_data(indices), shape[0], "perturbed embedding: index", "rows");
        let shared = members.input == InputRows::Shared;
        let pairs = members.pairs;
        let op = EmbeddingSlices { weight: B::slice(&weight), indices: &indices, shared, shape, rows, pairs };
        filled::<B, 2>(EMBEDDING, [pairs.members() * rows, shape[1]], |y| {
            cpu::perturbed_embedding(&op, noise, on_slices::<B>(&source), y)
        })
    }

    fn patches(images: FloatTensor<B>, window: Window, input: InputRows) -> FloatTensor<B> {
        thread_local! {
            /// The patches of the images that members shared last: every chunk of a generation asks for the same ones.
            static PATCHES: Memo<(Address, Window), Box<dyn Any>> = const { RefCell::new(None) };
        }
        if images.dtype() != DType::F32 {
            return portable::patches::<B>(images, window);
        }
        let shape @ [count, channels, height, width] = dims(&images);
        let [rows, columns] = window.positions([height, width]);
        let patches = [count * rows * columns, channels * window.size()];
        let cut = |images: &FloatTensor<B>| {
            let images = B::contiguous(images.clone());
            // SAFETY: the kernel writes every element.
            unsafe { written::<B, 2>("patches", patches, |y| cpu::patches(B::slice(&images), shape, &window, y)) }
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

    fn perturbed_vector(
        vector: FloatTensor<B>,
        noise: DenseNoise,
        source: SourcePrimitive<B>,
        pairs: PairRange,
    ) -> FloatTensor<B> {
        if vector.dtype() != DType::F32 {
            return portable::perturbed_vector::<B>(vector, noise, source, pairs);
        }
        let ([n], vector, source) = (dims(&vector), B::contiguous(vector), held::<B>(VECTOR, source));
        filled::<B, 2>(VECTOR, [pairs.members(), n], |y| {
            cpu::perturbed_vector(B::slice(&vector), noise, on_slices::<B>(&source), pairs, y)
        })
    }

    fn low_rank_estimate(
        weights: FloatTensor<B>,
        noise: LowRankNoise,
        source: SourcePrimitive<B>,
        first_pair: u32,
        d_input: usize,
        d_output: usize,
        dtype: DType,
    ) -> FloatTensor<B> {
        let (name, shape) = ("low-rank estimate", [d_input, d_output]);
        if [weights.dtype(), dtype] != [DType::F32; 2] {
            return portable::low_rank_estimate::<B>(weights, noise, source, first_pair, shape, dtype);
        }
        let (weights, source) = (B::contiguous(weights), held::<B>(name, source));
        filled::<B, 2>(name, shape, |sum| {
            cpu::low_rank_estimate(B::slice(&weights), &noise, on_slices::<B>(&source), first_pair, shape, sum)
        })
    }

    fn dense_estimate(
        weights: FloatTensor<B>,
        noise: DenseNoise,
        source: SourcePrimitive<B>,
        first_pair: u32,
        elements: usize,
        dtype: DType,
    ) -> FloatTensor<B> {
        let name = "dense estimate";
        if [weights.dtype(), dtype] != [DType::F32; 2] {
            return portable::dense_estimate::<B>(weights, noise, source, first_pair, elements, dtype);
        }
        let (weights, source) = (B::contiguous(weights), held::<B>(name, source));
        filled::<B, 1>(name, [elements], |sum| {
            cpu::dense_estimate(B::slice(&weights), &noise, on_slices::<B>(&source), first_pair, sum)
        })
    }

    fn noise(like: FloatTensor<B>, key: NoiseKey, pairs: PairRange, elements: usize) -> FloatTensor<B> {
        if like.dtype() != DType::F32 {
            return portable::noise::<B>(key, pairs, elements, &like);
        }
        filled::<B, 2>("noise", [pairs.count as usize, elements], |noise| cpu::noise(key, pairs, elements, noise))
    }

    fn row_projection(gradient: FloatTensor<B>, x: FloatTensor<B>) -> FloatTensor<B> {
        let name = "row projection";
        if gradient.dtype() != DType::F32 {
            return portable::row_projection::<B>(gradient, x);
        }
        let (gradient, x) = (B::contiguous(gradient), readable::<B>(name, "input", x));
        let shape = dims(&gradient);
        filled::<B, 2>(name, shape, |projected| {
            cpu::row_projection(B::slice(&gradient), B::slice(&x), shape, projected);
        })
    }

    fn member_cross_entropy(logits: FloatTensor<B>, targets: IntTensor<B>, members: usize) -> FloatTensor<B> {
        if logits.dtype() != DType::F32 {
            return portable::member_cross_entropy::<B>(logits, targets, members);
        }
        let ([_, classes], logits) = (dims(&logits), B::contiguous(logits));
        let targets = indices_below(B::int_data(targets), classes, "cross-entropy: target", "classes");
        filled::<B, 1>("cross-entropy", [members], |losses| {
            cpu::member_cross_entropy(B::slice(&logits), &targets, classes, losses);
        })
    }

    fn row_cross_entropy(logits: FloatTensor<B>, targets: IntTensor<B>, members: usize) -> FloatTensor<B> {
        if logits.dtype() != DType::F32 {
            return portable::row_cross_entropy::<B>(logits, targets, members);
        }
        let ([rows, classes], logits) = (dims(&logits), B::contiguous(logits));
        let rows = rows / members;
        let targets = indices_below(B::int_data(targets), classes, "cross-entropy: target", "classes");
        filled::<B, 2>("cross-entropy", [members, rows], |losses| {
            cpu::row_cross_entropy(B::slice(&logits), &targets, classes, losses);
        })
    }
}

/// Makes noise that is held readable as a slice.
#[track_caller]
fn held<B: SliceBackend>(operation: &str, source: SourcePrimitive<B>) -> SourcePrimitive<B> {
    let readable = |noise| readable::<B>(operation, "noise", noise);
    match source {
        SourcePrimitive::Drawn => SourcePrimitive::Drawn,
        SourcePrimitive::Cached(noise, first) => SourcePrimitive::Cached(readable(noise), first),
        SourcePrimitive::Table(table) => SourcePrimitive::Table(readable(table)),
    }
}

fn on_slices<B: SliceBackend>(source: &SourcePrimitive<B>) -> SourceSlice<'_> {
    match source {
        SourcePrimitive::Drawn => SourceSlice::Drawn,
        SourcePrimitive::Cached(noise, first) => SourceSlice::Cached { noise: B::slice(noise), first: *first },
        SourcePrimitive::Table(table) => SourceSlice::Table(B::slice(table)),
    }
}

/// Brings operands to slices and runs `kernel` with the shape of the output.
#[track_caller]
fn linear<B: SliceBackend>(
    [x, weight]: [FloatTensor<B>; 2],
    bias: BiasPrimitive<B>,
    members: LinearMembers,
    kernel: impl FnOnce(&LinearSlices, [usize; 2]) -> FloatTensor<B>,
) -> FloatTensor<B> {
    let ([all, d_input], [_, d_output]) = (dims(&x), dims(&weight));
    let rows = members.rows_per_member(all);
    let operands = (members.input == InputRows::Shared).then(|| (x.clone(), weight.clone()));
    let (x, weight) = (B::contiguous(x), readable::<B>(LINEAR, "weight", weight));
    let bias = match bias {
        BiasPrimitive::None => BiasPrimitive::None,
        BiasPrimitive::Plain(bias) => BiasPrimitive::Plain(readable::<B>(LINEAR, "bias", bias)),
        BiasPrimitive::Perturbed(bias, noise, source) => {
            BiasPrimitive::Perturbed(readable::<B>(LINEAR, "bias", bias), noise, held::<B>(LINEAR, source))
        }
    };
    let shared = operands.map(|operands| shared_rows::<B>(operands, [&x, &weight], rows, [d_input, d_output]));
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
    rows: usize,
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
        let shared = scope::suspended(|| Rc::new(SharedRows::new(B::slice(x), B::slice(weight), rows, shape)));
        drop(waiting);
        remember(&SHARED, operands, key, shared.clone());
        shared
    })
}
