//! Integer kernels, for int8 values in any type that a device has for them. Sums are int32 and exact: whatever the
//! tiles, every device gives the same bits.

mod add;
mod arithmetic;
mod embedding;
mod geometry;
mod gru;
mod launch;
mod layer_norm;
mod linear;
mod log_likelihood;
mod noise;
mod product;
mod strategy;
#[cfg(test)]
mod tests;
mod update;

use crate::integer::Votes;
use crate::key::{NoiseKey, PairRange};
use crate::ops::integer::{GatePrimitive, IntegerNoisePrimitive, IntegerOps};
use crate::ops::portable::integer as portable;
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use geometry::{GateNoise, GruTile, ProductTile};

type Noise = IntegerNoisePrimitive<CubeBackend>;
type Gate = GatePrimitive<CubeBackend>;

/// Buffers of the GRU's kernel, with the one for its scalar arguments.
const GRU_BUFFERS: u32 = 14;

impl IntegerOps for CubeBackend {
    fn integer_noise(like: CubeTensor, key: NoiseKey, pairs: PairRange, elements: usize) -> CubeTensor {
        if strategy::has_kernels(&like, pairs.count as usize * elements) {
            launch::noise(&like, key, pairs, elements)
        } else {
            portable::noise::<Self>(&like, key, pairs, elements)
        }
    }

    fn integer_linear(x: CubeTensor, weight: CubeTensor, noise: Noise) -> CubeTensor {
        let (rows, d_output) = (x.meta.shape()[0], weight.meta.shape()[1]);
        let tile = ProductTile::new(&weight.client, weight.dtype, [rows, d_output], rank(&noise));
        let largest = (rows * d_output).max(held(&noise)).max(size(&x)).max(size(&weight));
        let runs = rows * d_output > 0 && strategy::has_kernels(&weight, largest);
        if runs && strategy::fits(&weight, tile.shared_bytes(), 0) {
            launch::linear(x, weight, noise, tile)
        } else {
            portable::linear::<Self>(x, weight, noise)
        }
    }

    fn integer_embedding(tokens: CubeTensor, weight: CubeTensor, noise: Noise) -> CubeTensor {
        let output = tokens.meta.shape()[0] * weight.meta.shape()[1];
        if output > 0 && strategy::has_kernels(&weight, output.max(held(&noise)).max(size(&weight))) {
            launch::embedding(tokens, weight, noise)
        } else {
            portable::embedding::<Self>(tokens, weight, noise)
        }
    }

    fn integer_layer_norm(x: CubeTensor, weight: CubeTensor, noise: Noise) -> CubeTensor {
        if size(&x) > 0 && strategy::has_kernels(&weight, size(&x).max(held(&noise))) {
            launch::layer_norm(x, weight, noise)
        } else {
            portable::layer_norm::<Self>(x, weight, noise)
        }
    }

    fn integer_add(a: CubeTensor, b: CubeTensor) -> CubeTensor {
        if strategy::has_kernels(&a, size(&a)) { launch::add(a, b) } else { portable::add::<Self>(&[a, b]) }
    }

    fn integer_gru(state: CubeTensor, starts: CubeTensor, forget: Gate, candidate: Gate) -> CubeTensor {
        let gates = [&forget, &candidate];
        let width = state.meta.shape()[1];
        let noises =
            gates.map(|gate| GateNoise { weight: is_there(&gate.weight_noise), bias: is_there(&gate.bias_noise) });
        let largest_rank = gates.map(|gate| rank(&gate.weight_noise)).into_iter().max().unwrap_or(1);
        let tile = GruTile::new(&state.client, width, largest_rank, noises);
        let output = starts.meta.shape()[0] * width;
        let sizes = gates.map(|gate| size(&gate.weight).max(held(&gate.weight_noise)).max(held(&gate.bias_noise)));
        let largest = output.max(size(&state)).max(sizes[0]).max(sizes[1]);
        let runs = output > 0 && strategy::has_kernels(&state, largest);
        if runs && strategy::fits(&state, tile.shared_bytes(), GRU_BUFFERS) {
            launch::gru(state, starts, forget, candidate, tile)
        } else {
            portable::gru::<Self>(state, starts, forget, candidate)
        }
    }

    fn integer_log_likelihood(logits: CubeTensor, targets: CubeTensor, members: usize) -> CubeTensor {
        if strategy::has_kernels(&logits, size(&logits)) {
            launch::log_likelihood(logits, targets, members)
        } else {
            portable::log_likelihood::<Self>(logits, targets, members)
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
        // Without pairs there is no noise to read.
        if strategy::has_kernels(&parameter, size(&parameter).max(size(&noise))) && size(&noise) > 0 {
            let shape = parameter.meta.shape();
            let shape = if rank == 0 { [1, 1] } else { [shape[0], shape[1]] };
            let tile = ProductTile::new(&parameter.client, parameter.dtype, shape, 0).halved();
            launch::update(parameter, noise, scores, rank, votes, limit, tile)
        } else {
            portable::update::<Self>(parameter, noise, scores, rank, votes, limit)
        }
    }
}

fn size(tensor: &CubeTensor) -> usize {
    tensor.meta.shape().num_elements()
}

fn is_there(noise: &Noise) -> bool {
    matches!(noise, IntegerNoisePrimitive::Held(..))
}

/// Elements of the noise that is held.
fn held(noise: &Noise) -> usize {
    match noise {
        IntegerNoisePrimitive::None => 0,
        IntegerNoisePrimitive::Held(noise, _) => size(noise),
    }
}

fn rank(noise: &Noise) -> usize {
    match noise {
        IntegerNoisePrimitive::None => 1,
        IntegerNoisePrimitive::Held(_, members) => members.rank,
    }
}
