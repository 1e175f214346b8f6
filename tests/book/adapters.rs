//! A quantized model whose adapters are trained.

use burn::module::{Lora, QLora, Quantizer};
use burn::optim::AdamConfig;
use burn::tensor::TensorData;
use burn::tensor::quantization::{Calibration, QuantValue};
use eggroll::nn::{Linear, LinearConfig};
use eggroll::prelude::*;
use eggroll::run::parameter_digest;
use eggroll::train::Error;

#[derive(Module, Debug)]
struct Classifier {
    first: Linear,
    second: Linear,
}

impl Classifier {
    fn new(device: &Device) -> Self {
        Self { first: LinearConfig::new(8, 32).init(device), second: LinearConfig::new(32, 4).init(device) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::relu(self.first.forward_shared(x)))
    }

    fn accuracy(&self, x: &Tensor<2>, labels: &Tensor<1, Int>) -> f64 {
        let found: Vec<i32> = self.forward(x.clone()).argmax(1).into_data().iter().collect();
        let labels: Vec<i32> = labels.to_data().iter().collect();
        found.iter().zip(&labels).filter(|(a, b)| a == b).count() as f64 / labels.len() as f64
    }
}

/// Points, labelled by the largest of four sums; `turn` shifts which coordinates are summed.
fn points(turn: usize, device: &Device) -> (Tensor<2>, Tensor<1, Int>) {
    let value = |row: usize, column: usize| (((row * 8 + column) as f32) * 12.9898).sin();
    let rows: Vec<[f32; 8]> = (0..512).map(|row| std::array::from_fn(|column| value(row, column))).collect();
    let sum = |x: &[f32; 8], class: usize| x[(2 * class + turn) % 8] + x[(2 * class + turn + 1) % 8];
    let label = |x: &[f32; 8]| (0..4).max_by(|a, b| sum(x, *a).total_cmp(&sum(x, *b))).expect("a class") as i32;
    let labels: Vec<i32> = rows.iter().map(label).collect();
    let x = TensorData::new(rows.concat(), [512, 8]);
    (Tensor::from_data(x, device), Tensor::from_data(TensorData::new(labels, [512]), device))
}

fn learn(model: &mut Classifier, (x, labels): &(Tensor<2>, Tensor<1, Int>), generations: usize) -> Result<(), Error> {
    let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
        .with_population_size(64)
        .with_learning_rate(0.02)
        .try_init(model)?;
    for _ in 0..generations {
        let population = strategy.ask();
        let fitness =
            population.evaluate(|members| -members.row_cross_entropy(model.forward(x.clone()), labels.clone()));
        strategy.tell(model, population, fitness)?;
    }
    Ok(())
}

#[test]
fn adapters_of_a_quantized_model_learn() -> Result<(), Error> {
    let device = Device::flex();
    let (before, after) = (points(0, &device), points(1, &device));
    for seed in 0..3 {
        device.seed(seed);
        let mut model = Classifier::new(&device);
        learn(&mut model, &before, 200)?;
        let [own, other] = [&before, &after].map(|(x, labels)| model.accuracy(x, labels));
        // ANCHOR: adapt
        let eight_bits = device.settings().quantization.scheme.with_value(QuantValue::Q8S);
        let quantizer = Quantizer::new(Calibration::MinMax, eight_bits);
        let mut model = model.apply_qlora(QLora::new(Lora::new(4, 8.0), quantizer));
        // ANCHOR_END: adapt
        let quantized = model.accuracy(&before.0, &before.1);
        let base = model.first.weight.base().into_data();
        learn(&mut model, &after, 200)?;
        let adapted = model.accuracy(&after.0, &after.1);
        println!(
            "seed {seed}: {own} of the first task, {quantized} quantized; of the second {other}, {adapted} adapted"
        );
        assert!(own > 0.8 && quantized > own - 0.05 && other < 0.5 && adapted > 0.75);
        assert_eq!(model.first.weight.base().into_data(), base, "the quantized weight stays");
        let bytes = model.clone().into_record().into_bytes().expect("writes");
        let again = Classifier::new(&device).apply_qlora(QLora::new(
            Lora::new(4, 8.0),
            Quantizer::new(Calibration::MinMax, device.settings().quantization.scheme.with_value(QuantValue::Q8S)),
        ));
        let again = again.load_record(burn::store::ModuleRecord::from_bytes(bytes).expect("reads"));
        assert_eq!(parameter_digest(&again), parameter_digest(&model));
        // ANCHOR: merge
        let merged = model.clone().materialize(); // dense weights `W + s·A·B`, for any Burn program
        // ANCHOR_END: merge
        assert_eq!(merged.accuracy(&after.0, &after.1), adapted);
    }
    Ok(())
}
