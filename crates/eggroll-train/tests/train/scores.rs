//! What a closure may return, and rows that it must not be given.

use burn::module::Module;
use burn::optim::SgdConfig;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use eggroll_core::{EggrollConfig, QEggrollConfig};
use eggroll_nn::graph::PopulationGraph;
use eggroll_nn::{Conv2dConfig, EmbeddingConfig, LayerNormConfig, Linear, LinearConfig, integer};
use eggroll_train::{EvolutionStrategyConfig, MemberChunk, Population};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const MEMBERS: usize = 12;

fn ask(model: &impl Module) -> Population {
    let config = EvolutionStrategyConfig::new(EggrollConfig::new(), SgdConfig::new()).with_seed(3).with_sigma(0.3);
    config.with_population_size(MEMBERS).with_chunk_size(4).init(model).ask()
}

fn layer() -> Linear {
    LinearConfig::new(3, 2).init(&Device::flex())
}

/// `[MEMBERS, 3]`: as many shared rows as would pass for rows of members.
fn rows() -> Tensor<2> {
    Tensor::<1, Int>::arange(0..3 * MEMBERS as i64, &Device::flex()).float().sin().reshape([MEMBERS, 3])
}

#[test]
fn the_host_and_the_device_score_alike() {
    let model = layer();
    let score = |members: &MemberChunk| members.mean(model.forward(members.repeat(rows())));
    let expected = ask(&model).evaluate(score);
    let on_host = |members: &MemberChunk| score(members).into_data().try_to_vec::<f32>().expect("f32");
    assert_eq!(ask(&model).evaluate(on_host), expected);
    assert_eq!(ask(&model).evaluate_mut(score), expected);
    let fallible = ask(&model).try_evaluate(|members| Ok::<_, String>(on_host(members)));
    assert_eq!(fallible.expect("scores"), expected);
    let exact = ask(&model)
        .evaluate(|members| (members.first()..members.first() + members.count()).map(|m| m as i32).collect::<Vec<_>>());
    assert_eq!(exact.integers().expect("integers"), (0..MEMBERS as i32).collect::<Vec<_>>());
    let tasks = ask(&model).evaluate(|members| {
        let mean = score(members);
        Tensor::stack::<2>(vec![mean.clone(), -mean], 1) // [members, tasks]
    });
    assert_eq!((tasks.tasks(), &tasks.values()[..MEMBERS]), (2, expected.values()));
    assert!((0..MEMBERS).all(|member| tasks.score(member).abs() < 1e-9));
}

#[test]
fn an_error_ends_the_evaluation_and_is_returned() {
    let model = layer();
    let calls = AtomicUsize::new(0);
    let fails = |members: &MemberChunk| {
        calls.fetch_add(1, Relaxed);
        if members.first() == 4 { Err("the simulator is gone") } else { Ok(members.mean(model.forward_shared(rows()))) }
    };
    assert_eq!(ask(&model).try_evaluate(fails), Err("the simulator is gone"));
    assert!((1..=3).contains(&calls.load(Relaxed)));
    let state = Tensor::<2>::zeros([MEMBERS, 1], &Device::flex());
    let with_state = ask(&model).try_evaluate_with_state(state, |members, state| Ok((fails(members)?, state)));
    assert_eq!(with_state.map(drop), Err("the simulator is gone"));
    let each = ask(&model).try_evaluate_each(&model, |_| Err::<f32, _>("no licence"));
    assert_eq!(each, Err("no licence"));
}

#[test]
fn measures_of_members() {
    let members = MemberChunk::new(0, 2);
    let logits = Tensor::<2>::from_floats([[2.0, 1.0], [0.0, 1.0], [0.0, 3.0], [0.0, 1.0]], &Device::flex());
    let labels = Tensor::<1, Int>::from_ints([0, 1], &Device::flex());
    let values = |scores: Tensor<1>| scores.into_data().try_to_vec::<f32>().expect("f32");
    assert_eq!(values(members.accuracy(logits.clone(), labels)), [1.0, 0.5]);
    assert_eq!(values(members.sum(logits.clone())), [4.0, 4.0]);
    let targets = Tensor::<2>::from_floats([[2.0, 1.0], [0.0, 0.0]], &Device::flex());
    assert_eq!(values(members.mse(logits, targets)), [0.25, 2.25]);
}

#[test]
fn the_best_member_is_a_model() {
    let model = layer();
    let population = ask(&model);
    let fitness = population.evaluate(|members| members.mean(model.forward_shared(rows())));
    let best = fitness.best().expect("finite scores");
    assert!(fitness.values().iter().all(|score| *score <= fitness.values()[best]));
    let score = |member: Linear| member.forward(rows()).mean().into_scalar::<f32>();
    assert!((score(population.member(&model, best)) - fitness.values()[best]).abs() < 1e-6);
    assert!((score(model) - fitness.values()[best]).abs() > 1e-3, "canary");
    let none = eggroll_train::Fitness::from(vec![f32::NAN, f32::INFINITY]);
    assert_eq!(none.best(), None);
}

/// Integers of any type are exact where 32 bits hold them, and refused with the score elsewhere; so are floats of f64 that f32 cannot hold.
#[test]
fn scores_are_exact_or_refused() {
    let (model, on) = (layer(), Device::flex());
    let text = |panic: Box<dyn std::any::Any + Send>| panic.downcast_ref::<String>().expect("a text").clone();
    let integers = |first: i64, dtype: DType| {
        let score = |members: &MemberChunk| {
            let first = first.wrapping_add(members.first() as i64);
            let scores: Vec<i64> = (0..members.count() as i64).map(|member| first.wrapping_add(member)).collect();
            let data = TensorData::new(scores, [members.count()]);
            match dtype {
                DType::U64 => {
                    let words = data.iter::<i64>().map(|score| score as u64).collect::<Vec<_>>();
                    Tensor::<1, Int>::from_data(TensorData::new(words, [members.count()]), (&on, dtype))
                }
                _ => Tensor::<1, Int>::from_data(data, (&on, dtype)),
            }
        };
        catch_unwind(AssertUnwindSafe(|| ask(&model).evaluate_mut(score))).map_err(text)
    };
    let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX) - MEMBERS as i64 + 1);
    for (first, dtype) in
        [(high, DType::I64), (low, DType::I64), (high, DType::U64), (high, DType::U32), (3, DType::U8)]
    {
        let fitness = integers(first, dtype).expect("they fit");
        let expected: Vec<i32> = (0..MEMBERS as i64).map(|member| (first + member) as i32).collect();
        assert_eq!(fitness.integers(), Some(&expected[..]), "{dtype:?}");
        // f32 holds neither of the two largest: both the order and the numbers of a report are exact.
        assert_eq!((fitness.best(), fitness.score(MEMBERS - 1)), (Some(MEMBERS - 1), f64::from(expected[MEMBERS - 1])));
        assert_eq!(fitness.finite().0, expected.iter().map(|score| f64::from(*score)).collect::<Vec<_>>());
    }
    for (first, dtype, score) in [
        (3_000_000_000, DType::I64, "3000000000"),
        (high + 1, DType::I64, "2147483648"),
        (low - 1, DType::I64, "-2147483649"),
        (3_000_000_000, DType::U32, "3000000000"),
        (-3, DType::U64, "18446744073709551613"),
    ] {
        let message = integers(first, dtype).expect_err("refused");
        assert!(message.contains(&format!("is {score}: integer scores are from")), "{message}");
    }
    let floats = |score: f64| {
        let score = |members: &MemberChunk| {
            Tensor::<1>::from_data(TensorData::new(vec![score; members.count()], [members.count()]), (&on, DType::F64))
        };
        catch_unwind(AssertUnwindSafe(|| ask(&model).evaluate_mut(score))).map_err(text)
    };
    assert_eq!(floats(1e30).expect("it fits").values(), [1e30; MEMBERS]);
    assert_eq!(floats(f64::INFINITY).expect("it counts as the best").values(), [f32::INFINITY; MEMBERS]);
    assert!(floats(-1e39).expect_err("refused").contains("score 0 is -1e39: f32 holds up to"));
}

/// Chunks of other tasks, and of none, are refused with the shapes.
#[test]
fn all_members_have_the_same_tasks() {
    let model = layer();
    let text = |tasks: &(dyn Fn(&MemberChunk) -> usize + Sync)| {
        let score = |members: &MemberChunk| Tensor::<2>::ones([members.count(), tasks(members)], &Device::flex());
        let panic = catch_unwind(AssertUnwindSafe(|| ask(&model).evaluate_mut(score))).expect_err("refused");
        panic.downcast_ref::<String>().expect("a text").clone()
    };
    let found = text(&|members| 1 + members.first() / 8);
    assert!(found.contains("shape [4, 1] for one chunk and [4, 2] for another"), "{found}");
    assert!(text(&|_| 0).contains("fitness of shape [4, 0] for a chunk of 4 members"));
}

/// The text of the panic of an evaluation.
#[track_caller]
fn refused(model: &impl Module, score: impl Fn(&MemberChunk) -> Tensor<1> + Sync) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| ask(model).evaluate(score))).expect_err("refused");
    panic.downcast_ref::<String>().expect("a text").clone()
}

/// Shared rows are as many as would divide by the members, and would be dealt out to them.
#[test]
fn rows_that_were_never_repeated_are_refused() {
    let on = Device::flex();
    let linear = layer();
    let text = refused(&linear, |members| members.mean(linear.forward(rows())));
    for part in
        ["12 rows", "\"weight\"", "4 members", "members.repeat(x)", "forward_shared(x)", "members.assume_repeated(x)"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Labels that are repeated say nothing of the rows.
    let text = refused(&linear, |members| {
        let targets = members.repeat(rows().slice_dim(1, 0..2));
        members.mean(linear.forward(rows()) - targets.slice_dim(0, 0..MEMBERS))
    });
    assert!(text.contains("others were: [48] rows"), "{text}");

    let norm = LayerNormConfig::new(3).init(&on);
    assert!(refused(&norm, |members| members.mean(norm.forward(rows()))).contains("never repeated"));
    let embedding = EmbeddingConfig::new(5, 3).init(&on);
    let tokens = || Tensor::<2, Int>::ones([MEMBERS, 2], &on);
    assert!(refused(&embedding, |members| members.mean(embedding.forward(tokens()))).contains("never repeated"));
    let convolution = Conv2dConfig::new([1, 2], [2, 2]).init(&on);
    let images = || Tensor::<4>::ones([MEMBERS, 1, 3, 3], &on);
    assert!(refused(&convolution, |members| members.mean(convolution.forward(images()))).contains("never repeated"));
    let stock = burn::nn::LinearConfig::new(3, 2).init(&on);
    let graph = PopulationGraph::trace(&stock, rows(), |model: &burn::nn::Linear, x| model.forward(x)).expect("traced");
    assert!(refused(&stock, |members| members.mean(graph.forward(&stock, rows()))).contains("never repeated"));

    let integers = integer::LinearConfig::new(3, 2).init(&on);
    let population =
        EvolutionStrategyConfig::integer(QEggrollConfig::new()).with_population_size(MEMBERS).init(&integers).ask();
    let score = |_: &MemberChunk| integers.forward(rows().int().cast(DType::I8)).sum_dim(1).reshape([MEMBERS]);
    let panic = catch_unwind(AssertUnwindSafe(|| population.evaluate(score))).expect_err("refused");
    assert!(panic.downcast_ref::<String>().expect("a text").contains("never repeated"));
}

/// An input without rows says nothing of a member: every layer refuses it with its shape, whether it is shared or repeated.
#[test]
fn inputs_without_rows_are_refused() {
    let on = Device::flex();
    let assert = |text: &str, shape: &[usize]| {
        assert!(text.contains(&format!("shape {shape:?}")) && text.contains("has no values"), "{text}");
    };
    let none = || Tensor::<2>::zeros([0, 3], &on);
    let linear = layer();
    assert(&refused(&linear, |members| members.mean(linear.forward(members.repeat(none())))), &[0, 3]);
    assert(&refused(&linear, |members| members.mean(linear.forward_shared(none()))), &[0, 3]);
    let sequences = |members: &MemberChunk| members.repeat(Tensor::<3>::zeros([2, 0, 3], &on));
    assert(&refused(&linear, |members| members.mean(linear.forward(sequences(members)))), &[8, 0, 3]);
    let embedding = EmbeddingConfig::new(5, 3).init(&on);
    let tokens = || Tensor::<2, Int>::zeros([0, 2], &on);
    assert(&refused(&embedding, |members| members.mean(embedding.forward(members.repeat(tokens())))), &[0, 2]);
    assert(&refused(&embedding, |members| members.mean(embedding.forward_shared(tokens()))), &[0, 2]);
    let convolution = Conv2dConfig::new([1, 2], [2, 2]).init(&on);
    let images = || Tensor::<4>::zeros([0, 1, 3, 3], &on);
    assert(
        &refused(&convolution, |members| members.mean(convolution.forward(members.repeat(images())))),
        &[0, 1, 3, 3],
    );
    assert(&refused(&convolution, |members| members.mean(convolution.forward_shared(images()))), &[0, 1, 3, 3]);
    let norm = LayerNormConfig::new(3).init(&on);
    assert(&refused(&norm, |members| members.mean(norm.forward(members.repeat(none())))), &[0, 3]);
    let text = refused(&linear, |members| members.mean(members.repeat(none())));
    assert!(text.contains("mean over members: the shape [0, 3] has no values"), "{text}");
}

/// Rows of members that the program makes itself, and those of a state, need no repeating.
#[test]
fn rows_of_members_are_taken() {
    let model = layer();
    let own = |members: &MemberChunk| members.assume_repeated(Tensor::<2>::ones([members.count(), 3], &Device::flex()));
    let expected =
        ask(&model).evaluate(|members| members.mean(model.forward_shared(Tensor::<2>::ones([1, 3], &Device::flex()))));
    assert_eq!(ask(&model).evaluate(|members| members.mean(model.forward(own(members)))), expected);
    let all = Tensor::<2>::ones([MEMBERS, 3], &Device::flex());
    assert_eq!(ask(&model).evaluate(|members| members.mean(model.forward(members.rows(all.clone())))), expected);
    let (with_state, _) =
        ask(&model).evaluate_with_state(all, |members, state| (members.mean(model.forward(state.clone())), state));
    assert_eq!(with_state, expected);
}

/// `forward_shared` on a later layer would give every member the rows of all.
#[test]
fn rows_of_members_are_not_shared_rows() {
    let (first, second) =
        (LinearConfig::new(3, 3).init(&Device::flex()), LinearConfig::new(3, 2).init(&Device::flex()));
    let model = vec![first, second];
    let text = refused(&model, |members| members.mean(model[1].forward_shared(model[0].forward_shared(rows()))));
    assert!(
        text.contains("forward_shared was given 48 rows for \"1.weight\"")
            && text.contains("Use forward for rows of members"),
        "{text}"
    );
    // Two layers on the same shared rows, and shared rows after a forward, are right.
    let fitness = ask(&model).evaluate(|members| {
        let one = model[0].forward_shared(rows()).slice_dim(1, 0..2);
        members.mean(one + model[1].forward_shared(rows()))
    });
    assert!(fitness.values().iter().all(|score| score.is_finite()));
}
