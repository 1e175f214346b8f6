//! Scratch.
use eggroll::envs::*;
use eggroll::prelude::*;
use eggroll::train::*;
use std::time::Instant;
#[global_allocator]
static A: mimalloc::MiMalloc = mimalloc::MiMalloc;
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let get = |i: usize, d: f64| args.get(i).map_or(d, |v| v.parse().unwrap());
    let (n, rank, sigma, lr, seconds, seed) =
        (get(2, 128.0) as usize, get(3, 1.0) as usize, get(4, 0.3), get(5, 0.1), get(6, 3.0), get(7, 0.0) as u64);
    let fused = get(8, 1.0) > 0.0;
    let sizes: Vec<usize> = args[1].split('-').map(|v| v.parse().unwrap()).collect();
    let device = Device::flex();
    device.seed(seed);
    let mut policy = eggroll::nn::MlpConfig::new(sizes).init(&device);
    let mut strategy =
        EvolutionStrategyConfig::new(EggrollConfig::new().with_rank(rank), burn::optim::AdamConfig::new())
            .with_population(n)
            .with_sigma(sigma)
            .with_learning_rate(lr)
            .with_seed(seed)
            .try_init(&policy)?;
    let rollouts = RolloutConfig::new().with_fused(fused).with_seed(seed).init(CartPole::new())?;
    let start = Instant::now();
    let (mut steps, mut rolling, mut telling) = (0u64, 0.0, 0.0);
    let mut g = 0;
    let mut solved = None;
    while start.elapsed().as_secs_f64() < seconds {
        let population = strategy.ask();
        let t = Instant::now();
        let outcome = rollouts.evaluate(&population, &policy);
        rolling += t.elapsed().as_secs_f64();
        steps += outcome.episodes.env_steps();
        let mean = outcome.episodes.mean_return();
        let t = Instant::now();
        policy = strategy.tell(policy, population, outcome.fitness)?;
        telling += t.elapsed().as_secs_f64();
        g += 1;
        if solved.is_none() {
            let m = rollouts.evaluate_model(&policy, 100, 7, &device).mean_return();
            println!(
                "gen {g} steps {steps} population {mean:.1} model {m:.1} t {:.2} roll {rolling:.3} tell {telling:.3}",
                start.elapsed().as_secs_f64()
            );
            if m >= 475.0 {
                solved = Some((g, steps, start.elapsed().as_secs_f64()));
            }
        }
    }
    println!(
        "solved {solved:?}; {} gens {steps} steps, {:.0} steps/s rolling, {:.0} with update; last",
        g,
        steps as f64 / rolling,
        steps as f64 / (rolling + telling)
    );
    Ok(())
}
