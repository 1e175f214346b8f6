//! The integer transformer's products on devices, one launch each with bias and activation; its other operations are the portable ones.

use super::epilogue::Epilogue;
use super::geometry::ProductTile;
use super::launch::{self, Product};
use super::operands::{Held, Operand, plain};
use super::packed_int8::Packing;
use super::{Noise, held, rank};
use crate::arithmetic::integer::transformer::{head_shift, product_shift};
use crate::backend::cube::BiasKind;
use crate::backend::cube::eligibility::{extent, runs};
use crate::ops::integer::IntegerNoisePrimitive;
use crate::ops::integer::transformer::portable;
use crate::ops::integer::transformer::{IntegerBias, IntegerTransformerOps};
use burn::tensor::DType;
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;

impl IntegerTransformerOps for CubeBackend {
    fn integer_transformer_linear(
        x: CubeTensor,
        weight: CubeTensor,
        noise: Noise,
        bias: IntegerBias<Self>,
        activate: bool,
    ) -> CubeTensor {
        let (dtype, [d_input, d_output]) = (weight.dtype, weight.meta.shape().dims());
        let of_bias = match &bias {
            IntegerBias::Perturbed(_, noise, _) => extent(noise),
            IntegerBias::None | IntegerBias::Plain(_) => 0,
        };
        let Some(tile) = tile(&x, &weight, &noise, [d_input, d_output], of_bias) else {
            return portable::linear::<Self>(x, weight, noise, bias.into_vector(), activate);
        };
        let (kind, bias) = match bias {
            IntegerBias::None => (BiasKind::None, None),
            IntegerBias::Plain(bias) => (BiasKind::Plain, Some((bias, IntegerNoisePrimitive::None))),
            IntegerBias::Perturbed(bias, noise, members) => {
                (BiasKind::Perturbed, Some((bias, IntegerNoisePrimitive::Held(noise, members))))
            }
        };
        let product = Product {
            x: Operand::new(x, dtype),
            weight: Operand::new(weight, dtype),
            transposed: false,
            held: Held::new(noise, dtype),
            bias: bias.map(|(bias, noise)| (plain(bias, dtype), Held::new(noise, dtype).by_value())),
            epilogue: Epilogue::Round { bias: kind, activate },
            divisor: product_shift(d_input) as i32,
        };
        launch::product(product, dtype, tile)
    }

    fn integer_transformer_head(x: CubeTensor, embedding: CubeTensor, noise: Noise) -> CubeTensor {
        let (dtype, [vocab, width]) = (embedding.dtype, embedding.meta.shape().dims());
        let Some(tile) = tile(&x, &embedding, &noise, [width, vocab], 0) else {
            return portable::head::<Self>(x, embedding, noise);
        };
        let product = Product {
            x: Operand::new(x, dtype),
            weight: Operand::new(embedding, dtype),
            transposed: true,
            held: Held::new(noise, dtype),
            bias: None,
            epilogue: Epilogue::Logits,
            divisor: head_shift(width) as i32,
        };
        launch::product(product, DType::I32, tile)
    }
}

/// The tile for `x·W`, if it runs.
fn tile(
    x: &CubeTensor,
    weight: &CubeTensor,
    noise: &Noise,
    [d_input, d_output]: [usize; 2],
    of_bias: usize,
) -> Option<ProductTile> {
    let rows = x.meta.shape()[0];
    let packing = Packing::new(&weight.client, weight.dtype);
    let tile = ProductTile::new(&weight.client, packing, [rows, d_output], rank(noise));
    let largest = (rows * d_output).max(held(noise)).max(of_bias).max(extent(x)).max(extent(weight));
    (rows * d_output > 0 && runs(weight, &tile.demand(d_input, rank(noise), largest))).then_some(tile)
}
