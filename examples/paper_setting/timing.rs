//! Timing: all tasks in turn, round after round, so that all see the same machine.

use super::args::PaperSettingArgs;
use burn::tensor::{DType, Device, Tensor};
use eggroll_examples::Failure;
use eggroll_examples::interrupt::Signals;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds at least, after one that warms up.
const MIN_ROUNDS: usize = 5;

/// What is timed.
pub struct TimedTask {
    pub name: &'static str,
    /// Bytes of noise kept between passes.
    pub held: usize,
    /// Floating-point operations of a pass, without the drawing of noise.
    flop: usize,
    /// One pass, given its number.
    pass: Box<dyn FnMut(u32) -> Tensor<2>>,
    /// Milliseconds of a pass, one entry for each round.
    times: Vec<f64>,
}

impl TimedTask {
    pub fn new(name: &'static str, [held, flop]: [usize; 2], pass: impl FnMut(u32) -> Tensor<2> + 'static) -> Self {
        Self { name, held, flop, pass: Box::new(pass), times: Vec::new() }
    }

    pub fn rounds(&self) -> usize {
        self.times.len()
    }

    pub fn median_ms(&self) -> f64 {
        self.quantile(0.5)
    }

    pub fn quartiles_ms(&self) -> [f64; 2] {
        [self.quantile(0.25), self.quantile(0.75)]
    }

    pub fn tera_flops(&self) -> f64 {
        self.flop as f64 / self.median_ms() / 1e9
    }

    fn quantile(&self, q: f64) -> f64 {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        times[((times.len() - 1) as f64 * q).round() as usize]
    }

    /// Fails unless a pass gives numbers: a device may put work off, and what failed there is seen only in what is read.
    fn check(&mut self) -> Result<(), Failure> {
        let sum = (self.pass)(0).cast(DType::F32).sum();
        let sum: Vec<f32> = sum.try_into_data().map_err(|error| format!("{}: {error}", self.name))?.try_to_vec()?;
        if sum.iter().all(|sum| sum.is_finite()) {
            Ok(())
        } else {
            Err(format!("{}: sums to {sum:?}", self.name).into())
        }
    }

    fn round(&mut self, number: u32, passes: u32, device: &Device) -> Result<Duration, Failure> {
        let start = Instant::now();
        for pass in 0..passes {
            drop(black_box((self.pass)(number.wrapping_mul(passes).wrapping_add(pass))));
        }
        device.sync()?;
        Ok(start.elapsed())
    }
}

/// Runs all tasks in turn until the time is over, or a signal comes and there has been a round.
pub fn repeat(
    tasks: &mut [TimedTask],
    args: &PaperSettingArgs,
    device: &Device,
    signals: &Signals,
) -> Result<(), Failure> {
    for task in tasks.iter_mut() {
        task.check()?;
        task.round(0, args.passes, device)?;
    }
    let (start, limit) = (Instant::now(), Duration::from_secs_f64(args.seconds));
    while tasks[0].rounds() < MIN_ROUNDS || start.elapsed() < limit {
        if tasks[0].rounds() > 0 && signals.came() {
            break;
        }
        for task in tasks.iter_mut() {
            let number = task.rounds() as u32 + 1;
            let time = task.round(number, args.passes, device)?;
            task.times.push(time.as_secs_f64() * 1000.0 / f64::from(args.passes));
        }
    }
    Ok(())
}
