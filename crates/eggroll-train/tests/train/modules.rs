//! Training of models with convolutions, normalizations and embeddings.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, RunningState};
use burn::nn::PaddingConfig2d;
use burn::optim::{AdamConfig, SgdConfig};
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use eggroll_core::ops::{DenseNoise, LowRankNoise, NoiseSource, dense_estimate, low_rank_estimate};
use eggroll_core::{EggrollConfig, NoiseKey, NoiserConfig, OpenEsConfig};
use eggroll_nn::{
    BatchNorm, BatchNormConfig, Conv2d, Conv2dConfig, Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear,
    LinearConfig,
};
use eggroll_train::*;

/// Tells horizontal lines from vertical ones.
#[derive(Module, Debug)]
struct Lines {
    first: Conv2d,
    norm: BatchNorm,
    second: Conv2d,
    output: Linear,
}

impl Lines {
    fn new(device: &Device) -> Self {
        Self {
            first: Conv2dConfig::new([1, 4], [3, 3]).init(device),
            norm: BatchNorm {
                running_mean: RunningState::new(Tensor::from_floats([0.1, -0.1, 0.2, 0.0], device)),
                ..BatchNormConfig::new(4).init(device)
            },
            second: Conv2dConfig::new([4, 6], [2, 2])
                .with_groups(2)
                .with_stride([2, 2])
                .with_padding(PaddingConfig2d::Same)
                .init(device),
            output: LinearConfig::new(6 * 4, 2).init(device),
        }
    }

    /// The same weights in every run: Burn's generator is global, and tests run side by side.
    fn steady(self) -> Self {
        struct Waves;
        impl ModuleMapper for Waves {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                if D == 1 {
                    return param;
                }
                let (shape, device) = (param.dims(), param.val().device());
                let wave = |i: usize| (i as f32 * 12.9898).sin() * 0.3;
                let values: Vec<f32> = (0..shape.iter().product()).map(wave).collect();
                param.map(|_| Tensor::from_data(TensorData::new(values, shape), &device))
            }
        }
        self.map(&mut Waves)
    }

    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = relu(self.norm.forward(self.first.forward_shared(images)));
        self.output.forward(relu(self.second.forward(x)).flatten(1, 3))
    }
}

/// Every line of an image of 6 by 6, with its direction.
fn lines(device: &Device) -> (Tensor<4>, Tensor<1, Int>) {
    let pixel = |i: usize, p: usize| if i < 6 { p / 6 == i } else { p % 6 == i - 6 };
    let pixels: Vec<f32> = (0..12 * 36).map(|e| f32::from(u8::from(pixel(e / 36, e % 36)))).collect();
    let targets: Vec<i32> = (0..12).map(|i| i / 6).collect();
    (
        Tensor::from_data(TensorData::new(pixels, [12, 1, 6, 6]), device),
        Tensor::from_data(TensorData::new(targets, [12]), device),
    )
}

fn parameters(model: &impl Module) -> Vec<Vec<f32>> {
    struct FloatValues(Vec<Vec<f32>>);
    impl ModuleVisitor for FloatValues {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(param.val().into_data().try_to_vec().expect("f32"));
        }
    }
    let mut values = FloatValues(Vec::new());
    model.visit(&mut values);
    values.0
}

#[test]
fn convolutions_learn_and_running_statistics_stay() {
    let device = Device::flex();
    for noiser in [NoiserConfig::from(EggrollConfig::new()), OpenEsConfig::new().into()] {
        let mut model = Lines::new(&device).steady();
        let before = parameters(&model);
        let (images, targets) = lines(&device);
        let mut strategy = EvolutionStrategyConfig::new(noiser, AdamConfig::new())
            .with_population_size(128)
            .with_sigma(0.05)
            .with_learning_rate(0.02)
            .with_credit(Credit::Parts)
            .init(&model);
        for _ in 0..150 {
            let population = strategy.ask();
            let fitness =
                population.evaluate(|members| -members.cross_entropy(model.forward(images.clone()), targets.clone()));
            strategy.tell(&mut model, population, fitness).expect("a generation");
        }
        let right = model.forward(images).argmax(1).reshape([12]).equal(targets).int().sum().into_scalar::<i64>();
        assert!(right >= 11, "{right} of 12");
        let states = [4, 5]; // running mean and variance, behind the first convolution, gain and bias
        for (i, (before, after)) in before.iter().zip(parameters(&model)).enumerate() {
            assert_eq!(*before == after, states.contains(&i), "{i}");
        }
    }
}

/// Scores of tokens by the embedding of the token before: the embedding is also the output layer.
#[derive(Module, Debug)]
struct TiedOutput {
    embedding: Embedding,
    norm: LayerNorm,
}

impl TiedOutput {
    fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        self.embedding.forward_transposed(self.norm.forward(self.embedding.forward_shared(tokens)))
    }
}

/// One generation of SGD moves a tied parameter by one estimate, that of all its uses together.
#[test]
fn a_tied_parameter_has_one_estimate() {
    let device = Device::flex();
    let (vocabulary, width, population, sigma) = (5, 3, 16, 0.1);
    for (noiser, rank) in [(NoiserConfig::from(EggrollConfig::new().with_rank(2)), 2), (OpenEsConfig::new().into(), 0)]
    {
        let model = TiedOutput {
            embedding: EmbeddingConfig::new(vocabulary, width).init(&device),
            norm: LayerNormConfig::new(width).init(&device),
        };
        let tokens = Tensor::<2, Int>::from_ints([[0, 4, 1], [2, 2, 3]], &device);
        let mut strategy = EvolutionStrategyConfig::new(noiser, SgdConfig::new())
            .with_population_size(population)
            .with_sigma(sigma)
            .with_learning_rate(1.0)
            .with_shaping(FitnessShaping::Raw)
            .with_gradient_scale(GradientScale::InverseSigma)
            .with_seed(3)
            .init(&model);
        assert_eq!(strategy.parameters().entries().len(), 3);
        let ask = strategy.ask();
        let fitness = ask.evaluate(|members| members.mean(model.forward(tokens.clone()).square()));
        let scores: Vec<f64> = fitness.values().iter().copied().map(f64::from).collect();
        let mut after = model.clone();
        strategy.tell(&mut after, ask, fitness).expect("a generation");

        let weights: Vec<f32> =
            scores.chunks(2).map(|f| ((f[0] - f[1]) / (population as f64 * sigma)) as f32).collect();
        let weights = Tensor::<1>::from_floats(&weights[..], &device);
        let key = NoiseKey::new(3, 0, 0);
        let step = match rank {
            0 => dense_estimate(
                weights,
                DenseNoise::new(key, sigma),
                NoiseSource::Drawn,
                0,
                vocabulary * width,
                DType::F32,
            )
            .reshape([vocabulary, width]),
            rank => {
                let noise = LowRankNoise::new(key, rank, sigma);
                low_rank_estimate(weights, noise, NoiseSource::Drawn, 0, [vocabulary, width], DType::F32)
            }
        };
        let moved = after.embedding.weight.val() - model.embedding.weight.val();
        let off: f32 = (moved.clone() - step).abs().max().into_scalar();
        let largest: f32 = moved.abs().max().into_scalar();
        assert!(off < 1e-4 * largest && largest > 0.0, "{off} of {largest}");
    }
}
