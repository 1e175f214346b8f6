//! Products, and rows of a table.

use super::{KernelNoise, LAYOUTS, Layout, PACKED, VALUES, WORDS, indices, int8, operand, read, read_words};
use crate::arithmetic::integer::Rounding;
use crate::arithmetic::integer::product_divisor;
use crate::arithmetic::integer::transformer::{head_shift, product_shift};
use crate::backend::cube::BiasKind;
use crate::backend::cube::integer::epilogue::Epilogue;
use crate::backend::cube::integer::geometry::ProductTile;
use crate::backend::cube::integer::launch::{self, ProductOperands};
use crate::backend::cube::integer::packed_int8::{Form, Packing};
use crate::testing::reference::integer as oracle;
use burn::tensor::DType;

/// Matrices with the rank of their noise. Below a word, over several tiles; a part of a word on one side;
/// exactly a tile, by words; a deep sum into one column of units.
const SHAPES: [([usize; 2], usize); 4] = [([3, 130], 1), ([40, 45], 3), ([64, 64], 3), ([130, 3], 1)];
/// Rows of a member: a tile of the output has rows of several members.
const ROWS: usize = 5;
const PAIRS: u32 = 3;

struct ProductKernelCase {
    x: Vec<i8>,
    weight: Vec<i8>,
    shape: [usize; 2],
    noise: KernelNoise,
}

impl ProductKernelCase {
    fn new(shape: [usize; 2], rank: usize) -> Self {
        let [d_input, d_output] = shape;
        let x = int8(2 * PAIRS as usize * ROWS * d_input, 1);
        Self {
            x,
            weight: int8(d_input * d_output, 2),
            shape,
            noise: KernelNoise::new(rank * (d_input + d_output), rank, PAIRS, 3),
        }
    }

    /// In the layouts of input, weight and noise.
    fn product(&self, [x, weight, held]: [Layout; 3], epilogue: Epilogue, divisor: i32) -> ProductOperands {
        let d_input = self.shape[0];
        ProductOperands {
            x: operand(&self.x, [self.x.len() / d_input, d_input], x),
            weight: operand(&self.weight, self.shape, weight),
            transposed: false,
            held: self.noise.on(held),
            bias: None,
            epilogue,
            divisor,
        }
    }

    fn run(&self, product: ProductOperands, packing: Packing) -> Vec<i8> {
        read(launch::product(product, DType::I32, self.tile(packing)))
    }

    fn tile(&self, packing: Packing) -> ProductTile {
        let client = operand(&[0], [1, 1], VALUES).tensor.client;
        let rank = self.noise.members.rank;
        ProductTile::new(&client, packing, [self.x.len() / self.shape[0], self.shape[1]], rank)
    }

    /// The layouts that kernels may find: noise by words only where its factors start with one.
    fn layouts(&self) -> impl Iterator<Item = [Layout; 3]> {
        let words = self.noise.members.rank == 1 || self.shape[0].is_multiple_of(4);
        LAYOUTS.iter().enumerate().map(move |(i, x)| {
            let held = LAYOUTS[(i + 3) % 4];
            let held = if words { held } else { Layout { form: Form::Value, ..held } };
            [*x, LAYOUTS[(i + 1) % 4], held]
        })
    }
}

#[test]
fn words_equal_oracle() {
    for (shape, rank) in SHAPES {
        let case = ProductKernelCase::new(shape, rank);
        let rows = case.x.chunks(shape[0]).enumerate();
        let row = |(r, x)| {
            let noise = Some(case.noise.member(r / ROWS));
            oracle::linear(x, &case.weight, noise, None, false, Rounding::Floor)
        };
        let expected: Vec<i8> = rows.flat_map(row).collect();
        for layouts in case.layouts() {
            for packing in PACKED {
                let product = case.product(layouts, Epilogue::Divide, product_divisor(shape[0]));
                let found = case.run(product, packing);
                assert!(found == expected, "{shape:?}, rank {rank}, {packing:?}, {layouts:?}");
            }
        }
        let gaps = [1, 1, 0].map(|layout| LAYOUTS[layout]);
        let product = case.product(gaps, Epilogue::Divide, product_divisor(shape[0]));
        assert!(case.run(product, Packing::One) == expected, "{shape:?}, rank {rank}, one value a word");
    }
}

#[test]
fn canary_other_noise_fails() {
    let (case, other) = (
        ProductKernelCase::new([64, 40], 1),
        ProductKernelCase { noise: KernelNoise::new(104, 1, PAIRS, 4), ..ProductKernelCase::new([64, 40], 1) },
    );
    let found = |case: &ProductKernelCase| case.run(case.product([WORDS; 3], Epilogue::Divide, 128), Packing::Dot);
    assert!(found(&case) != found(&other));
}

#[test]
fn rounded_products_equal_oracle() {
    for (index, (shape, rank)) in SHAPES.into_iter().enumerate() {
        let [d_input, d_output] = shape;
        let (case, activate) = (ProductKernelCase::new(shape, rank), index % 2 == 0);
        let (bias, of_bias) = (int8(d_output, 5), KernelNoise::new(2 * d_output, 1, PAIRS, 6));
        let row = |(r, x)| {
            let bias = oracle::vector(&bias, Some(of_bias.member(r / ROWS)), Rounding::Nearest);
            let noise = Some(case.noise.member(r / ROWS));
            oracle::linear(x, &case.weight, noise, Some(&bias), activate, Rounding::Nearest)
        };
        let expected: Vec<i8> = case.x.chunks(d_input).enumerate().flat_map(row).collect();
        // What is done to sums does not depend on layouts: one of values, and one of words.
        for layouts in case.layouts().step_by(2) {
            for packing in PACKED {
                let epilogue = Epilogue::Round { bias: BiasKind::Perturbed, activate };
                let product = ProductOperands {
                    bias: Some((operand(&bias, [1, d_output], VALUES).tensor, of_bias.on(VALUES))),
                    ..case.product(layouts, epilogue, product_shift(d_input) as i32)
                };
                assert!(case.run(product, packing) == expected, "{shape:?}, {packing:?}, {layouts:?}");
            }
        }
    }
}

/// The weight given as its transpose, and its noise with the factors the other way round.
#[test]
fn logits_equal_oracle() {
    for [vocab, width] in [[3, 2], [40, 45], [132, 64]] {
        let case = ProductKernelCase::new([vocab, width], 1);
        let (rows, weight) = (2 * PAIRS as usize * ROWS, int8(vocab * width, 2));
        let x = int8(rows * width, 1);
        let row = |(r, x)| oracle::head(x, &weight, Some(case.noise.member(r / ROWS)));
        let expected: Vec<i32> = x.chunks(width).enumerate().flat_map(row).collect();
        for layouts in [[WORDS; 3], [LAYOUTS[1], LAYOUTS[3], VALUES]] {
            let words = vocab.is_multiple_of(4);
            let held = if words { layouts[2] } else { VALUES };
            for packing in PACKED {
                let product = ProductOperands {
                    x: operand(&x, [rows, width], layouts[0]),
                    weight: operand(&weight, [vocab, width], layouts[1]),
                    transposed: true,
                    held: case.noise.on(held),
                    bias: None,
                    epilogue: Epilogue::Logits,
                    divisor: head_shift(width) as i32,
                };
                let client = product.x.tensor.client.clone();
                let tile = ProductTile::new(&client, packing, [rows, vocab], 1);
                let found = super::download(launch::product(product, DType::I32, tile));
                assert!(found == expected, "{vocab} × {width}, {packing:?}, {layouts:?}");
            }
        }
    }
}

#[test]
fn rows_of_a_table_equal_oracle() {
    // Noise by words, of rank 1; a rest of a word; words at every rank.
    for ([vocab, width], rank) in [([4, 130], 1), ([40, 45], 2), ([64, 64], 3)] {
        let noise = KernelNoise::new(rank * (vocab + width), rank, PAIRS, 3);
        let weight = int8(vocab * width, 1);
        // Part of what a unit takes, and more.
        for rows in [1, 6] {
            let tokens: Vec<usize> = (0..2 * PAIRS as usize * rows).map(|r| (r * 7 + 2) % vocab).collect();
            let row = |(r, token): (usize, &usize)| {
                let noise = Some(noise.member(r / rows));
                oracle::embedding(*token, &weight, width, noise, None, Rounding::Floor)
            };
            let expected: Vec<i8> = tokens.iter().enumerate().flat_map(row).collect();
            let words = (rank * vocab).is_multiple_of(4) && (rank == 1 || width.is_multiple_of(4));
            for layout in LAYOUTS {
                let held = if words { layout } else { Layout { form: Form::Value, ..layout } };
                for packing in [Packing::One, Packing::Apart] {
                    if packing == Packing::One && layout.form == Form::Word {
                        continue;
                    }
                    let weight = operand(&weight, [vocab, width], layout);
                    let y = launch::embedding(indices(&tokens), weight, noise.on(held), DType::I32, packing);
                    let by_words = packing != Packing::One && width.is_multiple_of(4);
                    let found = if by_words { read_words(y) } else { read(y) };
                    assert!(found == expected, "{vocab} × {width}, rank {rank}, {rows} rows, {packing:?}, {layout:?}");
                }
            }
        }
    }
}
