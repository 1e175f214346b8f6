//! Statistics of integer models, against values by hand.

use burn::module::{Module, Param, ParamId};
use burn::tensor::{Device, Int, Tensor};
use eggroll_train::Fitness;
use eggroll_train::diagnostics::{IntegerStatistics, changed_share, integer_statistics};

#[derive(Module, Debug)]
struct Pair {
    first: Param<Tensor<2, Int>>,
    second: Param<Tensor<1, Int>>,
}

fn pair(first: [[i32; 2]; 2], second: [i32; 3]) -> Pair {
    let device = Device::flex();
    Pair {
        first: Param::initialized(ParamId::new(), Tensor::from_ints(first, &device)),
        second: Param::initialized(ParamId::new(), Tensor::from_ints(second, &device)),
    }
}

#[test]
fn by_hand() {
    let found = IntegerStatistics::new("w", &[-126, 0, 2, 2, 2, 125, 127, 4]);
    // Sum 136; Σ(v − 17)² = 20449 + 289 + 3·225 + 11664 + 12100 + 169 = 45346
    assert_eq!((found.count, found.mean, found.deviation), (8, 17.0, (45346.0f64 / 8.0).sqrt()));
    // Five values once, one three times of eight: 5·(1/8)·3 + (3/8)·log2(8/3)
    let entropy = 15.0 / 8.0 + 0.375 * (8.0f64 / 3.0).log2();
    assert!((found.entropy - entropy).abs() < 1e-12, "{}", found.entropy);
    assert_eq!((found.saturated, found.zeros), (0.25, 0.125));
    assert_eq!((found.min, found.max), (-126, 127));
    assert_eq!(found.warnings(), ["w: 25.0 % of the values are saturated"]);
    let all: Vec<i64> = (-128..128).collect();
    assert_eq!(IntegerStatistics::new("all", &all).entropy, 8.0);
}

#[test]
fn edges() {
    let none = IntegerStatistics::new("none", &[]);
    assert_eq!((none.count, none.mean, none.deviation, none.entropy, none.min, none.max), (0, 0.0, 0.0, 0.0, 0, 0));
    let constant = IntegerStatistics::new("bias", &[0; 9]);
    assert_eq!((constant.deviation, constant.zeros), (0.0, 1.0));
    let warnings = constant.warnings();
    assert_eq!(warnings, ["bias: 100.0 % of the values are 0", "bias: the entropy of the values is 0.00 bits"]);
}

#[test]
fn thresholds_are_exclusive() {
    // A tenth saturated, half zeros, one bit of entropy: just allowed. One more is too many.
    let values = |saturated, zeros, total| -> Vec<i64> {
        (0..total)
            .map(|i| {
                if i < saturated {
                    127
                } else if i < saturated + zeros {
                    0
                } else {
                    i + 1
                }
            })
            .collect()
    };
    assert!(IntegerStatistics::new("w", &values(2, 10, 20)).warnings().is_empty());
    assert_eq!(IntegerStatistics::new("w", &values(3, 10, 20)).warnings().len(), 1);
    assert_eq!(IntegerStatistics::new("w", &values(2, 11, 20)).warnings().len(), 1);
    assert!(IntegerStatistics::new("w", &[3, 4]).warnings().is_empty());
    assert_eq!(IntegerStatistics::new("w", &[3, 3, 4]).warnings().len(), 1);
}

#[test]
#[should_panic(expected = "128 is not an int8 value")]
fn other_values_are_refused() {
    IntegerStatistics::new("w", &[0, 128]);
}

#[test]
fn models() {
    let model = pair([[1, -1], [0, 0]], [127, 127, -127]);
    let statistics = integer_statistics(&model);
    let paths: Vec<&str> = statistics.iter().map(|tensor| &tensor.path[..]).collect();
    assert_eq!(paths, ["first", "second"]);
    assert_eq!((statistics[0].zeros, statistics[1].saturated), (0.5, 1.0));
    let other = pair([[1, -2], [0, 1]], [127, 127, -127]);
    assert_eq!(changed_share(&model, &other), 2.0 / 7.0);
    assert_eq!(changed_share(&model, &model.clone()), 0.0);
}

#[test]
fn tied_pairs() {
    // Beyond what f32 tells apart: integers are compared as such.
    let exact = Fitness::from(vec![1 << 24, (1 << 24) + 1, 5, 5, -3, -3, 2, 1]);
    assert_eq!(exact.tied_pairs(), 0.5);
    assert_eq!(Fitness::from(vec![0.5, 0.5, f32::NAN, 1.0]).tied_pairs(), 0.5);
    assert_eq!(Fitness::from(Vec::<i32>::new()).tied_pairs(), 0.0);
}
