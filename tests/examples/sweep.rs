//! The example `sweep` with tiny children: what it runs, records, survives and refuses.

use clap::Parser;
use eggroll_examples::sweep::{self as program, Args};
use eggroll_examples::{Ending, Failure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Arguments of a sweep in a separate process, one a line.
const ARGUMENTS: &str = "SWEEP_TEST_ARGUMENTS";

/// A sweep's file and folder, and a log that its children write a line to when they begin.
struct Sweep {
    folder: TempDir,
}

impl Sweep {
    /// Children run `script` with `$1`, `$2`, … for x, y and the seed.
    fn new(script: &str, rest: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let script = format!("echo \"$1 $2 $3\" >> {}; {script}", log.display());
        let command = format!("command = ['sh', '-c', '''{script}''', 'child', '{{x}}', '{{y}}', '{{seed}}']\n");
        fs::write(folder.path().join("sweep.toml"), command + rest).expect("writes");
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let paths = [self.file("sweep.toml"), self.file("out")].map(|path| path.display().to_string());
        let [file, out] = paths;
        let given = ["sweep".into(), file, "--out".into(), out];
        given.into_iter().chain(more.iter().map(|word| (*word).to_owned())).collect()
    }

    fn try_run(&self, more: &[&str]) -> Result<Ending, Failure> {
        program::run(&Args::parse_from(self.arguments(more)), &AtomicBool::new(false))
    }

    fn run(&self, more: &[&str]) {
        assert_eq!(self.try_run(more).expect("a sweep"), Ending::Finished);
    }

    /// The sweep in a separate process.
    fn start(&self) -> Child {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--exact", "sweep::a_process_of_its_own", "--ignored", "--nocapture"]);
        command.env(ARGUMENTS, self.arguments(&[]).join("\n")).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("starts")
    }

    /// What the children have begun, sorted.
    fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("log")).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// The records by the settings of x, y and the seed.
    fn records(&self) -> Vec<Value> {
        let entries = fs::read_dir(self.file("out/trials")).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let json = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        let read = |path| serde_json::from_slice(&fs::read(path).expect("reads")).expect("JSON");
        let mut records: Vec<Value> = json.map(read).collect();
        records.sort_by_key(|record| record["settings"].to_string() + &record["seed"].to_string());
        records
    }

    fn table(&self) -> String {
        fs::read_to_string(self.file("out/trials.csv")).expect("a table")
    }
}

/// Not a test: a sweep that others kill.
#[test]
#[ignore = "a process that other tests start"]
fn a_process_of_its_own() {
    if let Ok(arguments) = std::env::var(ARGUMENTS) {
        std::process::exit(program::execute(&Args::parse_from(arguments.lines())).into());
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Six configurations with two seeds; x = 2 crashes, x = 3 hangs, and y = b prints no objective.
const SCRIPT: &str = r#"
if [ "$1" = 2 ]; then echo "the model exploded" >&2; exit 7; fi
if [ "$1" = 3 ]; then sleep 100; fi
if [ "$2" = b ]; then echo "RESULT {\"other\": 1}"; exit; fi
echo noise; echo "RESULT {\"inner\": {\"score\": $1.$3}}""#;
const PARAMETERS: &str = r#"
objective = "inner/score"
seeds = [5, 1]
[budget]
jobs = 3
trial_seconds = 1.5
[parameters]
x = [1, 2, 3]
y = ["a", "b"]
"#;

#[test]
fn crashes_and_hangs_are_records_and_nothing_runs_twice() {
    let sweep = Sweep::new(SCRIPT, PARAMETERS);
    sweep.run(&[]);
    let all =
        ["1 a 1", "1 a 5", "1 b 1", "1 b 5", "2 a 1", "2 a 5", "2 b 1", "2 b 5", "3 a 1", "3 a 5", "3 b 1", "3 b 5"];
    assert_eq!(sweep.log(), all);
    let records = sweep.records();
    let found: Vec<_> =
        records.iter().map(|record| (record["outcome"].as_str(), record["objective"].as_f64())).collect();
    let (failed, late) = ((Some("failed"), None), (Some("timed_out"), None));
    let finished = |objective| (Some("finished"), Some(objective));
    assert_eq!(found[..4], [finished(1.1), finished(1.5), failed, failed]);
    assert_eq!(found[4..], [failed, failed, failed, failed, late, late, late, late]);
    assert!(records[4]["status"].as_str().is_some_and(|status| status.contains('7')), "{}", records[4]);
    assert_eq!(records[4]["stderr"], "the model exploded\n");
    assert_eq!(records[2]["status"], "RESULT has no number \"inner/score\"");
    let table = sweep.table();
    assert!(table.starts_with("trial,outcome,x,y,seed,inner/score,seconds,status\n"), "{table}");
    assert_eq!(table.lines().count(), 13);
    assert!(table.contains(",finished,1,a,5,1.5,"), "{table}");
    let chart = fs::read_to_string(sweep.file("out/summary.svg")).expect("a chart");
    assert!(chart.contains("inner/score over x") && chart.contains("inner/score over y"));

    // Again: nothing to do. With the failures: only they run.
    sweep.run(&[]);
    assert_eq!(sweep.log().len(), 12);
    sweep.run(&["--retry-failed"]);
    assert_eq!(sweep.log().len(), 12 + 10);
    // Another setting in the file: only what is new runs.
    let text = fs::read_to_string(sweep.file("sweep.toml")).expect("reads");
    fs::write(sweep.file("sweep.toml"), text.replace("x = [1, 2, 3]", "x = [1, 4]")).expect("writes");
    sweep.run(&[]);
    assert_eq!(sweep.log().len(), 12 + 10 + 4);
    assert_eq!(sweep.table().lines().count(), 9);
}

/// Children that from x = 3 on wait for a file, and make one when they have passed.
const GATED: &str = r#"
if [ "$1" -ge 3 ]; then while [ ! -e "$2" ]; do sleep 0.02; done; touch "$2.$1"; fi
echo "RESULT {\"score\": $1}""#;

fn gated() -> Sweep {
    let sweep = Sweep::new(GATED, "");
    let gate = sweep.file("gate");
    let text = fs::read_to_string(sweep.file("sweep.toml")).expect("reads");
    let rest = format!(
        "objective = 'score'\nseeds = [0]\n[budget]\njobs = 2\n[parameters]\nx = [1, 2, 3, 4, 5]\ny = ['{}']\n",
        gate.display()
    );
    fs::write(sweep.file("sweep.toml"), text + &rest).expect("writes");
    sweep
}

fn outcomes(sweep: &Sweep) -> Vec<Option<f64>> {
    sweep.records().iter().map(|record| record["objective"].as_f64()).collect()
}

#[test]
fn a_killed_sweep_goes_on_where_it_was() {
    let sweep = gated();
    let mut process = sweep.start();
    // Two are done and recorded, two wait at the gate.
    wait_until("four children", || sweep.log().len() == 4 && sweep.records().len() == 2);
    process.kill().expect("killed");
    process.wait().expect("ended");
    // The children of a process that is killed outright are ended too: nobody is left to pass the gate. Their end
    // is not to be seen from here; a machine that is busy takes a while.
    sleep(Duration::from_secs(2));
    fs::write(sweep.file("gate"), "").expect("writes");
    sleep(Duration::from_millis(300));
    assert!(!sweep.file("gate.3").exists() && !sweep.file("gate.4").exists());
    assert_eq!(outcomes(&sweep), [Some(1.0), Some(2.0)]);
    // What a write that was cut off leaves behind is no record.
    fs::write(sweep.file("out/trials/0123456789abcdef.draft"), "{\"key\"").expect("writes");
    sweep.run(&[]);
    assert_eq!(outcomes(&sweep), [Some(1.0), Some(2.0), Some(3.0), Some(4.0), Some(5.0)]);
    let begun: Vec<char> = sweep.log().iter().map(|line| line.chars().next().expect("x")).collect();
    assert_eq!(begun, ['1', '2', '3', '3', '4', '4', '5']);
    assert!(sweep.file("gate.3").exists(), "canary: who passes leaves a file");
}

#[test]
fn an_interrupted_sweep_ends_its_children_and_goes_on_later() {
    let sweep = gated();
    let mut process = sweep.start();
    wait_until("four children", || sweep.log().len() == 4 && sweep.records().len() == 2);
    // A second sweep in the same folder is refused.
    let refused = sweep.try_run(&[]).expect_err("refused").to_string();
    assert!(refused.contains("/out is in use by process"), "{refused}");
    let interrupt = format!("kill -s TERM {}", process.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().expect("runs").success());
    assert_eq!(process.wait().expect("ended").code(), Some(75));
    assert_eq!(outcomes(&sweep), [Some(1.0), Some(2.0)]);
    assert!(sweep.table().contains(",pending,3,"), "{}", sweep.table());
    // Nobody is left to pass the gate.
    fs::write(sweep.file("gate"), "").expect("writes");
    sleep(Duration::from_millis(300));
    assert!(!sweep.file("gate.3").exists() && !sweep.file("gate.4").exists());
    sweep.run(&[]);
    assert_eq!(outcomes(&sweep).len(), 5);
    assert!(sweep.file("gate.3").exists(), "canary: who passes leaves a file");
}

/// Who stops a trial will have it run again: by status 75, by its result, by a signal to it or to its shell.
#[test]
fn stopped_trials_have_no_record() {
    let stops = [
        "echo RESULT {}; exit 75",
        "echo \"RESULT {\\\"s\\\": 1, \\\"stopped\\\": true}\"; exit 0",
        "kill -s TERM $$",
        "kill -s INT $$",
        "kill -s HUP $$",
        "exit 143",
    ];
    // A test that `nohup` or a script in the background starts cannot send what is ignored.
    let is_ignored = |stop: &str| Command::new("sh").args(["-c", stop]).status().expect("a shell").success();
    for stop in stops.into_iter().filter(|stop| !stop.starts_with("kill") || !is_ignored(stop)) {
        // x = 1 is stopped unless there is the file that y names.
        let sweep =
            Sweep::new(&format!("if [ $1 = 1 ] && [ ! -e $2 ]; then {stop}; fi; echo \"RESULT {{\\\"s\\\": 2}}\""), "");
        let gate = sweep.file("gate");
        let rest = format!("objective = 's'\nseeds = [0]\n[parameters]\nx = [1, 2]\ny = ['{}']\n", gate.display());
        let text = fs::read_to_string(sweep.file("sweep.toml")).expect("reads");
        fs::write(sweep.file("sweep.toml"), text + &rest).expect("writes");
        assert_eq!(sweep.try_run(&[]).expect("a sweep"), Ending::Stopped, "{stop}");
        assert_eq!(outcomes(&sweep), [Some(2.0)], "{stop}");
        assert!(sweep.table().contains(",pending,1,"), "{stop}: {}", sweep.table());
        fs::write(gate, "").expect("writes");
        sweep.run(&[]);
        assert_eq!(outcomes(&sweep), [Some(2.0), Some(2.0)], "{stop}");
        assert_eq!(sweep.log().len(), 3, "{stop}: x = 2 ran twice");
    }
}

/// Another status than 75 is a failure, and so is another signal than those three.
#[test]
fn other_ends_are_failures() {
    for end in ["exit 1", "exit 76", "kill -s KILL $$"] {
        let rest = "objective = 's'\nseeds = [0]\n[parameters]\nx = [1]\ny = [2]\n";
        let sweep = Sweep::new(&format!("echo \"RESULT {{\\\"s\\\": 1}}\"; {end}"), rest);
        sweep.run(&[]);
        assert_eq!(sweep.records()[0]["outcome"], "failed", "{end}");
    }
}

/// A budget that is spent leaves trials for the next call.
#[test]
fn a_spent_budget_is_no_failure() {
    let rest = "objective = 's'\nseeds = [0]\n[budget]\nseconds = 1e-9\n[parameters]\nx = [1]\ny = [2]\n";
    let sweep = Sweep::new("echo 'RESULT {\"s\": 1}'", rest);
    sweep.run(&[]);
    assert!(sweep.log().is_empty());
    assert!(sweep.table().contains(",pending,1,2,0,"), "{}", sweep.table());
    let text = fs::read_to_string(sweep.file("sweep.toml")).expect("reads");
    fs::write(sweep.file("sweep.toml"), text.replace("1e-9", "1e9")).expect("writes");
    sweep.run(&[]);
    assert_eq!(sweep.log(), ["1 2 0"]);
}

/// The settings of x and y that a search runs.
fn settings(search: &str) -> Vec<(f64, f64)> {
    let rest = format!(
        "objective = 's'\nseeds = [0]\nsearch = {search}\n[budget]\njobs = 4\n[parameters]\n\
         x = {{ low = 0.001, high = 1.0, scale = 'log' }}\ny = {{ low = 1, high = 4 }}\n"
    );
    let sweep = Sweep::new("echo 'RESULT {\"s\": 1}'", &rest);
    sweep.run(&[]);
    let number = |record: &Value, name: &str| record["settings"][name].as_f64().expect("a number");
    let mut found: Vec<_> = sweep.records().iter().map(|record| (number(record, "x"), number(record, "y"))).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

#[test]
fn random_searches_are_functions_of_their_seed() {
    let found = settings("{ random = { configurations = 60, seed = 1 } }");
    assert_eq!(found.len(), 60);
    assert_eq!(found, settings("{ random = { configurations = 60, seed = 1 } }"));
    assert_ne!(found, settings("{ random = { configurations = 60, seed = 2 } }"), "canary");
    assert!(found.iter().all(|(x, y)| (0.001..=1.0).contains(x) && [1.0, 2.0, 3.0, 4.0].contains(y)), "{found:?}");
    // A third of the draws in each decade: 20 of 60, standard deviation 3.7.
    let low = found.iter().filter(|(x, _)| *x < 0.01).count();
    assert!((5..=35).contains(&low), "{low}");
    assert_eq!(found.iter().map(|(_, y)| y.to_string()).collect::<BTreeSet<_>>().len(), 4);
}

#[test]
fn grids_of_ranges_meet_their_ends() {
    let rest = "objective = 's'\nseeds = [0]\n[parameters]\n\
                x = { low = 0.001, high = 0.1, scale = 'log', steps = 3 }\ny = { low = 1, high = 3, steps = 9 }\n";
    let sweep = Sweep::new("echo 'RESULT {\"s\": 1}'", rest);
    sweep.run(&["--jobs", "4"]);
    let expected =
        ["0.001 1 0", "0.001 2 0", "0.001 3 0", "0.01 1 0", "0.01 2 0", "0.01 3 0", "0.1 1 0", "0.1 2 0", "0.1 3 0"];
    assert_eq!(sweep.log(), expected);
}

#[test]
fn refusals_name_the_value() {
    let parameters = "[parameters]\nx = [1]\ny = [2]\n";
    let valid = format!("objective = 's'\nseeds = [0]\n{parameters}");
    let refuse = |from: &str, to: &str, expected: &str| {
        assert!(valid.contains(from), "{from}");
        let sweep = Sweep::new("exit", &valid.replacen(from, to, 1));
        let message = sweep.try_run(&[]).expect_err(to).to_string();
        assert!(message.contains(expected) && message.contains("sweep.toml"), "{to}: {message}");
        assert!(sweep.log().is_empty());
    };
    refuse("seeds", "sedes", "unknown field `sedes`");
    refuse("objective = 's'\n", "", "missing field `objective`");
    refuse("seeds = [0]", "seeds = []", "seeds are empty");
    refuse("seeds = [0]", "seeds = [0, 3, 3]", "3 is there twice");
    refuse("seeds = [0]\n", "", "the command has {seed}");
    refuse("x = [1]", "x = []", "parameters.x: the list is empty");
    refuse("x = [1]", "x = [1, 2, 1]", "parameters.x: 1 is there twice");
    refuse("x = [1]", "x = [[1]]", "parameters.x: a setting must be");
    refuse("x = [1]", "x = [nan]", "not nan");
    refuse("x = [1]", "x = 1", "parameters.x: must be a list or a range { low, high }, not 1");
    refuse("x = [1]", "z = [1]", "the command has {x}");
    refuse("x = [1]", "x = [1]\nz = [1]", "the command has no {z}");
    refuse("x = [1]", "x = [1]\nfolder = [1]", "parameters.folder");
    let range = |range: &str, expected: &str| refuse("x = [1]", &format!("x = {range}"), expected);
    range("{ low = 2, high = 1, steps = 2 }", "low = 2 is not below high = 1");
    range("{ low = 0.0, high = 1.0, scale = 'log', steps = 2 }", "not at low = 0");
    range("{ low = 0, high = inf, steps = 2 }", "high must be a finite number, not inf");
    range("{ low = 0, high = 'b', steps = 2 }", "high must be a finite number, not \"b\"");
    range("{ low = 0, high = 1, steps = 1 }", "at least 2 steps, not 1");
    range("{ low = 0, high = 1, step = 3 }", "unknown field `step`");
    range("{ low = 0, high = 1, scale = 'cubic' }", "unknown variant `cubic`");
    range("{ low = 0, high = 1 }", "parameters.x: a range of a grid needs steps");
    let budget =
        |line: &str, expected: &str| refuse("[parameters]", &format!("[budget]\n{line}\n[parameters]"), expected);
    budget("seconds = -1.0", "budget.seconds must be positive and finite, not -1");
    budget("trial_seconds = nan", "budget.trial_seconds must be positive and finite, not NaN");
    budget("minutes = 1", "unknown field `minutes`");
    let random =
        |search: &str, expected: &str| refuse("seeds = [0]", &format!("seeds = [0]\nsearch = {search}"), expected);
    random("{ random = { configurations = 2, seed = 0 } }", "2 configurations in a space of 1");
    random("{ random = { configurations = 0, seed = 0 } }", "a random search of 0 configurations");
    random("{ random = { seed = 0 } }", "missing field `configurations`");
    random("'bayes'", "unknown variant `bayes`");

    let sweep = Sweep::new("exit", &valid);
    let message = sweep.try_run(&["--jobs", "0"]).expect_err("refused").to_string();
    assert_eq!(message, "jobs must be at least 1, not 0");
    let absent = |command: &str, expected: &str| {
        let text = format!("command = {command}\n{}", valid.replace("seeds = [0]\n", ""));
        fs::write(sweep.file("sweep.toml"), text).expect("writes");
        let message = sweep.try_run(&[]).expect_err("refused").to_string();
        assert!(message.contains(expected), "{message}");
    };
    absent("['no-such-program', '{x}', '{y}']", "there is no program no-such-program");
    absent("['./no/such', '{x}', '{y}']", "there is no program ./no/such");
    absent("[]", "the command is empty");
}

/// The committed sweep is one, of trials that are all different.
#[test]
fn the_committed_sweep_is_valid() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/sweep/mnist.toml");
    let args = Args::parse_from(["sweep", file.to_str().expect("text"), "--dry-run"]);
    let stop = AtomicBool::new(false);
    assert_eq!(program::run(&args, &stop).expect("valid"), Ending::Finished);
    assert!(!stop.load(Ordering::Relaxed));
}
