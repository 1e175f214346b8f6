//! Credit by part: which parameters learn from it, what is refused, and which order counts.

use burn::module::{Module, Param};

use crate::support::layer;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Distribution, Int, Tensor};
use eggroll_core::{EggrollConfig, NoiserConfig, OpenEsConfig, SparseConfig};
use eggroll_nn::attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig, generate_autoregressive_mask};
use eggroll_nn::conv::{Conv2d, Conv2dConfig};
use eggroll_nn::{Embedding, EmbeddingConfig, Gru, GruConfig, Linear, LinearConfig};
use eggroll_train::{Credit, EvolutionStrategyConfig, Fitness, FitnessShaping, GradientScale, Population};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

const ROWS: usize = 3;

/// The second layer's rows are the mean of the first one's: one for all parts.
#[derive(Module, Debug)]
struct PooledNet {
    first: Linear,
    pooled: Linear,
}

impl PooledNet {
    fn new() -> Self {
        Self { first: layer(8, 6), pooled: layer(6, 2) }
    }
}

fn rows() -> Tensor<2> {
    sines(8 * ROWS).reshape([ROWS, 8])
}

fn sines(count: usize) -> Tensor<1> {
    (Tensor::<1, Int>::arange(0..count as i64, &Device::flex()).float() * 7.3).sin()
}

fn config(credit: Credit) -> EvolutionStrategyConfig {
    EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_population_size(16).with_credit(credit)
}

/// A score for every row, and a small part of it one of all rows: less than what makes rows those of all parts.
fn by_row(model: &PooledNet, population: &Population) -> Fitness {
    population.evaluate(|members| {
        let hidden = model.first.forward_shared(rows()).tanh(); // [members · ROWS, 6]
        let pooled = hidden.clone().reshape([members.count(), ROWS, 6]).mean_dim(1).reshape([members.count(), 6]);
        let all = model.pooled.forward(pooled).sum_dim(1) * 0.1; // [members, 1]
        hidden.square().sum_dim(1).reshape([members.count(), ROWS]) + all
    })
}

fn values(gradients: &GradientsParams, parameter: &Param<Tensor<2>>) -> Vec<f32> {
    gradients.get::<2>(parameter.id).expect("a gradient").into_data().try_to_vec().expect("f32")
}

fn largest(values: impl IntoIterator<Item = f32>) -> f32 {
    values.into_iter().map(f32::abs).fold(0.0, f32::max)
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    largest(a.iter().zip(b).map(|(a, b)| a - b)) / largest(a.iter().copied())
}

/// What each parameter of `model` learns from, of what `score` returns.
fn credits<M: Module>(model: &M, score: impl FnOnce(&Population) -> Fitness) -> String {
    let population = config(Credit::Auto).init(model).ask();
    let fitness = score(&population);
    population.credits(&fitness).to_string()
}

#[test]
fn layers_of_other_rows_learn_from_the_mean() {
    let model = PooledNet::new();
    let gradients = |credit: Credit| {
        let strategy = config(credit).with_shaping(FitnessShaping::Raw).init(&model);
        let population = strategy.ask();
        let fitness = by_row(&model, &population);
        assert_eq!(fitness.tasks(), ROWS);
        let gradient = |population: &Population| {
            strategy.gradient(&model, population, &fitness).expect("belongs together").expect("not equal")
        };
        let (whole, slice) = (gradient(&population), gradient(&population.slice(0..8)));
        let [whole_first, slice_first] = [&whole, &slice].map(|gradients| values(gradients, &model.first.weight));
        assert_eq!(whole_first, slice_first, "scores of all members, of which some are evaluated here");
        whole
    };
    let (mean, part) = (gradients(Credit::Mean), gradients(Credit::Auto));
    let of = |layer: &Linear| (values(&mean, &layer.weight), values(&part, &layer.weight));
    let (a, b) = of(&model.pooled);
    assert!(distance(&a, &b) < 1e-5);
    let (a, b) = of(&model.first);
    assert!(distance(&a, &b) > 0.01, "canary");
    let found = credits(&model, |population| by_row(&model, population));
    let expected = "by part: [\"first.weight\"]\n\
                    from the mean (a vector: by part the same): [\"first.bias\", \"pooled.bias\"]\n\
                    from the mean (it was given 1 rows for 3 parts): [\"pooled.weight\"]";
    assert_eq!(found, expected);
}

/// Halves add up to the whole, part by part too.
#[test]
fn halves_add_up() {
    let model = PooledNet::new();
    let strategy = config(Credit::Auto).init(&model);
    let population = strategy.ask();
    let fitness = by_row(&model, &population);
    let whole = strategy.gradient(&model, &population, &fitness).expect("belongs together").expect("not equal");
    let halves = strategy.gradient_halves(&model, &population, &fitness).expect("belongs together").expect("not equal");
    let [a, b] = halves.map(|half| values(&half, &model.first.weight));
    let sum: Vec<f32> = a.iter().zip(b).map(|(a, b)| a + b).collect();
    assert!(distance(&values(&whole, &model.first.weight), &sum) < 1e-5);
}

#[test]
fn parts_that_nothing_learns_from_are_refused() {
    let model = PooledNet::new();
    let mut strategy = config(Credit::Parts).init(&model);
    let population = strategy.ask();
    let scores = by_row(&model, &population);
    let other = Fitness::from([scores.values(), &scores.values()[..16]].concat()).with_tasks(4);
    let before = model.clone();
    let mut model = model;
    let error = strategy.tell(&mut model, population, other).expect_err("four parts").to_string();
    let expected = "nothing can learn from the scores of 4 parts: \"first.weight\" learns from the mean: it was given 3 rows for 4 parts";
    assert!(error.contains(expected), "{error}");
    assert_eq!(before.first.weight.val().to_data(), model.first.weight.val().to_data());

    let error = config(Credit::Parts).with_unroll_horizon(2).try_init(&model).err().expect("a horizon").to_string();
    assert!(error.contains("unroll horizon of 2 generations") && error.contains("auto or mean"), "{error}");
}

/// Rows that differ between members, within a pair or between pairs, are nobody's.
#[test]
fn rows_of_single_members_are_not_projected_onto() {
    let model = LinearConfig::new(8, 2).with_bias(false).init(&Device::flex());
    let score = |population: &Population, each: usize| {
        population.evaluate(|members| {
            let own = sines(16 * 24).reshape([16, 24]);
            let own = own.select(0, (Tensor::<1, Int>::arange(0..16, &Device::flex()) / each as i32) * each as i32);
            let x = members.rows(own).reshape([members.count() * ROWS, 8]);
            model.forward(members.assume_repeated(x)).sum_dim(1).reshape([members.count(), ROWS])
        })
    };
    let slices = config(Credit::Auto).init(&model).ask();
    for members in [0..4, 4..16] {
        score(&slices.slice(members), 2);
    }
    let fitness = score(&slices, 2);
    assert!(slices.credits(&fitness).to_string().contains("different rows"), "of slices");
    for (each, expected) in
        [(1, "from the mean (members were given different rows)"), (2, "different rows"), (16, "by part")]
    {
        let found = credits(&model, |population| score(population, each));
        assert!(found.contains(expected), "{each}: {found}");
    }
}

#[derive(Module, Debug)]
struct SharedEmbedding {
    embedding: Embedding,
}

/// Lookups, a tied head, patches, steps of a recurrence, keys and values.
#[test]
fn every_layer_with_rows_learns_by_part() {
    let device = Device::flex();
    let tokens = Tensor::<2, Int>::from_ints([[0, 3, 1], [3, 3, 2]], &device);

    let model = SharedEmbedding { embedding: EmbeddingConfig::new(5, 4).init(&device) };
    let of_tokens = |population: &Population, tied: bool| {
        population.evaluate(|members| {
            let x = model.embedding.forward(members.repeat(tokens.clone())); // [members · 2, 3, 4]
            if tied {
                return members.token_cross_entropy(model.embedding.forward_transposed(x), tokens.clone());
            }
            x.sum_dim(2).reshape([members.count(), 2, 3])
        })
    };
    assert_eq!(credits(&model, |population| of_tokens(population, false)), "by part: [\"embedding.weight\"]");
    assert_eq!(credits(&model, |population| of_tokens(population, true)), "by part: [\"embedding.weight\"]");
    // A score for each sequence: rows that it reads, each once.
    let bags = |population: &Population| {
        population.evaluate(|members| {
            let x = model.embedding.forward(members.repeat(tokens.clone()));
            x.sum_dims(&[1, 2]).reshape([members.count(), 2])
        })
    };
    assert_eq!(credits(&model, bags), "by part, onto the span of its 3 rows: [\"embedding.weight\"]");

    let conv = Conv2dConfig::new([2, 3], [3, 3]).with_bias(false).init(&device);
    let images = sines(2 * 2 * 5 * 3).reshape([2, 2, 5, 3]);
    let of_images = |population: &Population, conv: &Conv2d| {
        population.evaluate(|members| {
            let y = conv.forward_shared(images.clone()).square(); // [members · 2, 3, 3, 1]
            y.sum_dims(&[1, 2, 3]).reshape([members.count(), 2])
        })
    };
    let found = credits(&conv, |population| of_images(population, &conv));
    assert_eq!(found, "by part, onto the span of its 3 rows: [\"weight\"]");

    let sequences = sines(2 * 3 * 4).reshape([2, 3, 4]);
    let gru = GruConfig::new(4, 5, false).init(&device);
    let of_steps = |population: &Population, gru: &Gru| {
        population.evaluate(|members| {
            let states = gru.forward(members.repeat(sequences.clone()), None);
            states.square().sum_dim(2).reshape([members.count(), 2, 3])
        })
    };
    let found = credits(&gru, |population| of_steps(population, &gru));
    assert!(found.starts_with("by part, with later steps: [") && !found.contains("mean"), "{found}");

    let attention = MultiHeadAttentionConfig::new(4, 2).init(&device);
    let attended = |population: &Population, attention: &MultiHeadAttention| {
        population.evaluate(|members| {
            let x = members.repeat(sequences.clone());
            let causal = generate_autoregressive_mask(2 * members.count(), 3, &device);
            attention.forward(MhaInput::self_attn(x).mask_attn(causal)).context.square().sum_dim(2).reshape([
                members.count(),
                2,
                3,
            ])
        })
    };
    let found = credits(&attention, |population| attended(population, &attention));
    assert!(found.contains("by part: [\"query.weight\", \"output.weight\"]"), "{found}");
    assert!(found.contains("by part, with later steps: [\"key.weight\", \"value.weight\"]"), "{found}");
}

/// As many rows as there are parts, or a multiple, that belong to something else: the scores of other parts depend on them.
#[test]
fn rows_of_something_else_learn_from_the_mean() {
    let device = Device::flex();
    let linear = LinearConfig::new(8, 6).with_bias(false).init(&device);
    let mixed = "from the mean (scores of other parts depend on a part's rows): [\"weight\"]";
    let (sequences, steps) = (3, 4);
    let x = sines(sequences * steps * 8).reshape([1, sequences * steps, 8]);
    // Rows with time first, scores with sequences first.
    let by_time = |population: &Population, is_time_first: bool| {
        population.evaluate(|members| {
            let y = linear.forward(members.repeat(x.clone())).square().sum_dim(2);
            match is_time_first {
                true => y.reshape([members.count(), steps, sequences]).swap_dims(1, 2),
                false => y.reshape([members.count(), sequences, steps]),
            }
        })
    };
    assert_eq!(credits(&linear, |population| by_time(population, true)), mixed);
    assert_eq!(credits(&linear, |population| by_time(population, false)), "by part: [\"weight\"]");
    // A prompt as long as the answer, read before it: only the answer is scored.
    let prompted = |population: &Population| {
        population.evaluate(|members| {
            let y = linear.forward(members.repeat(x.clone())).sum_dim(2).reshape([members.count(), 2, 6]);
            let read = y.tanh().cumsum(2); // [members, sequences, prompt and answer]
            read.slice_dim(2, 3..6).square()
        })
    };
    assert_eq!(credits(&linear, prompted), mixed);
    // Two scores of the same rows.
    let twice = |population: &Population| {
        population.evaluate(|members| {
            let y = members.mean(linear.forward(members.repeat(x.clone())).square());
            Tensor::stack::<2>(vec![y.clone(), -y.exp()], 1)
        })
    };
    assert_eq!(credits(&linear, twice), mixed);

    // Positions that every image has.
    let positions = EmbeddingConfig::new(4, 8).init(&device);
    let images = sines(2 * 4 * 8).reshape([2, 4, 8]);
    let placed = |population: &Population| {
        population.evaluate(|members| {
            let places = Tensor::<1, Int>::arange(0..4, &device).reshape([1, 4]);
            let places = positions.forward(members.repeat(places)).reshape([members.count(), 1, 4, 8]);
            let x = members.repeat(images.clone()).reshape([members.count(), 2, 4, 8]) + places;
            x.tanh().sum_dims(&[2, 3]).reshape([members.count(), 2])
        })
    };
    assert_eq!(credits(&positions, placed), mixed);
    let attention = MultiHeadAttentionConfig::new(4, 2).init(&device);
    let both_ways = |population: &Population| {
        population.evaluate(|members| {
            let x = members.repeat(sines(2 * 3 * 4).reshape([2, 3, 4]));
            let context = attention.forward(MhaInput::self_attn(x)).context;
            context.square().sum_dim(2).reshape([members.count(), 2, 3])
        })
    };
    let found = credits(&attention, both_ways);
    assert!(found.contains("depend on a part's rows): [\"key.weight\", \"value.weight\"]"), "{found}");
    assert!(found.contains("by part: [\"query.weight\", \"output.weight\"]"), "{found}");
}

/// What no score answers to, as behind a head of zeros, or what would not have learned by part, is looked at again.
#[test]
fn rows_are_looked_at_until_they_are_known() {
    let device = Device::flex();
    let mixed = "from the mean (scores of other parts depend on a part's rows): ";
    let layer = |d_input, d_output| LinearConfig::new(d_input, d_output).with_bias(false).init(&device);
    let mut model = (layer(8, 6), layer(6, 1));
    model.1.weight = Param::from_tensor(Tensor::zeros([6, 1], &device));
    let by_time = |model: &(Linear, Linear), population: &Population| {
        population.evaluate(|members| {
            let x = members.repeat(sines(12 * 8).reshape([1, 12, 8]));
            let y = model.1.forward(model.0.forward(x).tanh());
            y.reshape([members.count(), 4, 3]).swap_dims(1, 2) // 3 sequences of 4 steps
        })
    };
    let mut strategy = config(Credit::Auto).init(&model);
    for expected in
        [format!("by part: [\"0.weight\"]\n{mixed}[\"1.weight\"]"), format!("{mixed}[\"0.weight\", \"1.weight\"]")]
    {
        let population = strategy.ask();
        let fitness = by_time(&model, &population);
        assert_eq!(population.credits(&fitness).to_string(), expected);
        strategy.tell(&mut model, population, fitness).expect("belongs together");
    }

    let mut positions = EmbeddingConfig::new(4, 8).init(&device);
    let placed = |positions: &Embedding, population: &Population, images: usize| {
        population.evaluate(|members| {
            let places = Tensor::<1, Int>::arange(0..4, &device).reshape([1, 4]);
            let places = positions.forward(members.repeat(places)).reshape([members.count(), 1, 4, 8]);
            let x = sines(images * 4 * 8).reshape([1, images, 4, 8]) + places;
            x.tanh().sum_dims(&[2, 3]).reshape([members.count(), images])
        })
    };
    let mut strategy = config(Credit::Auto).init(&positions);
    for (images, expected) in
        [(3, "from the mean (it was given 4 rows for 3 parts): "), (3, "from the mean (it was given"), (2, mixed)]
    {
        let population = strategy.ask();
        let fitness = placed(&positions, &population, images);
        let found = population.credits(&fitness).to_string();
        assert!(found.starts_with(expected), "{found}");
        strategy.tell(&mut positions, population, fitness).expect("belongs together");
    }
}

/// Scores that belong to the row of a step before, and scores that are drawn.
#[test]
fn rows_that_only_later_scores_depend_on_belong_to_them() {
    let linear = LinearConfig::new(8, 6).with_bias(false).init(&Device::flex());
    let calls = AtomicUsize::new(0);
    let score = |population: &Population, shift: bool, draws: bool| {
        population.evaluate(|members| {
            let y = linear.forward(members.repeat(sines(12 * 8).reshape([1, 12, 8]))).square().sum_dim(2);
            let y = y.reshape([members.count(), 3, 4]);
            let drawn = if draws { calls.fetch_add(1, Relaxed) as f64 } else { 0.0 };
            let zeros = y.clone().slice_dim(2, 0..1) * 0.0;
            if shift { Tensor::cat(vec![zeros, y.slice_dim(2, 0..3)], 2) } else { y + drawn }
        })
    };
    let mixed = "from the mean (scores of other parts depend on a part's rows): [\"weight\"]";
    assert_eq!(credits(&linear, |population| score(population, true, false)), mixed);
    assert_eq!(credits(&linear, |population| score(population, false, true)), "by part: [\"weight\"]");
}

/// A closure that draws its data: no call is given the rows that the members were given. What was found stays.
#[test]
fn rows_of_another_draw_learn_from_the_mean() {
    let layer = |d_input, d_output| LinearConfig::new(d_input, d_output).with_bias(false).init(&Device::flex());
    let mut model = (layer(8, 6), layer(6, 1));
    let calls = AtomicUsize::new(0);
    let score = |model: &(Linear, Linear), population: &Population, draws: bool| {
        population.evaluate(|members| {
            let call = if draws { calls.fetch_add(1, Relaxed) } else { 0 };
            let x = rows() + call as f64;
            let hidden = tanh(model.0.forward(members.repeat(x)));
            model.1.forward(hidden).reshape([members.count(), ROWS])
        })
    };
    assert!(!credits(&model, |population| score(&model, population, false)).contains("mean"), "canary");
    let redrawn = "from the mean (its rows are others in every call of the closure): [\"0.weight\", \"1.weight\"]";
    let mut strategy = config(Credit::Auto).init(&model);
    let population = strategy.ask();
    let fitness = score(&model, &population, true);
    assert_eq!(population.credits(&fitness).to_string(), redrawn);
    strategy.tell(&mut model, population, fitness).expect("belongs together");
    let population = config(Credit::Auto).init(&model).load_record(strategy.to_record()).ask();
    assert_eq!(population.generation(), 1);
    let fitness = score(&model, &population, false);
    assert_eq!(population.credits(&fitness).to_string(), redrawn);
}

/// `[rows, 1]` of a net of one hidden layer.
fn net(first: &Linear, second: &Linear, x: Tensor<2>) -> Tensor<2> {
    second.forward(tanh(first.forward_shared(x)))
}

/// The estimate points along the true gradient, and better than by means; with the parts in another order it does not.
#[test]
fn parts_have_a_higher_cosine_and_shuffled_ones_have_none() {
    let device = Device::flex();
    device.seed(3);
    let layer = |d_input, d_output| LinearConfig::new(d_input, d_output).with_bias(false).init(&device);
    let (first, second) = (layer(24, 16), layer(16, 1));
    let (rows, members) = (48, 64);
    // Nearly orthogonal rows: a part has little to do with the row of another one.
    let x = Tensor::<2>::random([rows, 24], Distribution::Normal(0.0, 1.0), &device);
    let target = Tensor::<2>::random([rows, 1], Distribution::Normal(0.0, 1.0), &device);
    let model = (first, second);
    // −Σ (y − t)²/rows, by hand: ∂/∂W₂ and ∂/∂W₁.
    let hidden = tanh(x.clone().matmul(model.0.weight.val()));
    let error = (hidden.clone().matmul(model.1.weight.val()) - target.clone()) * (2.0 / rows as f64);
    let to_hidden = error.clone().matmul(model.1.weight.val().transpose()) * (hidden.clone().square().neg() + 1.0);
    let truth = [x.clone().transpose().matmul(to_hidden), hidden.transpose().matmul(error)];
    let cosine = |noiser: NoiserConfig, credit: Credit, shuffled: bool| {
        let strategy = EvolutionStrategyConfig::new(noiser, SgdConfig::new())
            .with_population_size(members)
            .with_sigma(0.02)
            .with_shaping(FitnessShaping::Raw)
            .with_gradient_scale(GradientScale::ScoreFunction)
            .with_credit(credit)
            .init(&model);
        let population = strategy.ask();
        let fitness = population.evaluate(|members| {
            let y = net(&model.0, &model.1, x.clone()).reshape([members.count(), rows]);
            -(y - target.clone().reshape([1, rows])).square()
        });
        // Behind the closure: its own order would be noticed.
        let parts = fitness.values().chunks(members);
        let reversed = Fitness::from(parts.rev().flatten().copied().collect::<Vec<f32>>()).with_tasks(rows);
        let fitness = if shuffled { reversed } else { fitness };
        let gradients = strategy.gradient(&model, &population, &fitness).expect("belongs together").expect("not equal");
        let found = [&model.0, &model.1].map(|layer| gradients.get::<2>(layer.weight.id).expect("a gradient"));
        let dot = |a: &[Tensor<2>; 2], b: &[Tensor<2>; 2]| -> f32 {
            a.iter().zip(b).map(|(a, b)| (a.clone() * b.clone()).sum().into_scalar::<f32>()).sum()
        };
        dot(&found, &truth) / (dot(&found, &found) * dot(&truth, &truth)).sqrt()
    };
    let noisers: [(NoiserConfig, f32); 3] =
        [(EggrollConfig::new().into(), 2.0), (OpenEsConfig::new().into(), 2.0), (SparseConfig::new().into(), 1.0)];
    for (noiser, more) in noisers {
        let [mean, part] = [Credit::Mean, Credit::Auto].map(|credit| cosine(noiser.clone(), credit, false));
        let shuffled = cosine(noiser.clone(), Credit::Auto, true);
        println!("{noiser:?}: mean {mean:.3}, part {part:.3}, shuffled {shuffled:.3}");
        assert!(part > more * mean && part > 0.6 && shuffled < 0.5 * part, "{noiser:?}: {mean} {part} {shuffled}");
    }
}

/// Dividing scores by the power of noise leaves the mean of an estimate: the gradient of a score that is linear in the weights, also where rows
/// are zeros. A layer of zeros alone stays.
#[test]
fn the_mean_over_noise_is_the_gradient() {
    let device = Device::flex();
    let model = LinearConfig::new(8, 3).init(&device);
    let bias = model.bias.as_ref().expect("a bias");
    let of_first = Tensor::<1>::from_floats([1.0, 0.0, 0.0], &device).reshape([ROWS, 1]);
    for (rank, x) in [(1, rows()), (2, rows()), (1, rows() * of_first), (1, rows() * 0.0)] {
        let mut strategy = EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(rank), SgdConfig::new())
            .with_population_size(256)
            .with_shaping(FitnessShaping::Raw)
            .with_gradient_scale(GradientScale::ScoreFunction)
            .init(&model);
        let truth =
            [x.clone().sum_dim(0).transpose().repeat_dim(1, 3) / ROWS as f64, Tensor::<2>::ones([1, 3], &device)];
        let generations = 200;
        let mut along = [0.0; 2];
        for _ in 0..generations {
            let population = strategy.ask();
            let fitness = population
                .evaluate(|members| -model.forward_shared(x.clone()).sum_dim(1).reshape([members.count(), ROWS]));
            let gradients =
                strategy.gradient(&model, &population, &fitness).expect("belongs together").expect("not equal");
            let found = [
                gradients.get::<2>(model.weight.id).expect("a gradient"),
                gradients.get::<1>(bias.id).expect("a gradient").unsqueeze(),
            ];
            for ((sum, found), truth) in along.iter_mut().zip(found).zip(&truth) {
                let square: f32 = truth.clone().square().sum().into_scalar();
                let product: f32 = (found * truth.clone()).sum().into_scalar();
                *sum += if square == 0.0 { 1.0 + product } else { product / square } / generations as f32;
            }
            strategy.advance(population, &fitness).expect("belongs together");
        }
        assert!(along.iter().all(|along| (along - 1.0).abs() < 0.03), "rank {rank}, {x}: {along:?}");
    }
}

/// A score that is not a number costs its member that part, and the others nothing.
#[test]
fn what_is_not_finite_costs_one_part() {
    let model = LinearConfig::new(8, 2).with_bias(false).init(&Device::flex());
    let strategy = config(Credit::Auto).with_shaping(FitnessShaping::Raw).init(&model);
    let population = strategy.ask();
    let fitness = population
        .evaluate(|members| model.forward_shared(rows()).square().sum_dim(1).reshape([members.count(), ROWS]));
    let gradient = |fitness: &Fitness| {
        let gradients = strategy.gradient(&model, &population, fitness).expect("belongs together").expect("not equal");
        gradients.get::<2>(model.weight.id).expect("a gradient")
    };
    let mut scores = fitness.values().to_vec();
    scores[16 + 4] = f32::NAN; // of part 1
    let change = gradient(&Fitness::from(scores).with_tasks(ROWS)) - gradient(&fitness);
    // What changed is a multiple of row 1.
    let row = rows().slice_dim(0, 1..2);
    let along =
        row.clone().transpose().matmul(row.clone().matmul(change.clone())) / row.square().sum().into_scalar::<f32>();
    let [changed, rest] = [change.clone(), change - along].map(|x| x.abs().max().into_scalar::<f32>());
    assert!(changed > 0.0 && rest < 1e-4 * changed, "{changed} {rest}");
}

#[test]
#[should_panic(expected = "token cross-entropy: logits [4, 3, 5] do not fit targets [3, 3] of 2 members")]
fn other_targets_are_refused() {
    let members = eggroll_train::MemberChunk::new(0, 2);
    members.token_cross_entropy(Tensor::zeros([4, 3, 5], &Device::flex()), Tensor::zeros([3, 3], &Device::flex()));
}
