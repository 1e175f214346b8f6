//! What a pass computes, and how long the device takes for that alone.

use super::columns::Column;
use super::network::Size;
use burn::tensor::{DType, Device, Distribution, Tensor};
use eggroll::core::{NoiseKey, PairRange, ops};
use std::hint::black_box;
use std::time::Instant;

/// Rows, depth and columns of the product that is timed.
const PRODUCT: [usize; 3] = [1024; 3];
/// Pairs that are drawn, and values of each.
const DRAWN: [usize; 2] = [64, 1 << 16];
/// Repetitions at most, of which the fastest counts.
const REPETITIONS: usize = 7;
/// Seconds after which none begins: software that stands in for a GPU takes seconds for one.
const LIMIT: f64 = 0.5;

/// What a pass computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Multiplications with additions.
    pub products: u64,
    /// Values of noise that are drawn.
    pub draws: u64,
}

impl Work {
    /// That of a column for a network of `size`.
    pub fn new(column: Column, size: Size, members: usize, rank: Option<usize>) -> Self {
        let (members, rank) = (members as u64, rank.unwrap_or(0) as u64);
        let pairs = members / 2;
        let plain = members * size.products();
        // A member's product with both factors of its noise.
        let perturbed = plain + members * rank * size.factors();
        let factors = pairs * rank * size.factors();
        match column {
            Column::Inference => Self { products: plain, draws: 0 },
            Column::Fly | Column::FlyRademacher => Self { products: perturbed, draws: factors },
            Column::Cached | Column::Table => Self { products: perturbed, draws: 0 },
            Column::Estimate => Self { products: pairs * rank * size.products(), draws: factors },
            Column::OpenEsFly | Column::OpenEsRademacher => {
                Self { products: 2 * plain, draws: pairs * size.products() }
            }
        }
    }
}

/// What a device does in a second of each kind of work, if it does no other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Multiplications with additions, in a product of matrices.
    pub products: f64,
    /// Normal values.
    pub draws: f64,
}

impl Rates {
    /// Times both on `device`.
    pub fn measure(device: &Device) -> Self {
        let [rows, depth, columns] = PRODUCT;
        let matrix = |rows, columns| Tensor::<2>::random([rows, columns], Distribution::Default, device);
        let (x, w) = (matrix(rows, depth), matrix(depth, columns));
        let product = fastest(device, || drop(black_box(x.clone().matmul(w.clone()))));
        let [pairs, values] = DRAWN;
        let key = NoiseKey::new(0, 0, 0);
        let range = PairRange::new(0, pairs as u32);
        let drawing = fastest(device, || drop(black_box(ops::noise(key, range, values, device, DType::F32))));
        let per_second = |sizes: &[usize], seconds: f64| sizes.iter().product::<usize>() as f64 / seconds;
        Self { products: per_second(&PRODUCT, product), draws: per_second(&DRAWN, drawing) }
    }

    /// Milliseconds of one kind after the other.
    pub fn milliseconds(&self, work: Work) -> f64 {
        1000.0 * (work.products as f64 / self.products + work.draws as f64 / self.draws)
    }
}

fn fastest(device: &Device, pass: impl Fn()) -> f64 {
    let seconds = |_| {
        let start = Instant::now();
        pass();
        device.sync().expect("the device finishes its work");
        start.elapsed().as_secs_f64()
    };
    let begun = Instant::now();
    let in_time = |repetition: &usize| *repetition == 0 || begun.elapsed().as_secs_f64() < LIMIT;
    (0..REPETITIONS).take_while(in_time).map(seconds).fold(f64::INFINITY, f64::min)
}
