use super::*;
use crate::optimizer::OptimizerConfig;
use burn::module::ParamId;
use burn::tensor::{Device, Tensor, TensorData};

/// The formula in f64, for one weight.
struct Reference {
    m: f64,
    v: f64,
    sum: f64,
    weight: f64,
}

impl Reference {
    fn step(&mut self, time: i32, rate: f64, decay: f64, vote: f64) {
        let g = -vote;
        self.m = 0.9 * self.m + 0.1 * g;
        self.v = 0.95 * self.v + 0.05 * g * g;
        let (m, v) = (self.m / (1.0 - 0.9f64.powi(time)), self.v / (1.0 - 0.95f64.powi(time)));
        self.sum -= rate * (m / (v.sqrt() + 1e-8) + decay * self.weight);
        if self.sum.abs() >= 0.5 {
            self.weight = (self.weight + self.sum.signum()).clamp(-127.0, 127.0);
            self.sum -= self.sum.signum();
        }
    }
}

fn votes(time: i32) -> [f64; 5] {
    let wave = |phase: f64| (100.0 * (f64::from(time) * 0.7 + phase).sin()).round();
    [5.0, -3.0, wave(0.0), wave(2.0) + 40.0, 9.0]
}

const START: [f64; 5] = [0.0, -20.0, 7.0, 100.0, 126.0];

/// Weights of the given shape after 40 steps, the state saved and loaded before the given one.
fn trained_as<const D: usize>(shape: [usize; D], decay: f64, resumed_at: Option<i32>) -> Vec<f32> {
    let device = Device::flex();
    let config = OptimizerConfig::from(IntegerAdamWConfig::new().with_weight_decay(decay));
    let (mut optimizer, id) = (config.init(), ParamId::from(7));
    let tensor = |values: [f64; 5]| {
        Tensor::<D>::from_data(TensorData::new(values.map(|value| value as f32).to_vec(), shape), &device)
    };
    let mut weights = tensor(START);
    for time in 1..=40 {
        if resumed_at == Some(time) {
            let bytes = optimizer.to_record().into_bytes().expect("saves");
            let record = burn::optim::OptimizerRecord::from_bytes(bytes).expect("reads");
            optimizer = config.init().load_record(record);
        }
        weights = optimizer.step_integer(0.31.into(), id, weights, -tensor(votes(time)));
    }
    weights.into_data().try_to_vec().expect("f32")
}

fn trained(decay: f64, resumed_at: Option<i32>) -> Vec<f32> {
    trained_as([1, 5], decay, resumed_at)
}

#[test]
fn vectors_do_not_decay() {
    assert_eq!(trained_as([5], 0.01, None), trained_as([5], 0.0, None));
}

#[test]
fn steps_are_those_of_the_formula() {
    for decay in [0.0, 0.01] {
        let expected = std::array::from_fn::<f32, 5, _>(|i| {
            let mut reference = Reference { m: 0.0, v: 0.0, sum: 0.0, weight: START[i] };
            (1..=40).for_each(|time| reference.step(time, 0.31, decay, votes(time)[i]));
            reference.weight as f32
        });
        assert_eq!(trained(decay, None), expected, "decay {decay}");
    }
    assert_ne!(trained(0.0, None), trained(0.01, None), "canary");
    assert_eq!(trained(0.0, None)[..2], [12.0, -32.0]); // 40·0.31 units of unanimous votes, whole ones
    assert_eq!(trained(0.0, None)[4], 127.0);
}

#[test]
fn resumes_bit_for_bit() {
    for at in [1, 2, 17, 40] {
        assert_eq!(trained(0.01, Some(at)), trained(0.01, None), "at {at}");
    }
}

#[test]
fn refuses_what_cannot_be() {
    let new = IntegerAdamWConfig::new;
    for config in
        [new().with_beta_1(1.0), new().with_beta_2(-0.1), new().with_epsilon(0.0), new().with_weight_decay(f64::NAN)]
    {
        let error = config.validate().expect_err("refused").to_string();
        assert!(error.contains("beta_1"), "{error}");
    }
}
