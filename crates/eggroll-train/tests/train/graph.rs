//! Models of `burn::nn` alone, trained as they are: the same generations as with perturbed modules, and a stated loss.

use crate::support::{layer_on as layer, sines_on as sines};
use burn::module::Module;
use burn::nn;
use burn::nn::attention::generate_autoregressive_mask;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::optim::{AdamConfig, SgdConfig};
use burn::tensor::kind::Basic;
use burn::tensor::{Device, Int, Tensor, activation};
use eggroll_core::{EggrollConfig, NoiseSourceConfig, NoiserConfig, OpenEsConfig, counters};
use eggroll_nn::graph::PopulationGraph;
use eggroll_nn::transformer::{TransformerEncoder, TransformerEncoderInput};
use eggroll_nn::{BatchNorm, Conv2d, Embedding, Linear};
use eggroll_train::{EvolutionStrategyConfig, Fitness};

#[derive(Module, Debug)]
struct Stock {
    first: nn::Linear,
    second: nn::Linear,
}

impl Stock {
    fn new(device: &Device) -> Self {
        Self { first: layer(4, 16, device).into(), second: layer(16, 2, device).into() }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::tanh(self.first.forward(x)))
    }
}

#[derive(Module, Debug)]
struct Twin {
    first: Linear,
    second: Linear,
}

impl Twin {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(activation::tanh(self.first.forward(x)))
    }
}

impl From<Stock> for Twin {
    fn from(Stock { first, second }: Stock) -> Self {
        Self { first: first.into(), second: second.into() }
    }
}

fn devices() -> Vec<Device> {
    vec![
        #[cfg(feature = "flex")]
        Device::flex(),
        #[cfg(feature = "ndarray")]
        {
            #[expect(deprecated, reason = "Burn deprecates the backend; users still ask for it")]
            Device::ndarray()
        },
        #[cfg(feature = "wgpu")]
        Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
    ]
}

fn graph(model: &Stock, x: Tensor<2>) -> PopulationGraph<Stock, Tensor<2>, Tensor<2>> {
    PopulationGraph::trace(model, x, Stock::forward).expect("traced")
}

fn values(fitness: &Fitness) -> Vec<f32> {
    fitness.values().to_vec()
}

/// The same noise, the same operations: on the CPU the same bits, whatever the chunks.
#[test]
fn fitness_is_that_of_perturbed_modules() {
    for device in devices() {
        let stock = Stock::new(&device);
        let twin = Twin::from(stock.clone());
        let x = sines(20, &device).reshape([5, 4]);
        let net = graph(&stock, x.clone());
        let exact = !format!("{device:?}").contains("Wgpu");
        for noiser in [NoiserConfig::from(EggrollConfig::new().with_rank(2)), OpenEsConfig::new().into()] {
            for (chunk, source) in
                [(2, NoiseSourceConfig::OnTheFly), (6, NoiseSourceConfig::Cached), (64, NoiseSourceConfig::OnTheFly)]
            {
                let config = EvolutionStrategyConfig::new(noiser.clone(), SgdConfig::new())
                    .with_population_size(20)
                    .with_chunk_size(chunk)
                    .with_noise_source(source);
                let population = config.init(&stock).ask();
                let found = population
                    .evaluate(|members| members.mean(net.forward(&stock, members.repeat(x.clone())).square()));
                let parallel = population
                    .evaluate(|members| members.mean(net.forward(&stock, members.repeat(x.clone())).square()));
                let population = config.init(&twin).ask();
                let expected =
                    population.evaluate(|members| members.mean(twin.forward(members.repeat(x.clone())).square()));
                let shared = config
                    .init(&stock)
                    .ask()
                    .evaluate(|members| members.mean(net.forward_shared(&stock, x.clone()).square()));
                let twin_shared = config.init(&twin).ask().evaluate(|members| {
                    let hidden = activation::tanh(twin.first.forward_shared(x.clone()));
                    members.mean(twin.second.forward(hidden).square())
                });
                if exact {
                    assert_eq!(values(&shared), values(&twin_shared));
                }
                let other = config
                    .clone()
                    .with_seed(77)
                    .init(&twin)
                    .ask()
                    .evaluate(|members| members.mean(twin.forward(members.repeat(x.clone())).square()));
                if exact {
                    assert_eq!(values(&found), values(&expected));
                    assert_eq!(values(&parallel), values(&expected));
                } else {
                    for (found, expected) in values(&found).iter().zip(values(&expected)) {
                        assert!((found - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{found} {expected}");
                    }
                }
                assert_ne!(values(&found), values(&other), "another seed is another population");
            }
        }
    }
}

/// One perturbed operation for each layer, and nothing read to the host except the fitness.
#[test]
fn launches_and_host_reads_are_those_of_perturbed_modules() {
    let device = Device::flex();
    let stock = Stock::new(&device);
    let twin = Twin::from(stock.clone());
    let x = sines(20, &device).reshape([5, 4]);
    let net = graph(&stock, x.clone());
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new())
        .with_population_size(20)
        .with_chunk_size(4);
    let count = |evaluate: &dyn Fn()| {
        let before = counters::snapshot();
        evaluate();
        counters::snapshot() - before
    };
    let (graph_population, twin_population) = (config.init(&stock).ask(), config.init(&twin).ask());
    let found = count(&|| {
        graph_population.evaluate(|members| members.mean(net.forward(&stock, members.repeat(x.clone())).square()));
    });
    let expected = count(&|| {
        twin_population.evaluate(|members| members.mean(twin.forward(members.repeat(x.clone())).square()));
    });
    assert_eq!(found, expected);
    assert_eq!((found.host_reads, found.noise_bytes), (1, 0));
    let shared = count(&|| {
        graph_population.evaluate(|members| members.mean(net.forward_shared(&stock, x.clone()).square()));
    });
    assert_eq!(shared, expected);
}

/// The weights of today are used in every generation, without another recording.
#[test]
fn a_stock_model_trains() {
    for device in devices() {
        let mut model = Stock::new(&device);
        let x = sines(32, &device).reshape([8, 4]);
        let y = (x.clone().slice_dim(1, 0..2) * 1.5 - x.clone().slice_dim(1, 2..4)).sin();
        let net = graph(&model, x.clone());
        let loss = |model: &Stock| -> f32 { (model.forward(x.clone()) - y.clone()).square().mean().into_scalar() };
        let first = loss(&model);
        let config = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(2), AdamConfig::new())
            .with_population_size(64)
            .with_learning_rate(0.05)
            .with_seed(3);
        let mut strategy = config.init(&model);
        for _ in 0..120 {
            let population = strategy.ask();
            let fitness = population.evaluate(|members| {
                let error = net.forward(&model, members.repeat(x.clone())) - members.repeat(y.clone());
                -members.mean(error.square())
            });
            strategy.tell(&mut model, population, fitness).expect("every parameter was perturbed");
        }
        let last = loss(&model);
        assert!(first > 0.2 && last < 0.03, "{first} {last}");
    }
}

/// Compares the fitness of a stock model's members with that of its perturbed drop-in replacement's.
fn assert_like_twin<
    S: Module + Sync + 'static,
    T: Module + Sync,
    K: Basic + 'static,
    const A: usize,
    const D: usize,
>(
    (stock, twin): (&S, &T),
    x: &Tensor<A, K>,
    forward: fn(&S, Tensor<A, K>) -> Tensor<D>,
    forward_twin: fn(&T, Tensor<A, K>) -> Tensor<D>,
) {
    let net = PopulationGraph::trace(stock, x.clone(), forward).expect("traced");
    for noiser in [NoiserConfig::from(EggrollConfig::new().with_rank(2)), OpenEsConfig::new().into()] {
        let config = EvolutionStrategyConfig::new(noiser, SgdConfig::new()).with_population_size(12).with_chunk_size(6);
        let of_twin = |config: &EvolutionStrategyConfig| {
            let score = |y: Tensor<D>, members: &eggroll_train::MemberChunk| members.mean(y.square());
            let population = config.init(twin).ask();
            values(&population.evaluate(|members| score(forward_twin(twin, members.repeat(x.clone())), members)))
        };
        let population = config.init(stock).ask();
        let found = population.evaluate(|members| members.mean(net.forward(stock, members.repeat(x.clone())).square()));
        let (found, expected, other) = (values(&found), of_twin(&config), of_twin(&config.clone().with_seed(77)));
        let distance =
            |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs() / b.abs()).fold(0.0f32, f32::max);
        assert!(distance(&found, &expected) < 1e-4, "{found:?} {expected:?}");
        assert!(distance(&found, &other) > 1e-3, "canary: another seed is another population");
    }
}

#[derive(Module, Debug)]
struct StockCnn {
    convolution: nn::conv::Conv2d,
    norm: nn::BatchNorm,
    pool: MaxPool2d,
    output: nn::Linear,
}

#[derive(Module, Debug)]
struct TwinCnn {
    convolution: Conv2d,
    norm: BatchNorm,
    pool: MaxPool2d,
    output: Linear,
}

#[test]
fn a_convolutional_network_is_like_its_twin() {
    for device in devices() {
        let stock = StockCnn {
            convolution: nn::conv::Conv2dConfig::new([2, 4], [3, 3]).init(&device),
            norm: nn::BatchNormConfig::new(4).init(&device),
            pool: MaxPool2dConfig::new([2, 2]).init(),
            output: nn::LinearConfig::new(36, 3).init(&device),
        };
        let StockCnn { convolution, norm, pool, output } = stock.clone();
        let twin = TwinCnn { convolution: convolution.into(), norm: norm.into(), pool, output: output.into() };
        let x = sines(3 * 2 * 64, &device).reshape([3, 2, 8, 8]);
        assert_like_twin(
            (&stock, &twin),
            &x,
            |net, x| {
                let x = activation::relu(net.norm.forward(net.convolution.forward(x)));
                net.output.forward(net.pool.forward(x).flatten::<2>(1, 3))
            },
            |net, x| {
                let x = activation::relu(net.norm.forward(net.convolution.forward(x)));
                net.output.forward(net.pool.forward(x).flatten::<2>(1, 3))
            },
        );
    }
}

#[derive(Module, Debug)]
struct StockEncoder {
    tokens: nn::Embedding,
    encoder: nn::transformer::TransformerEncoder,
    output: nn::Linear,
}

#[derive(Module, Debug)]
struct TwinEncoder {
    tokens: Embedding,
    encoder: TransformerEncoder,
    output: Linear,
}

#[test]
fn a_transformer_encoder_is_like_its_twin() {
    for device in devices() {
        let stock = StockEncoder {
            tokens: nn::EmbeddingConfig::new(11, 8).init(&device),
            encoder: nn::transformer::TransformerEncoderConfig::new(8, 16, 2, 2).init(&device),
            output: nn::LinearConfig::new(8, 3).init(&device),
        };
        let StockEncoder { tokens, encoder, output } = stock.clone();
        let twin = TwinEncoder { tokens: tokens.into(), encoder: encoder.into(), output: output.into() };
        let x = (Tensor::<1, Int>::arange(0..15, &device).mul_scalar(7) % 11).reshape([3, 5]);
        assert_like_twin(
            (&stock, &twin),
            &x,
            |net, tokens| {
                let [batch, length] = tokens.dims();
                let mask = generate_autoregressive_mask(batch, length, &tokens.device());
                let input = nn::transformer::TransformerEncoderInput::new(net.tokens.forward(tokens));
                net.output.forward(net.encoder.forward(input.mask_attn(mask)))
            },
            |net, tokens| {
                let [batch, length] = tokens.dims();
                let mask = generate_autoregressive_mask(batch, length, &tokens.device());
                let input = TransformerEncoderInput::new(net.tokens.forward(tokens));
                net.output.forward(net.encoder.forward(input.mask_attn(mask)))
            },
        );
    }
}
