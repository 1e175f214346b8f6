//! Tied fields: one parameter, whatever steps.

use crate::support::{bytes, layer, message, sines};
use burn::module::{Module, Param, ParamId};
use burn::nn;
use burn::optim::{AdamConfig, GradientsParams, SgdConfig};
use burn::tensor::activation::tanh;
use burn::tensor::{DType, Device, Int, Tensor};
use eggroll_core::{EggrollConfig, NoiserConfig, OpenEsConfig, QEggrollConfig, TableError};
use eggroll_nn::graph::PopulationGraph;
use eggroll_nn::{Embedding, Linear, integer};
use eggroll_train::{
    Error, EvolutionStrategyConfig, Fitness, IntegerAdamWConfig, MemberChunk, OptimizerConfig, Population,
};

const TIMES: usize = 3;

/// One layer in three fields.
#[derive(Module, Debug)]
struct TiedLayers<L: Module> {
    layers: Vec<L>,
}

impl<L: Module> TiedLayers<L> {
    fn of(layer: L) -> Self {
        Self { layers: vec![layer; TIMES] }
    }

    fn forward(&self, x: Tensor<2>, layer: impl Fn(&L, Tensor<2>) -> Tensor<2>) -> Tensor<2> {
        self.layers.iter().fold(x, |x, field| tanh(layer(field, x)))
    }

    fn is_tied(&self) -> bool {
        self.layers.iter().all(|field| bytes(field) == bytes(&self.layers[0]))
    }
}

/// The same layer in one field.
fn thrice(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    (0..TIMES).fold(x, |x, _| tanh(layer.forward(x)))
}

fn input() -> Tensor<2> {
    sines(20).reshape([5, 4])
}

fn score(members: &MemberChunk, y: Tensor<2>) -> Tensor<1> {
    -members.mean((y - 0.3).square())
}

fn optimizer(name: &str) -> OptimizerConfig {
    name.parse().expect("registered")
}

fn config(noiser: impl Into<NoiserConfig>, optimizer: impl Into<OptimizerConfig>) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(noiser, optimizer).with_population_size(8).with_sigma(0.1)
}

/// Three generations.
fn train<M: Module>(
    config: &EvolutionStrategyConfig,
    mut model: M,
    evaluate: impl Fn(&M, &Population) -> Fitness,
) -> M {
    let mut strategy = config.init(&model);
    for _ in 0..3 {
        let population = strategy.ask();
        let fitness = evaluate(&model, &population);
        strategy.tell(&mut model, population, fitness).expect("a generation");
    }
    model
}

fn evaluated(config: &EvolutionStrategyConfig, model: TiedLayers<Linear>) -> TiedLayers<Linear> {
    train(config, model, |model, population| {
        population.evaluate(|members| score(members, model.forward(members.repeat(input()), Linear::forward)))
    })
}

/// As one field that is used three times, whatever steps.
#[test]
fn tied_fields_move_as_one() {
    let names = OptimizerConfig::NAMES.iter().filter(|name| !name.starts_with("integer_"));
    let configs = names.map(|name| config(EggrollConfig::new(), optimizer(name)));
    let adam = || config(OpenEsConfig::new(), optimizer("adam"));
    let more = [
        adam().with_anchor_decay(0.1),
        adam().with_clip_norm(1e-3),
        config(EggrollConfig::new(), SgdConfig::new()).with_anchor_decay(0.1),
    ];
    for config in configs.chain(more) {
        let layer = layer(4, 4);
        let found = evaluated(&config, TiedLayers::of(layer.clone()));
        let expected = train(&config, layer.clone(), |layer, population| {
            population.evaluate(|members| score(members, thrice(layer, members.repeat(input()))))
        });
        assert!(found.is_tied(), "{config:?}");
        assert_eq!(bytes(&found.layers[0]), bytes(&expected), "{config:?}");
        assert_ne!(bytes(&found.layers[0]), bytes(&layer), "{config:?} moves nothing");
    }
}

#[test]
fn tied_fields_of_stock_layers_move_as_one() {
    for name in OptimizerConfig::NAMES.iter().filter(|name| !name.starts_with("integer_")) {
        let config = config(EggrollConfig::new(), optimizer(name));
        let stock = || TiedLayers::of(nn::Linear::from(layer(4, 4)));
        let forward = |model: &TiedLayers<nn::Linear>, x: Tensor<2>| model.forward(x, nn::Linear::forward);
        let each = train(&config, stock(), |model, population| {
            population.evaluate_each(model, |member| -(forward(&member, input()) - 0.3).square().mean())
        });
        let graph = PopulationGraph::trace(&stock(), input(), forward).expect("a graph");
        let graph = train(&config, stock(), |model, population| {
            population.evaluate(|members| score(members, graph.forward(model, members.repeat(input()))))
        });
        for found in [each, graph] {
            assert!(found.is_tied() && bytes(&found) != bytes(&stock()), "{name}");
        }
    }
}

#[test]
fn tied_fields_of_half_precision_move_as_one() {
    for dtype in [DType::BF16, DType::F16] {
        let Linear { weight, bias } = layer(4, 4);
        let half = Linear { weight: weight.map(|w| w.cast(dtype)), bias: bias.map(|bias| bias.map(|b| b.cast(dtype))) };
        for master_weights in [false, true] {
            let config = config(EggrollConfig::new(), optimizer("adam")).with_learning_rate(0.1);
            let config = config.with_master_weights(master_weights);
            let found = train(&config, TiedLayers::of(half.clone()), |model, population| {
                population.evaluate(|members| {
                    let y = model.forward(members.repeat(input()).cast(dtype), Linear::forward);
                    score(members, y.cast(DType::F32))
                })
            });
            assert!(found.is_tied() && bytes(&found.layers[0]) != bytes(&half), "{dtype:?} {master_weights}");
        }
    }
}

/// The optimizer's state takes one step too.
#[test]
fn tied_fields_of_integers_move_as_one() {
    let noiser = || QEggrollConfig::new().with_threshold(0.5, 1);
    let configs = [
        EvolutionStrategyConfig::integer(noiser()),
        EvolutionStrategyConfig::new(noiser(), IntegerAdamWConfig::new()).with_learning_rate(0.5),
    ];
    let layer = || integer::LinearConfig::new(4, 4).init(&Device::flex());
    for config in configs.map(|config| config.with_population_size(8)) {
        let (layer, x) = (layer(), Tensor::<2, Int>::ones([2, 4], &Device::flex()) * 16);
        let score = |members: &MemberChunk, y: Tensor<2, Int>| members.mean(y.float());
        let found = train(&config, TiedLayers::of(layer.clone()), |model, population| {
            population.evaluate(|members| {
                let forward = |x, field: &integer::Linear| field.forward(x);
                score(members, model.layers.iter().fold(members.repeat(x.clone()), forward))
            })
        });
        let expected = train(&config, layer.clone(), |layer, population| {
            population
                .evaluate(|members| score(members, (0..TIMES).fold(members.repeat(x.clone()), |x, _| layer.forward(x))))
        });
        assert!(found.is_tied() && bytes(&found.layers[0]) == bytes(&expected), "{config:?}");
        assert_ne!(bytes(&expected), bytes(&layer), "{config:?} moves nothing");
    }
}

/// An optimizer on gradients of the program's own.
#[test]
fn tied_fields_take_a_step_alone() {
    for name in OptimizerConfig::NAMES.iter().filter(|name| !name.starts_with("integer_")) {
        let model = TiedLayers::of(layer(4, 4));
        let mut gradients = GradientsParams::new();
        gradients.register(model.layers[0].weight.id, sines(16).reshape([4, 4]));
        let moved = optimizer(name).init().step(0.1, model.clone(), gradients);
        assert!(moved.is_tied() && bytes(&moved) != bytes(&model), "{name}");
    }
}

/// An embedding and an output layer of one matrix.
#[derive(Module, Debug)]
struct Bigram {
    tokens: Embedding,
    head: Embedding,
}

#[test]
fn an_embedding_tied_to_the_head_stays_so() {
    let tokens = Embedding { weight: layer(6, 3).weight };
    let start = Bigram { head: tokens.clone(), tokens };
    let tokens = Tensor::<2, Int>::from_ints([[0, 1, 2, 3]], &Device::flex());
    let found = train(&config(EggrollConfig::new(), AdamConfig::new()), start.clone(), |model, population| {
        population.evaluate(|members| {
            let logits = model.head.forward_transposed(model.tokens.forward(members.repeat(tokens.clone())));
            members.mean(logits.narrow(2, 1, 1).flatten::<2>(1, 2))
        })
    });
    assert_eq!(bytes(&found.tokens), bytes(&found.head));
    assert_ne!(bytes(&found), bytes(&start));
}

#[test]
fn fields_that_cannot_be_tied_are_refused() {
    let refused = |other: Param<Tensor<2>>| {
        let first = layer(4, 4);
        let other =
            Linear { weight: Param::initialized(first.weight.id, other.val()).set_require_grad(true), bias: None };
        config(EggrollConfig::new(), SgdConfig::new()).try_init(&TiedLayers { layers: vec![first, other] }).err()
    };
    assert!(refused(layer(4, 4).weight).is_none(), "equal values are tied");
    let half = layer(4, 4).weight.map(|weight| weight.cast(DType::BF16));
    for (other, expected) in
        [(layer(4, 3).weight, "shape"), (layer(4, 4).weight.map(|w| w + 1.0), "values"), (half, "type or device")]
    {
        match refused(other) {
            Some(Error::Table(TableError::Tied { path, other, differs })) => {
                assert_eq!((&*path, &*other, differs), ("layers.0.weight", "layers.1.weight", expected));
            }
            found => panic!("{found:?}"),
        }
    }
    let layers = vec![layer(4, 4); 2];
    let half_frozen = TiedLayers { layers: vec![layers[0].clone().no_grad(), layers[1].clone()] };
    let found = config(EggrollConfig::new(), SgdConfig::new()).try_init(&half_frozen).err();
    assert!(matches!(found, Some(Error::Table(TableError::Tied { differs: "no_grad()", .. }))), "{found:?}");
}

/// Fields that the program moves one by one are no longer one parameter.
#[test]
fn tied_fields_that_come_apart_are_refused() {
    let mut model = TiedLayers::of(layer(4, 4));
    let mut strategy = config(EggrollConfig::new(), SgdConfig::new()).init(&model);
    let times = |layer: &mut Linear, by: f32| layer.weight = layer.weight.clone().map(|weight| weight * by);
    times(&mut model.layers[1], 1.0);
    let population = strategy.ask();
    let evaluate = |model: &TiedLayers<Linear>| {
        population.evaluate(|members| score(members, model.forward(members.repeat(input()), Linear::forward)))
    };
    let fitness = evaluate(&model);
    times(&mut model.layers[1], 2.0);
    let panic = message(|| drop(evaluate(&model)));
    assert!(panic.contains("weight") && panic.contains("different values"), "{panic}");
    let told = strategy.tell(&mut model, population, fitness);
    assert!(matches!(told, Err(Error::Table(TableError::Tied { differs: "values", .. }))), "{told:?}");
}

/// A loaded model trains as before, its tied fields too. Identifiers are those of the record: fields that are tied in it and differ are refused.
#[test]
fn loaded_models() {
    let config = config(EggrollConfig::new(), AdamConfig::new());
    let start = TiedLayers::of(layer(4, 4));
    let fresh =
        || TiedLayers::of(Linear { weight: layer(4, 4).weight.map(|weight| weight * 0.0), bias: layer(4, 4).bias });
    let loaded = fresh().load_record(start.clone().into_record());
    let (found, expected) = (evaluated(&config, loaded), evaluated(&config, start));
    assert!(found.is_tied());
    assert_eq!(bytes(&found), bytes(&expected));
    let mut apart = fresh();
    apart.layers[2].weight = apart.layers[2].weight.clone().map(|weight| weight + 1.0);
    let other = config.try_init(&fresh().load_record(apart.into_record())).err();
    assert!(matches!(other, Some(Error::Table(TableError::Tied { differs: "values", .. }))), "{other:?}");
    // One field of a new identifier is another parameter.
    let Linear { weight, bias } = layer(4, 4);
    let own = Linear { weight: Param::initialized(ParamId::new(), weight.val()).set_require_grad(true), bias: None };
    let two = TiedLayers { layers: vec![Linear { weight, bias }, own] };
    assert!(!evaluated(&config, two).is_tied());
}
