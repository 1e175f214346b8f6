//! Which kernel multiplies, and that one always does.

use super::*;
use crate::backend::cube::device::tested;
use crate::rng::philox::philox4x32;
use burn::tensor::{TensorData, try_read_sync};
use cubek::matmul::multi_level::Strategy;
use cubek::matmul::routine::BlueprintStrategy;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

const ALL: [MatmulAlgorithm; 5] = [
    MatmulAlgorithm::TensorMaps,
    MatmulAlgorithm::TwoStages,
    MatmulAlgorithm::OneStage,
    MatmulAlgorithm::Units,
    MatmulAlgorithm::Naive,
];

/// Multiples of 1/8 in `[−1, 1)`: products and their sums are exact, in TF32 and f16 too.
fn coarse(len: usize, salt: u32) -> Vec<f32> {
    let word = |i| philox4x32([i, salt, 3, u32::MAX], [0; 2])[0];
    (0..len as u32).map(|i| (word(i) >> 28) as f32 / 8.0 - 1.0).collect()
}

fn tensor(values: &[f32], shape: [usize; 2], dtype: DType) -> CubeTensor {
    let data = TensorData::new(values.to_vec(), shape);
    CubeBackend::float_cast(CubeBackend::float_from_data(data, &tested()), dtype.into())
}

fn read(tensor: CubeTensor) -> Vec<f32> {
    let tensor = CubeBackend::float_cast(tensor, DType::F32.into());
    let data = try_read_sync(CubeBackend::float_into_data(tensor)).expect("a device that is read at once");
    data.expect("the kernel runs").try_to_vec().expect("an f32 tensor")
}

fn expected(lhs: &[f32], rhs: &[f32], [m, k, n]: [usize; 3]) -> Vec<f32> {
    let element = |i: usize, j: usize| (0..k).map(|l| lhs[i * k + l] * rhs[l * n + j]).sum();
    (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| element(i, j)).collect()
}

#[test]
fn ways_follow_from_the_device_and_the_size() {
    for sizes in [[1, 1, 1], [64, 512, 512], [4096, 8192, 8192]] {
        assert_eq!(ways(false, sizes), [MatmulAlgorithm::Units, MatmulAlgorithm::Naive]);
    }
    for sizes in [[64, 512, 512], [1024, 8192, 8192]] {
        assert_eq!(ways(true, sizes), ALL);
    }
    for sizes in [[63, 512, 512], [64, 511, 512], [64, 512, 511], [1, 1, 1]] {
        assert_eq!(ways(true, sizes), &ALL[2..]);
    }
}

#[test]
fn f32_rounds_unless_told_otherwise() {
    assert!(may_round(None) && may_round(Some("tf32")));
    assert!(!may_round(Some("f32")));
}

#[test]
#[should_panic(expected = "EGGROLL_DEVICE_F32=bf16: either `tf32` or `f32`")]
fn refuses_other_precisions() {
    may_round(Some("bf16"));
}

/// Every way that runs gives the same, and where the first does not run, a later one does.
#[test]
fn what_cannot_run_is_passed_over() {
    for sizes in [[1, 1, 1], [3, 17, 5], [65, 130, 33], [2, 255, 257], [64, 512, 512]] {
        let [m, k, n] = sizes;
        let (a, b) = (coarse(m * k, 1), coarse(k * n, 2));
        let (lhs, rhs) = (tensor(&a, [m, k], DType::F32), tensor(&b, [k, n], DType::F32));
        let expected = expected(&a, &b, sizes);
        let (way, found) = first_that_runs(&lhs, &rhs, DType::F32, &ALL);
        let cores = has_tensor_cores(&lhs.client, DType::F32, DType::F32, Precision::Chosen);
        assert!(cores || way == MatmulAlgorithm::Units, "{sizes:?}: {way:?}");
        assert!(read(found) == expected, "{sizes:?}");
        for way in [MatmulAlgorithm::Units, MatmulAlgorithm::Naive] {
            assert!(read(first_that_runs(&lhs, &rhs, DType::F32, &[way]).1) == expected, "{sizes:?}, {way:?}");
        }
        let other = tensor(&coarse(k * n, 4), [k, n], DType::F32);
        assert!(k == 1 || read(product(lhs, other, DType::F32, Precision::F32)) != expected, "canary: {sizes:?}");
    }
}

#[test]
#[should_panic(expected = "no kernel for a product [2, 3, 4] of F32")]
fn nothing_to_try_is_said() {
    let (lhs, rhs) = (tensor(&[0.0; 6], [2, 3], DType::F32), tensor(&[0.0; 12], [3, 4], DType::F32));
    first_that_runs(&lhs, &rhs, DType::F32, &[]);
}

/// Factors of other orders and other types, and a result of f32 from factors of f16.
#[test]
fn reads_strides_and_types() {
    let sizes = [9, 40, 24];
    let [m, k, n] = sizes;
    let (a, b) = (coarse(m * k, 1), coarse(k * n, 2));
    let expected = expected(&a, &b, sizes);
    let swapped = |values: &[f32], [rows, columns]: [usize; 2], dtype| {
        let turned: Vec<f32> = (0..rows * columns).map(|i| values[i % rows * columns + i / rows]).collect();
        CubeBackend::float_swap_dims(tensor(&turned, [columns, rows], dtype), 0, 1)
    };
    for dtype in [DType::F32, DType::F16] {
        let (lhs, rhs) = (tensor(&a, [m, k], dtype), tensor(&b, [k, n], dtype));
        let turned = (swapped(&a, [m, k], dtype), swapped(&b, [k, n], dtype));
        for (lhs, rhs) in [(lhs.clone(), rhs.clone()), (lhs, turned.1.clone()), (turned.0, turned.1)] {
            for precision in [Precision::Chosen, Precision::F32] {
                let found = product(lhs.clone(), rhs.clone(), DType::F32, precision);
                assert_eq!(found.dtype, DType::F32);
                assert!(read(found) == expected, "{dtype:?}, {precision:?}");
            }
        }
    }
}

#[test]
fn empty_products() {
    for [m, k, n] in [[0, 3, 2], [3, 0, 2], [3, 2, 0]] {
        let (lhs, rhs) = (tensor(&vec![1.0; m * k], [m, k], DType::F32), tensor(&vec![1.0; k * n], [k, n], DType::F32));
        assert_eq!(read(product(lhs, rhs, DType::F32, Precision::Chosen)), vec![0.0; m * n]);
    }
}

/// Multiply-adds of a launch in TFLOP/s and milliseconds, and whether its result is right: what [`ways`] is chosen by.
fn measured(
    sizes: [usize; 3],
    client: &Client,
    run: impl Fn() -> Result<CubeTensor, String>,
    expected: &[f32],
) -> String {
    const REPEATS: u32 = 20;
    let timed = || {
        let right = read(run()?) == expected;
        let start = Instant::now();
        (0..REPEATS).for_each(|_| drop(run()));
        cubecl::future::block_on(client.sync()).map_err(|error| error.to_string())?;
        Ok::<_, String>((right, start.elapsed().as_secs_f64() / f64::from(REPEATS)))
    };
    match catch_unwind(AssertUnwindSafe(timed)) {
        Ok(Ok((right, seconds))) => {
            let tera = 2.0 * sizes.iter().product::<usize>() as f64 / seconds / 1e12;
            format!("{tera:.1} TFLOP/s, {:.4} ms, right: {right}", 1e3 * seconds)
        }
        Ok(Err(refusal)) => refusal,
        Err(_) => "panicked".to_owned(),
    }
}

fn measure_strategies(dtype: DType, sizes: [usize; 3]) {
    macro_rules! by_default {
        ($($strategy:ident),*) => { [$((stringify!($strategy), Strategy::$strategy(BlueprintStrategy::default()))),*] };
    }
    let others = by_default!(
        SpecializedTmaMma,
        SpecializedCyclicMma,
        DoubleTmaMma,
        SimpleTmaMma,
        SimpleAsyncCyclicMma,
        SimpleCyclicMma,
        DoubleCyclicMma,
        OrderedDoubleMma,
        SpecializedTmaCmma,
        OrderedDoubleCmma,
        DoubleCyclicCmma,
        SimpleCyclicCmma,
        SimpleUnit
    );
    let ours = ("OrderedDoubleCmma of two stages", Strategy::OrderedDoubleCmma(launch::two_stages()));
    let [m, k, n] = sizes;
    let (lhs, rhs) = (tensor(&coarse(m * k, 1), [m, k], dtype), tensor(&coarse(k * n, 2), [k, n], dtype));
    let expected = read(product(lhs.clone(), rhs.clone(), dtype, Precision::F32));
    for (name, strategy) in [ours].into_iter().chain(others) {
        let run = || launch::by_strategy(lhs.clone(), rhs.clone(), dtype, strategy.clone()).map_err(|e| e.to_string());
        println!("{dtype:?} {sizes:?} {name}: {}", measured(sizes, &lhs.client, run, &expected));
    }
}

#[test]
#[ignore = "measures for a minute: --ignored --nocapture"]
fn measures_strategies_of_bf16() {
    measure_strategies(DType::BF16, [1024, 8192, 8192]);
}

#[test]
#[ignore = "measures for a minute: --ignored --nocapture"]
fn measures_strategies_of_f32() {
    measure_strategies(DType::F32, [2048, 256, 2048]);
}

/// A product with the low-rank part of every member, by every way.
#[test]
#[ignore = "measures for a minute: --ignored --nocapture"]
fn measures_perturbed_products() {
    for sizes @ [m, k, n] in [[1024, 8192, 8192], [512, 2048, 2048]] {
        let dtype = DType::BF16;
        let (lhs, rhs) = (tensor(&coarse(m * k, 1), [m, k], dtype), tensor(&coarse(k * n, 2), [k, n], dtype));
        let parts = PerturbedParts {
            t: tensor(&coarse(m, 3), [m, 1], DType::F32),
            factors: tensor(&coarse(m / 2 * n, 4), [m / 2, n], dtype),
            bias: None,
            pair_rows: 2,
            depth: 1,
        };
        let by = |way| launch::perturbed(lhs.clone(), rhs.clone(), &parts, way).map_err(|refusal| refusal.to_string());
        let expected = read(by(MatmulAlgorithm::OneStage).expect("tensor cores"));
        for way in [MatmulAlgorithm::TensorMaps, MatmulAlgorithm::TwoStages, MatmulAlgorithm::OneStage] {
            println!("perturbed {sizes:?} {way:?}: {}", measured(sizes, &lhs.client, || by(way), &expected));
        }
    }
}
