//! Every numeric option of every example with numbers that cannot be: an error that names the number, or a run that can be stopped. No
//! panic, no abort, no generation that never ends.

use super::help::options;
use super::support::{Place, Running, example};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// What one process may have of addresses, in KiB: what wants more aborts, and does not fill the machine.
const ADDRESSES: u64 = 12 << 20;
/// A run that has refused nothing until then is stopped.
const SHORT: Duration = Duration::from_millis(400);
/// Seconds that a generation may take then.
const GRACE: &str = "4";

const INTEGERS: [&str; 4] = ["0", "18446744073709551615", "9223372036854775808", "8589934594"];
const FLOATS: [&str; 6] = ["NaN", "inf", "1e300", "1e-320", "-1", "0"];

/// A short run of an example.
struct Short<'a> {
    program: &'a str,
    /// Options with their values.
    options: &'a [(&'a str, &'a str)],
    positional: &'a [&'a str],
    /// What an option is nothing without; with a `!` before it, which of the options it is refused next to.
    with: &'a [(&'a str, &'a [&'a str])],
}

impl Short<'_> {
    /// The numbers that an option is tried with.
    fn numbers(&self, option: &str) -> &'static [&'static str] {
        let probe = Command::new(example(self.program))
            .args([format!("{option}=x"), "--no-such-option".into()])
            .output()
            .expect("runs");
        let words = String::from_utf8_lossy(&probe.stderr);
        match () {
            () if words.contains("invalid float literal") => &FLOATS,
            () if words.contains("invalid digit") => &INTEGERS,
            () => &[],
        }
    }

    fn command(&self, option: &str, number: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {ADDRESSES}; exec \"$0\" \"$@\"")]).arg(example(self.program));
        let of_option = self.with.iter().filter(|(name, _)| *name == option);
        let with: Vec<&str> = of_option.flat_map(|(_, words)| words.iter().copied()).collect();
        // An option that is given twice is an error.
        let is_other = |name: &str| name != option && with.iter().all(|word| word.strip_prefix('!') != Some(name));
        let others = self.options.iter().filter(|(name, _)| is_other(name));
        command.args(others.flat_map(|(name, value)| [*name, *value]));
        command.args(with.iter().filter(|word| !word.starts_with('!')));
        command.arg(format!("{option}={number}")).args(self.positional);
        command.env("EGGROLL_GRACE_SECONDS", GRACE).env("RUST_BACKTRACE", "0");
        command
    }

    /// Runs the example with every number of every numeric option.
    fn walk(&self, place: &Place) {
        let (mut wrong, mut tried, mut unused) = (Vec::new(), 0, 0);
        for option in options(self.program) {
            for number in self.numbers(&option) {
                tried += 1;
                let _ = fs::remove_dir_all(place.path("out"));
                let mut running = Running::start(&mut self.command(&option, number), place);
                if running.ended_within(SHORT).is_none() {
                    running.signal("TERM");
                }
                let ended = running.end();
                let fine = match ended.status {
                    0 | 75 => true,
                    // The signal came before it was watched for.
                    143 => !ended.errors.contains("not ended within"),
                    // By the model or the mode that is tried here.
                    1 | 2 if ended.errors.contains(" cannot be used with") => {
                        unused += 1;
                        true
                    }
                    1 | 2 => names(&ended.errors, number),
                    _ => false,
                };
                if !fine {
                    let last: Vec<&str> = ended.errors.lines().rev().take(3).collect();
                    wrong.push(format!("{option}={number}: {} {last:?}", ended.status));
                }
            }
        }
        assert!(tried >= 4 + unused, "canary: {tried} numbers of {}, {unused} refused", self.program);
        assert!(wrong.is_empty(), "{}, {} of {tried}:\n{}", self.program, wrong.len(), wrong.join("\n"));
    }
}

/// Whether a message has the number, as it was given or as it is printed.
fn names(message: &str, number: &str) -> bool {
    let value: f64 = number.parse().expect("a number");
    let printed = [format!("{value}"), format!("{value:?}"), format!("{}", value as f32)];
    message.contains(number) || printed.iter().any(|text| message.contains(text))
}

/// All have a trace but for some.
const TRACE: (&str, &[&str]) = ("--trace-generations", &["--trace", "/dev/null"]);

#[test]
fn mnist() {
    let place = Place::new();
    let integers: &[&str] = &["--noiser", "q-eggroll"];
    let cnn: &[&str] = &["--model", "cnn"];
    let short = Short {
        program: "mnist",
        options: &[
            ("--out", &place.path("out")),
            ("--population", "8"),
            ("--batch", "4"),
            ("--hidden", "4"),
            ("--generations", "3"),
            ("--evaluate-every", "2"),
        ],
        positional: &[&place.digits()],
        with: &[
            ("--sigma-shift", integers),
            ("--alpha", integers),
            ("--decay", integers),
            ("--channels", cnn),
            ("--kernel", cnn),
            ("--stride", cnn),
            (
                "--epochs",
                &["!--out", "!--generations", "!--evaluate-every", "--compare", "--methods", "backpropagation"],
            ),
            ("--weight-decay", &["--optimizer", "adam-w"]),
            TRACE,
        ],
    };
    short.walk(&place);
}

fn char_lm(model: &str) {
    let place = Place::new();
    let short = Short {
        program: "char_lm",
        options: &[
            ("--out", &place.path("out")),
            ("--data", &place.text()),
            ("--model", model),
            ("--population", "8"),
            ("--width", "8"),
            ("--seq", "8"),
            ("--generations", "3"),
            ("--validate-every", "2"),
            ("--sample-bytes", "5"),
        ],
        positional: &[],
        with: &[
            ("--alpha", &["--optimizer", "votes"]),
            ("--decay", &["--optimizer", "adam-w"]),
            ("--integer-rate", &["--optimizer", "adam-w"]),
            TRACE,
        ],
    };
    short.walk(&place);
}

#[test]
fn char_lm_in_integers() {
    char_lm("integer");
}

#[test]
fn char_lm_in_floats() {
    char_lm("gru");
}

fn control(program: &str) {
    let place = Place::new();
    let short = Short {
        program,
        options: &[("--out", &place.path("out")), ("--population", "8"), ("--hidden", "4"), ("--budget", "2000")],
        positional: &[],
        with: &[("--seconds", &["!--budget", "--throughput"]), TRACE],
    };
    short.walk(&place);
}

#[test]
fn cartpole() {
    control("cartpole");
}

/// With those of its own; the network is recurrent.
#[test]
fn memory() {
    control("memory");
}

#[test]
fn expected_q() {
    let place = Place::new();
    let oracle = place.path("oracle");
    let training = ["!--worlds", "!--games", "!--deals", "--train", "backpropagation", "--oracle", oracle.as_str()];
    let [deals, steps] = ["--train-deals", "--train-steps"].map(|other| [&training[..], &[other, "1"]].concat());
    let short = Short {
        program: "expected_q",
        options: &[("--worlds", "2"), ("--games", "2"), ("--deals", "0")],
        positional: &[],
        with: &[("--train-deals", &steps[..]), ("--train-steps", &deals[..]), TRACE],
    };
    short.walk(&place);
}

#[test]
fn finetune() {
    let place = Place::new();
    let short = Short {
        program: "finetune",
        options: &[
            ("--epochs", "1"),
            ("--hidden", "4"),
            ("--generations", "2"),
            ("--population", "4"),
            ("--batch", "4"),
        ],
        positional: &[&place.digits()],
        with: &[("--bits", &["--damage", "quantize"])],
    };
    short.walk(&place);
}

#[test]
fn soak() {
    let place = Place::new();
    let short = Short {
        program: "soak",
        options: &[("--generations", "10"), ("--population", "4"), ("--every", "5")],
        positional: &[],
        with: &[],
    };
    short.walk(&place);
}

#[test]
fn measurements() {
    let place = Place::new();
    let throughput = Short {
        program: "throughput",
        options: &[("--sizes", "small"), ("--populations", "8"), ("--ranks", "1"), ("--seconds", "0.01")],
        positional: &[],
        with: &[TRACE],
    };
    throughput.walk(&place);
    let paper_setting = Short {
        program: "paper_setting",
        options: &[("--width", "16"), ("--batch", "8"), ("--dtype", "f32"), ("--seconds", "0"), ("--passes", "1")],
        positional: &[],
        with: &[],
    };
    paper_setting.walk(&place);
    let backend_comparison = Short {
        program: "backend_comparison",
        options: &[
            ("--out", &place.path("out")),
            ("--data", &place.digits()),
            ("--size", "small"),
            ("--population", "8"),
            ("--generations", "2"),
            ("--seconds", "0.01"),
        ],
        positional: &[],
        with: &[TRACE],
    };
    backend_comparison.walk(&place);
}

#[test]
fn sweep() {
    let place = Place::new();
    let file = place.path("sweep.toml");
    let text =
        "command = ['sh', '-c', 'echo \"RESULT {\\\"s\\\": 1}\"', '{x}']\nobjective = 's'\n[parameters]\nx = [1]\n";
    fs::write(&file, text).expect("writes");
    let out = place.path("out");
    Short { program: "sweep", options: &[("--out", &out)], positional: &[&file], with: &[] }.walk(&place);
}
