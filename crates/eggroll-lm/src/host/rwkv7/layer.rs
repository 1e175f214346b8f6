//! The weights of a layer, packed.

use super::super::linear::{Changed, PackedLinear, vector};
use crate::rwkv7::{HeadNorm, Rwkv7Block};
use burn::module::{Param, ParamId};
use burn::tensor::Tensor;
use eggroll_core::transformer::{Precision, group_norm};
use eggroll_nn::{LayerNorm, Linear};

/// A layer's weights.
#[derive(Debug)]
pub(super) struct HostRwkv7Layer {
    pub vectors: Vectors,
    /// As [`matrices`] orders them.
    pub linear: Vec<PackedLinear>,
}

/// All but the matrices.
#[derive(Debug)]
pub(super) struct Vectors {
    pub ln1: Norm,
    pub ln2: Norm,
    pub ln_x: Norm,
    /// r, w, k, v, a, g.
    pub mixes: [Vec<f32>; 6],
    pub ffn_mix: Vec<f32>,
    pub w0: Vec<f32>,
    pub a0: Vec<f32>,
    pub v0: Option<Vec<f32>>,
    pub k_k: Vec<f32>,
    pub k_a: Vec<f32>,
    pub r_k: Vec<f32>,
}

/// A layer or group normalization.
#[derive(Debug)]
pub(super) struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

/// Matrices that are packed in the precision of the model. The following low-rank ones are kept in float32: they are small, and
/// the decay is sensitive to them.
const LARGE: usize = 6;

/// Matrices of a layer; the first one lacks [`RESIDUAL`] of them.
const MATRICES: usize = 14;
const RESIDUAL: usize = 2;

/// The number of a layer's first matrix in the model.
pub(super) fn first_matrix(layer: usize) -> usize {
    (layer * MATRICES).saturating_sub(RESIDUAL)
}

fn matrices(block: &Rwkv7Block) -> impl Iterator<Item = &Linear> {
    let (att, ffn) = (&block.att, &block.ffn);
    let large: [_; LARGE] = [&att.receptance, &att.key, &att.value, &att.output, &ffn.key, &ffn.value];
    let low_rank = [&att.w1, &att.w2, &att.a1, &att.a2, &att.g1, &att.g2];
    large.into_iter().chain(low_rank).chain(&att.v1).chain(&att.v2)
}

fn vectors(block: &Rwkv7Block) -> impl Iterator<Item = &Param<Tensor<1>>> {
    let (att, ffn) = (&block.att, &block.ffn);
    let norms = [&block.ln1, &block.ln2].into_iter().flat_map(norm_vectors);
    let others = [&att.x_r, &att.x_w, &att.x_k, &att.x_v, &att.x_a, &att.x_g, &ffn.x_k, &att.w0, &att.a0];
    let others = others.into_iter().chain([&att.k_k, &att.k_a, &att.r_k, &att.ln_x.gamma, &att.ln_x.beta]);
    norms.chain(others).chain(&att.v0)
}

/// The vectors of a normalization.
pub(super) fn norm_vectors(norm: &LayerNorm) -> impl Iterator<Item = &Param<Tensor<1>>> {
    [&norm.gamma].into_iter().chain(&norm.beta)
}

impl HostRwkv7Layer {
    pub fn new(block: &Rwkv7Block, index: usize, epsilon: f64, precision: Precision) -> Self {
        let packed = |(k, linear): (usize, &Linear)| {
            let precision = if k < LARGE { precision } else { Precision::F32 };
            PackedLinear::new(linear, first_matrix(index) + k, precision)
        };
        Self { vectors: Vectors::new(block, epsilon), linear: matrices(block).enumerate().map(packed).collect() }
    }

    /// Takes over trained parameters.
    pub fn update(&mut self, block: &Rwkv7Block, epsilon: f64, trained: impl Fn(ParamId) -> bool + Copy) -> Changed {
        if vectors(block).any(|vector| trained(vector.id)) {
            self.vectors = Vectors::new(block, epsilon);
        }
        let packed = self.linear.iter_mut().zip(matrices(block));
        packed.map(|(packed, linear)| packed.update(linear, trained)).sum()
    }
}

impl Vectors {
    fn new(block: &Rwkv7Block, epsilon: f64) -> Self {
        let (att, ffn) = (&block.att, &block.ffn);
        Self {
            ln1: Norm::of_rows(&block.ln1, epsilon),
            ln2: Norm::of_rows(&block.ln2, epsilon),
            ln_x: Norm::of_heads(&att.ln_x),
            mixes: [&att.x_r, &att.x_w, &att.x_k, &att.x_v, &att.x_a, &att.x_g].map(vector),
            ffn_mix: vector(&ffn.x_k),
            w0: vector(&att.w0),
            a0: vector(&att.a0),
            v0: att.v0.as_ref().map(vector),
            k_k: vector(&att.k_k),
            k_a: vector(&att.k_a),
            r_k: vector(&att.r_k),
        }
    }
}

impl Norm {
    pub fn of_rows(norm: &LayerNorm, epsilon: f64) -> Self {
        let weight = vector(&norm.gamma);
        let bias = norm.beta.as_ref().map_or_else(|| vec![0.0; weight.len()], vector);
        Self { weight, bias, epsilon: epsilon as f32 }
    }

    fn of_heads(norm: &HeadNorm) -> Self {
        Self { weight: vector(&norm.gamma), bias: vector(&norm.beta), epsilon: norm.epsilon as f32 }
    }

    /// Normalizes each of `groups` equal parts of rows.
    pub fn apply(&self, x: &[f32], groups: usize, y: &mut [f32]) {
        group_norm(x, groups, &self.weight, &self.bias, self.epsilon, y);
    }
}
