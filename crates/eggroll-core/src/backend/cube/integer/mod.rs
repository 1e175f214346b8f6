//! Integer kernels, for int8 values in any type that a device has for them. Sums are int32 and exact: every device gives the same
//! bits, with any tiles. With [`Rounding::Nearest`] products are kernels, and other operations the portable ones.

mod add;
mod arithmetic;
mod embedding;
mod epilogue;
mod geometry;
mod gru;
mod launch;
mod linear;
mod log_likelihood;
mod noise;
mod norm;
mod operands;
mod packed_int8;
mod product;
#[cfg(test)]
mod tests;
mod update;

use super::BiasKind;
use super::eligibility::{Demand, extent, reads, runs};
use super::geometry::{by_element, units};
use crate::arithmetic::integer::transformer::{head_shift, product_shift};
use crate::arithmetic::integer::{Rounding, Votes, product_divisor};
use crate::ops::integer::portable;
use crate::ops::integer::{GatePrimitive, IntegerBias, IntegerNoisePrimitive, IntegerOps, VectorPrimitive};
use crate::rng::key::{NoiseKey, PairRange};
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use epilogue::Epilogue;
use geometry::{GateNoise, GruTile, LANES, ProductTile, UpdateTile, log_likelihood_demand, norm_demand};
use launch::ProductOperands;
use operands::{LaunchNoise, Operand, plain};
use packed_int8::Packing;

type CubeNoise = IntegerNoisePrimitive<CubeBackend>;
type CubeGate = GatePrimitive<CubeBackend>;

impl IntegerOps for CubeBackend {
    fn integer_noise(like: CubeTensor, key: NoiseKey, pairs: PairRange, elements: usize) -> CubeTensor {
        let demand = Demand { shared_bytes: noise::SHARED_BYTES, ..by_element(1, pairs.count as usize * elements) };
        if runs(&like, &demand) {
            launch::noise(&like, key, pairs, elements)
        } else {
            portable::noise::<Self>(&like, key, pairs, elements)
        }
    }

    fn integer_linear(
        x: CubeTensor,
        weight: CubeTensor,
        noise: CubeNoise,
        bias: IntegerBias<Self>,
        activate: bool,
        rounding: Rounding,
    ) -> CubeTensor {
        let (dtype, [d_input, d_output]) = (weight.dtype, weight.meta.shape().dims());
        let of_bias = match &bias {
            IntegerBias::Perturbed(_, noise, _) => extent(noise),
            IntegerBias::None | IntegerBias::Plain(_) => 0,
        };
        let Some(tile) = product_tile(&x, &weight, &noise, [d_input, d_output], of_bias) else {
            return portable::linear::<Self>(x, weight, noise, bias, activate, rounding);
        };
        let (kind, bias) = match bias {
            IntegerBias::None => (BiasKind::None, None),
            IntegerBias::Plain(bias) => (BiasKind::Plain, Some((bias, IntegerNoisePrimitive::None))),
            IntegerBias::Perturbed(bias, noise, members) => {
                (BiasKind::Perturbed, Some((bias, IntegerNoisePrimitive::Held(noise, members))))
            }
        };
        let (epilogue, divisor) = match rounding {
            Rounding::Floor => (Epilogue::Divide, product_divisor(d_input)),
            Rounding::Nearest => (Epilogue::Round { bias: kind, activate }, product_shift(d_input) as i32),
        };
        let product = ProductOperands {
            x: Operand::new(x, dtype),
            weight: Operand::new(weight, dtype),
            transposed: false,
            held: LaunchNoise::new(noise, dtype),
            bias: bias.map(|(bias, noise)| (plain(bias, dtype), LaunchNoise::new(noise, dtype).by_value())),
            epilogue,
            divisor,
        };
        launch::product(product, dtype, tile)
    }

    fn integer_head(x: CubeTensor, embedding: CubeTensor, noise: CubeNoise) -> CubeTensor {
        let (dtype, [vocab, width]) = (embedding.dtype, embedding.meta.shape().dims());
        let Some(tile) = product_tile(&x, &embedding, &noise, [width, vocab], 0) else {
            return portable::head::<Self>(x, embedding, noise);
        };
        let product = ProductOperands {
            x: Operand::new(x, dtype),
            weight: Operand::new(embedding, dtype),
            transposed: true,
            held: LaunchNoise::new(noise, dtype),
            bias: None,
            epilogue: Epilogue::Logits,
            divisor: head_shift(width) as i32,
        };
        launch::product(product, DType::I32, tile)
    }

    fn integer_embedding(
        tokens: CubeTensor,
        weight: CubeTensor,
        noise: CubeNoise,
        bias: IntegerBias<Self>,
        rounding: Rounding,
    ) -> CubeTensor {
        let output = tokens.meta.shape()[0] * weight.meta.shape()[1];
        let largest = output.max(held(&noise)).max(extent(&weight));
        let demand = Demand { turns: rank(&noise), ..by_element(4, largest) };
        if rounding == Rounding::Floor && output > 0 && reads(&tokens) && runs(&weight, &demand) {
            let (dtype, packing) = (weight.dtype, Packing::new(&weight.client, weight.dtype));
            launch::embedding(tokens, Operand::new(weight, dtype), LaunchNoise::new(noise, dtype), dtype, packing)
        } else {
            portable::embedding::<Self>(tokens, weight, noise, bias, rounding)
        }
    }

    fn integer_norm(
        x: CubeTensor,
        gain: VectorPrimitive<Self>,
        bias: IntegerBias<Self>,
        rounding: Rounding,
    ) -> CubeTensor {
        let n = size(&gain.values);
        let units = units(&x.client, n);
        let demand = norm_demand(units, n, extent(&x).max(held(&gain.noise)));
        if rounding == Rounding::Floor && size(&x) > 0 && runs(&x, &demand) {
            launch::norm(x, gain, units)
        } else {
            portable::norm::<Self>(x, gain, bias, rounding)
        }
    }

    fn integer_add(a: CubeTensor, b: CubeTensor, rounding: Rounding) -> CubeTensor {
        if rounding == Rounding::Floor && runs(&a, &by_element(3, size(&a))) {
            launch::add(a, b)
        } else {
            portable::add::<Self>(a, b, rounding)
        }
    }

    fn integer_gru(state: CubeTensor, starts: CubeTensor, forget: CubeGate, candidate: CubeGate) -> CubeTensor {
        let gates = [&forget, &candidate];
        let [sequences, width] = state.meta.shape().dims();
        let noises =
            gates.map(|gate| GateNoise { weight: is_there(&gate.weight_noise), bias: is_there(&gate.bias_noise) });
        let largest_rank = gates.map(|gate| rank(&gate.weight_noise)).into_iter().max().unwrap_or(1);
        let packing = Packing::new(&state.client, state.dtype);
        let tile = GruTile::new(&state.client, packing, [sequences, width], largest_rank, noises);
        let output = size(&starts) * width;
        let sizes = gates.map(|gate| {
            let noise = held(&gate.weight_noise).max(held(&gate.bias_noise));
            extent(&gate.input).max(extent(&gate.weight)).max(noise)
        });
        let largest = output.max(extent(&state)).max(sizes[0]).max(sizes[1]);
        let demand = tile.demand([size(&starts) / sequences.max(1), width], largest_rank, largest);
        if output > 0 && reads(&starts) && runs(&state, &demand) {
            let dtype = state.dtype;
            let gates = [forget, candidate].map(|gate| launch::GateOperands::new(gate, dtype));
            launch::gru(Operand::new(state, dtype), starts, gates, dtype, tile)
        } else {
            portable::gru::<Self>(state, starts, forget, candidate)
        }
    }

    fn integer_log_likelihood(
        logits: CubeTensor,
        targets: CubeTensor,
        members: usize,
        rounding: Rounding,
    ) -> CubeTensor {
        let [rows, classes] = [logits.meta.shape()[0] / members.max(1), logits.meta.shape()[1]];
        let units = units(&logits.client, rows * LANES);
        let demand = log_likelihood_demand(units, [rows, classes], extent(&logits));
        if rounding == Rounding::Floor && size(&logits) > 0 && reads(&targets) && runs(&logits, &demand) {
            launch::log_likelihood(logits, targets, members, units)
        } else {
            portable::log_likelihood::<Self>(logits, targets, members, rounding)
        }
    }

    fn integer_update(
        parameter: CubeTensor,
        noise: CubeTensor,
        scores: CubeTensor,
        rank: usize,
        votes: Votes,
        limit: i32,
    ) -> CubeTensor {
        let (pairs, largest) = (size(&scores), extent(&parameter).max(extent(&noise)));
        let tile = UpdateTile::new(&parameter.client, parameter.meta.shape(), rank, pairs);
        // Without pairs there is no noise to read.
        if size(&noise) == 0 || !runs(&parameter, &tile.demand(pairs, rank, largest)) {
            return portable::update::<Self>(parameter, noise, scores, rank, votes, limit);
        }
        let noise = Operand::new(noise, parameter.dtype);
        match tile {
            UpdateTile::Matrix(tile) => launch::matrix_update(parameter, noise, scores, rank, votes, limit, tile),
            UpdateTile::Vector(units) => {
                launch::vector_update(parameter, noise.by_value(), scores, votes, limit, units)
            }
        }
    }
}

/// The tile for `x·W`, if it runs.
fn product_tile(
    x: &CubeTensor,
    weight: &CubeTensor,
    noise: &CubeNoise,
    [d_input, d_output]: [usize; 2],
    of_bias: usize,
) -> Option<ProductTile> {
    let rows = x.meta.shape()[0];
    let packing = Packing::new(&weight.client, weight.dtype);
    let tile = ProductTile::new(&weight.client, packing, [rows, d_output], rank(noise));
    let largest = (rows * d_output).max(held(noise)).max(of_bias).max(extent(x)).max(extent(weight));
    (rows * d_output > 0 && runs(weight, &tile.demand(d_input, rank(noise), largest))).then_some(tile)
}

fn size(tensor: &CubeTensor) -> usize {
    tensor.meta.shape().num_elements()
}

fn is_there(noise: &CubeNoise) -> bool {
    matches!(noise, IntegerNoisePrimitive::Held(..))
}

/// Elements of the noise that is held, with those between its rows.
fn held(noise: &CubeNoise) -> usize {
    match noise {
        IntegerNoisePrimitive::None => 0,
        IntegerNoisePrimitive::Held(noise, _) => extent(noise),
    }
}

fn rank(noise: &CubeNoise) -> usize {
    match noise {
        IntegerNoisePrimitive::None => 1,
        IntegerNoisePrimitive::Held(_, members) => members.rank,
    }
}
