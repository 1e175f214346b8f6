//! What a run measures and prints.

use crate::args::ExpectedQArgs;
use crate::matches::{Match, Score, play_match};
use crate::oracle::{Oracle, TokenTables};
use crate::players::{DecisionCost, Player, Thinker};
use crate::shown::Shown;
use crate::{picture, speed, train};
use burn::tensor::Device;
use eggroll::rl::{ExpectedValuesConfig, ExpectedValuesError};
use eggroll::run::print_line;
use eggroll_examples::device::open;
use eggroll_examples::interrupt::Signals;
use eggroll_examples::texas42::Opponent;
use eggroll_examples::{Ending, Failure};
use serde_json::{Map, Value, json};

/// Worlds of the sweep.
const SWEEP: [usize; 4] = [32, 64, 128, 256];

pub fn run(args: &ExpectedQArgs, signals: &Signals) -> Result<Ending, Failure> {
    let opened = open(args.backend)?;
    if args.games == 0 {
        return Err("--games must be at least 1, not 0".into());
    }
    // Settings are refused before anything is computed.
    ExpectedValuesConfig::new(args.worlds).with_temperature(Some(args.temperature)).init(&opened.device)?;
    if let Some(method) = args.train {
        return args.trace.around(|| train::run(args, method, &opened.device, signals));
    }
    let oracle = Oracle::read(args.oracle.as_deref(), &opened.device)?;
    let run = ReportRun { args, device: &opened.device, tables: TokenTables::new(&opened.device), oracle, signals };
    print_line!(
        "Texas 42 on {}: {} worlds, a temperature of {} in points",
        opened.hardware,
        args.worlds,
        args.temperature
    );
    let mut result = json!({ "hardware": opened.hardware, "worlds": args.worlds, "games": args.games,
        "temperature": args.temperature, "seed": args.seed });
    let found = result.as_object_mut().expect("an object");
    let regret = train::test_regret(&run.oracle, &opened.device, signals);
    if !signals.came() {
        let (chosen, random, ratio) = (regret.chosen, regret.random, regret.ratio());
        print_line!(
            "oracle: {chosen:.2} points lost a decision on unseen deals (random: {random:.2}), ratio {ratio:.3}"
        );
        found.insert("oracle_regret".into(), ratio.into());
    }
    args.trace.around(|| {
        if !args.no_speed {
            run.speed(found)?;
        }
        run.matches(found)
    })?;
    if signals.came() {
        found.insert("stopped".into(), true.into());
        print_line!("\nRESULT {result}");
        return Ok(Ending::Stopped);
    }
    let shown = Shown::find(&run.thinker(args.worlds, true)?, &run.thinker(args.worlds, false)?, args.seed)?;
    shown.print()?;
    if let Some(file) = &args.svg {
        picture::write(&shown, file)?;
        print_line!("  picture     {}", file.display());
    }
    found.insert("stopped".into(), false.into());
    print_line!("\nRESULT {result}");
    Ok(Ending::Finished)
}

struct ReportRun<'a> {
    args: &'a ExpectedQArgs,
    device: &'a Device,
    tables: TokenTables,
    oracle: Oracle,
    signals: &'a Signals,
}

impl ReportRun<'_> {
    fn thinker(&self, worlds: usize, weighs: bool) -> Result<Thinker<'_>, ExpectedValuesError> {
        let config = ExpectedValuesConfig::new(worlds).with_temperature(weighs.then_some(self.args.temperature));
        Ok(Thinker { engine: config.init(self.device)?, oracle: &self.oracle, tables: &self.tables })
    }

    /// Decisions a second without and with weights, and worlds a second by their number.
    fn speed(&self, found: &mut Map<String, Value>) -> Result<(), Failure> {
        let ExpectedQArgs { games, worlds, seed, .. } = *self.args;
        print_line!("\n{games} hands side by side, all players by expected values; a step decides all");
        print_line!("                                             host reads            kernels");
        print_line!("worlds  weights    decisions/s   worlds/s  a step  /decision   a step  /decision");
        let mut rows = vec![("decisions_per_second", worlds, false), ("decisions_per_second_posterior", worlds, true)];
        rows.extend(SWEEP.map(|worlds| ("", worlds, false)));
        let mut sweep = vec![];
        for (name, worlds, weighs) in rows {
            if self.signals.came() {
                return Ok(());
            }
            let thinker = self.thinker(worlds, weighs)?;
            if self.args.backend.is_on_host() {
                speed::measure(&thinker, games.min(8), seed.wrapping_add(1))?; // memory and threads are there
            } else {
                speed::measure(&thinker, games, seed)?; // kernels are compiled and tried out
            }
            let speed = speed::measure(&thinker, games, seed)?;
            let decisions = speed.work.decisions_per_second();
            let steps_per_decision = speed.work.steps as f64 / speed.work.decisions.max(1) as f64;
            let (reads, launches) = (speed.host_reads_per_step, speed.launches_per_step);
            print_line!(
                "{worlds:>6}  {:<9}  {decisions:>11.1}  {:>9.0}  {reads:>6.2}  {:>9.4}  {launches:>7.1}  {:>9.2}",
                if weighs { "posterior" } else { "equal" },
                decisions * worlds as f64,
                reads * steps_per_decision,
                launches * steps_per_decision
            );
            match name {
                "" => sweep.push(json!({ "worlds": worlds, "worlds_per_second": decisions * worlds as f64,
                    "launches_per_step": speed.launches_per_step })),
                name => {
                    found.insert(name.into(), decisions.into());
                    for (count, value) in [
                        ("host_reads_per_step", reads),
                        ("host_reads_per_decision", reads * steps_per_decision),
                        ("launches_per_step", launches),
                        ("launches_per_decision", launches * steps_per_decision),
                    ] {
                        found.insert(name.replace("decisions_per_second", count), value.into());
                    }
                }
            }
        }
        found.insert("sweep".into(), sweep.into());
        Ok(())
    }

    fn matches(&self, found: &mut Map<String, Value>) -> Result<(), Failure> {
        let ExpectedQArgs { games: at_once, worlds, seed, deals, trumps: naming, .. } = *self.args;
        if deals == 0 {
            return Ok(());
        }
        print_line!("\nMatches of {deals} deals, each played twice with the sides changed; posterior weights");
        print_line!("against             marks  95 % interval  points a hand  decisions/s");
        let player = Player::ExpectedValues(self.thinker(worlds, true)?);
        let opponents = [
            ("random", "win_rate_random", Player::Simple(Opponent::Random)),
            ("highest domino", "win_rate_greedy", Player::Simple(Opponent::Highest)),
            ("equal weights", "win_rate_no_posterior", Player::ExpectedValues(self.thinker(worlds, false)?)),
        ];
        for (against, name, opponent) in &opponents {
            let mut work = DecisionCost::default();
            let played = Match { seed, deals, at_once, naming };
            let score = play_match([&player, opponent], played, &mut work, || !self.signals.came())?;
            let Some(Score { share, interval, points }) = score else { return Ok(()) };
            let (low, high) = (100.0 * (share - interval).max(0.0), 100.0 * (share + interval).min(1.0));
            print_line!(
                "{against:<16} {:>6.1} %  {low:>5.1} to {high:>5.1}  {points:>13.2}  {:>11.1}",
                100.0 * share,
                work.decisions_per_second()
            );
            found.insert((*name).into(), share.into());
            found.insert(format!("{name}_interval"), interval.into());
        }
        Ok(())
    }
}
