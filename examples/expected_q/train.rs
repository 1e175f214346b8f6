//! The oracle learns the solver's values: by evolution strategies, or by backpropagation.

use crate::args::{ExpectedQArgs, Method};
use crate::deals::{Batch, Decisions, Regret};
use crate::oracle::{Oracle, TokenTables};
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor};
use eggroll::prelude::*;
use eggroll::rl::WorldKey;
use eggroll::run::print_line;
use eggroll_examples::interrupt::Signals;
use eggroll_examples::texas42::uniform_below;
use eggroll_examples::{Ending, Failure};
use rand::Rng;
use serde_json::json;
use std::time::Instant;

/// Positions of a step of backpropagation, and its first learning rate.
const BATCH: usize = 128;
const RATE: f64 = 0.005;
/// Members of a generation, positions that they are judged by, noise scale and first learning rate.
const POPULATION: usize = 1024;
const JUDGED: usize = 32;
const SIGMA: f64 = 0.05;
const EVOLUTION_RATE: f64 = 0.01;
/// Deals that the regret is measured on while training, and at the end: under other seeds than the training's deals.
const TEST_DEALS: u32 = 500;
const VALIDATION: u64 = 1 << 32;
const TEST: u64 = 3 << 32;

/// The squared errors of the legal dominoes, summed for each position: `[rows]`.
fn errors(values: Tensor<2>, batch: &Batch) -> Tensor<1> {
    let wrong = (values - batch.values.clone()).mask_fill(batch.legal.clone().bool_not(), 0.0);
    wrong.square().sum_dim(1).squeeze_dim(1)
}

/// The oracle's regret on deals that it was not trained on.
pub fn test_regret(oracle: &Oracle, device: &Device, signals: &Signals) -> Regret {
    regret(oracle, &Decisions::of_deals(TEST, TEST_DEALS, signals), device)
}

fn regret(oracle: &Oracle, decisions: &Decisions, device: &Device) -> Regret {
    let tables = TokenTables::new(device);
    let numbers: Vec<usize> = (0..decisions.len()).collect();
    let values = numbers.chunks(512).flat_map(|numbers| {
        let values = oracle.points(&tables, decisions.batch(numbers, device).positions);
        values.cast(DType::F32).into_data().try_to_vec::<f32>().expect("cast to f32")
    });
    decisions.regret(&values.collect::<Vec<_>>())
}

/// Positions of a step, at random.
fn drawn(seed: u64, step: usize, count: usize, decisions: &Decisions, device: &Device) -> Batch {
    let mut rng = WorldKey::new(seed, step as u32, u32::MAX - 1).rng(0);
    let mut number = || uniform_below(decisions.len() as u64, &mut || rng.next_u32()) as usize;
    decisions.batch(&std::iter::repeat_with(&mut number).take(count).collect::<Vec<_>>(), device)
}

/// Trains, tells the regret on the way, and writes the weights.
pub fn run(args: &ExpectedQArgs, method: Method, device: &Device, signals: &Signals) -> Result<Ending, Failure> {
    let file = args.oracle.as_deref().expect("required by --train");
    for (option, number) in [("deals", args.train_deals), ("steps", args.train_steps)] {
        if number == 0 {
            return Err(format!("--train-{option} must be at least 1, not 0").into());
        }
    }
    let start = Instant::now();
    let decisions = Decisions::of_deals(args.seed, args.train_deals as u32, signals);
    let validation = Decisions::of_deals(VALIDATION, TEST_DEALS, signals);
    if signals.came() {
        return Ok(Ending::Stopped);
    }
    print_line!(
        "{} positions of {} deals in {:.1} s",
        decisions.len(),
        args.train_deals,
        start.elapsed().as_secs_f64()
    );
    print_line!("\n    step     loss  regret  seconds");
    let start = Instant::now();
    let tenth = args.train_steps.div_ceil(10);
    let mut tell = |step: usize, loss: Tensor<1>, oracle: &Oracle| {
        let (loss, regret) = (loss.into_scalar::<f32>(), regret(oracle, &validation, device).ratio());
        print_line!("{step:>8}  {loss:.5}  {regret:>6.3}  {:>7.1}", start.elapsed().as_secs_f64());
    };
    device.seed(args.seed);
    let context = Context { args, decisions: &decisions, signals, tenth };
    let oracle = match method {
        Method::Eggroll => context.evolve(device, &mut tell)?,
        Method::Backpropagation => context.backpropagate(device, &mut tell),
    };
    oracle.write(file)?;
    let seconds = start.elapsed().as_secs_f64();
    if signals.came() {
        print_line!("\nstopped; weights so far: {}", file.display());
        print_line!("RESULT {}", json!({ "seconds": seconds, "stopped": true }));
        return Ok(Ending::Stopped);
    }
    let regret = test_regret(&oracle, device, signals);
    print_line!(
        "\n{} of {:.2} points a decision (random choices: {:.2}), ratio {:.3}, on {TEST_DEALS} unseen deals; weights: {}",
        "regret",
        regret.chosen,
        regret.random,
        regret.ratio(),
        file.display()
    );
    let method = if method == Method::Eggroll { "eggroll" } else { "backpropagation" };
    print_line!(
        "RESULT {}",
        json!({ "method": method, "oracle_regret": regret.ratio(), "parameters": oracle.num_params(), "positions": decisions.len(),
            "steps": args.train_steps, "seconds": seconds, "seed": args.seed, "stopped": false })
    );
    Ok(Ending::Finished)
}

struct Context<'a> {
    args: &'a ExpectedQArgs,
    decisions: &'a Decisions,
    signals: &'a Signals,
    tenth: usize,
}

impl Context<'_> {
    fn backpropagate(&self, device: &Device, tell: &mut impl FnMut(usize, Tensor<1>, &Oracle)) -> Oracle {
        let device = device.clone().autodiff();
        let tables = TokenTables::new(&device);
        let mut oracle = Oracle::new(&device);
        let mut optimizer = AdamConfig::new().init();
        let mut schedule =
            CosineAnnealingLrSchedulerConfig::new(RATE, self.args.train_steps).init().expect("a rate below 1");
        for step in 1..=self.args.train_steps {
            if self.signals.came() {
                break;
            }
            let batch = drawn(self.args.seed, step, BATCH, self.decisions, &device);
            let loss = errors(oracle.forward(tables.tokens(batch.positions.clone())), &batch).mean();
            let gradients = GradientsParams::from_grads(loss.backward(), &oracle);
            oracle = optimizer.step(schedule.step(), oracle, gradients);
            if step % self.tenth == 0 {
                tell(step, loss, &oracle.valid());
            }
        }
        oracle.valid()
    }

    fn evolve(&self, device: &Device, tell: &mut impl FnMut(usize, Tensor<1>, &Oracle)) -> Result<Oracle, Failure> {
        let tables = TokenTables::new(device);
        let mut oracle = Oracle::new(device);
        let config = EvolutionStrategyConfig::new(EggrollConfig::new(), AdamConfig::new())
            .with_population_size(POPULATION)
            .with_sigma(SIGMA)
            .with_learning_rate(CosineAnnealingLrSchedulerConfig::new(EVOLUTION_RATE, self.args.train_steps))
            .with_shaping(FitnessShaping::Raw)
            .with_seed(self.args.seed);
        let mut strategy = config.try_init(&oracle)?;
        for step in 1..=self.args.train_steps {
            if self.signals.came() {
                break;
            }
            let batch = drawn(self.args.seed, step, JUDGED, self.decisions, device);
            let inputs = tables.tokens(batch.positions.clone());
            let population = strategy.ask();
            let fitness = population.evaluate(|members| {
                let judged = Batch {
                    positions: batch.positions.clone(),
                    values: members.repeat(batch.values.clone()),
                    legal: members.repeat(batch.legal.clone()),
                };
                -members.mean(errors(oracle.forward(inputs.clone()), &judged))
            });
            strategy.tell(&mut oracle, population, fitness)?;
            if step % self.tenth == 0 {
                tell(step, errors(oracle.forward(inputs), &batch).mean(), &oracle);
            }
        }
        Ok(oracle)
    }
}
