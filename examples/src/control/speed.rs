//! Speed alone: environment steps per second of training as it is configured.

use super::train::{Trainer, TrainingTimes};
use super::{ControlSession, ControlTask};
use crate::trace;
use crate::{Ending, Failure};
use eggroll::core::counters;
use eggroll::run::print_line;
use serde_json::{Value, json};
use std::time::Instant;

/// Trains for some seconds, whatever comes of it. Only steps of episodes that had not ended count.
pub fn measure<T: ControlTask>(
    mut trainer: Trainer<'_, T>,
    seconds: f64,
    session: &ControlSession,
) -> Result<(Value, Ending), Failure> {
    // The first generation grows buffers.
    trainer.generation()?;
    (trainer.env_steps, trainer.episodes, trainer.times) = (0, 0, TrainingTimes::default());
    let warm_up = trainer.generations();
    trace::section("speed");
    let kernels = counters::kernels();
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds && !session.signals.came() {
        trainer.generation()?;
    }
    let elapsed = start.elapsed().as_secs_f64();
    let generations = trainer.generations() - warm_up;
    let rate = trainer.env_steps as f64 / elapsed;
    let length = trainer.env_steps as f64 / trainer.episodes as f64;
    // Of eggroll's own kernels; on CPUs there are none.
    let kernels = (counters::kernels() - kernels) as f64 / generations.max(1) as f64;
    let share = trainer.times.update.as_secs_f64() / elapsed;
    print_line!(
        "{rate:.0} environment steps per second: {} steps in {elapsed:.1} s, {generations} generations, mean episode \
         {length:.1} steps, {:.1} % of the time in updates",
        trainer.env_steps,
        100.0 * share
    );
    if kernels > 0.0 {
        print_line!("{kernels:.1} kernels in a generation");
    }
    let result = json!({
        "env_steps_per_second": rate,
        "env_steps": trainer.env_steps,
        "train_seconds": elapsed,
        "generations": generations,
        "mean_episode_length": length,
        "evaluate_share": trainer.times.evaluate.as_secs_f64() / elapsed,
        "update_share": share,
        "kernels_per_generation": kernels,
    });
    Ok((result, if elapsed < seconds { session.signals.ending() } else { Ending::Finished }))
}
