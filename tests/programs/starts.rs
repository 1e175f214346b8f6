//! Every example starts, and its row in `examples/README.md` says how.

use super::support::{OutputFolder, example, root, run};
use std::fs;
use std::process::Command;

/// The features that `tests/Cargo.toml` asks the examples for, and that an example may need.
const BUILT: [&str; 2] = ["lm", "rl"];

/// The examples of both packages that have some, with the features that they need.
fn examples() -> Vec<(String, Vec<String>)> {
    let [first, others] =
        ["Cargo.toml", "examples/Cargo.toml"].map(|file| fs::read_to_string(root().join(file)).expect("reads"));
    let quoted = |line: &str| line.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let of = |block: &str| {
        let value = |key: &str| block.lines().find(|line| line.starts_with(key)).map(quoted).unwrap_or_default();
        (value("name").remove(0), value("required-features"))
    };
    [first, others].iter().flat_map(|text| text.split("[[example]]").skip(1)).map(of).collect()
}

/// Words after the name of an example for one small step, and words of its output; the others print their help.
#[test]
fn every_example_starts() {
    let place = OutputFolder::new();
    let (digits, out, text, picture) = (place.digits(), place.path("out"), place.path("text"), place.path("x.svg"));
    fs::write(&text, "to be or not to be that is the question ".repeat(100)).expect("writes");
    let step = |name: &str| -> (String, &str) {
        let control = format!("--out {out} --population 8 --hidden 4 --budget 2000");
        match name {
            "minimal" => (String::new(), "answers [0, 1, 1, 0], expected [0, 1, 1, 0]"),
            "cartpole_minimal" => (String::new(), "mean return of 100 episodes: "),
            "dataloader" => ("3".into(), "test accuracy "),
            "text_generation" | "text_generation_backpropagation" => ("1".into(), "0 batches: "),
            "probe_sigma" => (format!("0 {picture}"), "<- recommended"),
            "mnist" => (
                format!("{digits} --out {out} --population 8 --batch 4 --hidden 4 --generations 3 --evaluate-every 2"),
                "RESULT {",
            ),
            "char_lm" => (
                format!(
                    "--out {out} --data {text} --population 8 --width 8 --seq 8 --generations 3 --validate-every 2 --sample-bytes 5"
                ),
                "RESULT {",
            ),
            "cartpole" | "pendulum" | "memory" | "classic" => (control, "RESULT {"),
            "expected_q" => ("--worlds 2 --games 2 --deals 0".into(), "RESULT {"),
            "finetune" => {
                (format!("{digits} --epochs 1 --hidden 4 --generations 2 --population 4 --batch 4"), "RESULT {")
            }
            "soak" => ("--generations 10 --population 4 --every 5".into(), "RESULT {"),
            "throughput" => ("--sizes small --populations 8 --ranks 1 --seconds 0.01".into(), "RESULT {"),
            "paper_setting" => ("--width 16 --batch 8 --dtype f32 --seconds 0 --passes 1".into(), "RESULT {"),
            "backend_comparison" => (
                format!("--out {out} --data {digits} --size small --population 8 --generations 2 --seconds 0.01"),
                "RESULT {",
            ),
            _ => ("--help".into(), "Usage: "),
        }
    };
    let examples = examples();
    assert!(examples.len() > 20, "canary: {examples:?}");
    for (name, _) in examples.iter().filter(|(_, features)| features.iter().all(|of| BUILT.contains(&of.as_str()))) {
        let _ = fs::remove_dir_all(&out);
        let (arguments, expected) = step(name);
        let mut command = Command::new(example(name));
        let ended = run(command.args(arguments.split_whitespace()).current_dir(root()), &place);
        assert!(ended.status == 0 && ended.output.contains(expected), "{name} {arguments}: {ended:?}");
        let control = |character: char| character.is_control() && character != '\n';
        assert!(!ended.output.contains(control), "{name} writes control characters to a file: {ended:?}");
    }
}

/// One file without a command line.
const WITHOUT_OPTIONS: [&str; 6] =
    ["minimal", "cartpole_minimal", "dataloader", "text_generation", "text_generation_backpropagation", "probe_sigma"];

#[test]
fn help_is_read_at_once() {
    let place = OutputFolder::new();
    let is_built = |features: &[String]| features.iter().all(|of| BUILT.contains(&of.as_str()));
    for (name, features) in examples() {
        if is_built(&features) && !WITHOUT_OPTIONS.contains(&name.as_str()) {
            let ended = run(Command::new(example(&name)).arg("--help"), &place);
            let lines = ended.output.lines().count();
            assert!(ended.status == 0 && (5..=60).contains(&lines), "{name} --help has {lines} lines: {ended:?}");
        }
    }
}

/// Every command in the table names the features that its example needs, and every example has one.
#[test]
fn the_readme_says_how_to_start_every_example() {
    let readme = fs::read_to_string(root().join("examples/README.md")).expect("reads");
    let commands: Vec<&str> = readme.split('`').filter(|code| code.contains("cargo run ")).collect();
    for (name, needed) in examples() {
        let words = |command: &&str| command.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
        let after = |words: &[String], option: &str| {
            words.iter().position(|word| word == option).and_then(|at| words.get(at + 1)).cloned().unwrap_or_default()
        };
        let own: Vec<Vec<String>> =
            commands.iter().map(words).filter(|words| after(words, "--example") == name).collect();
        assert!(!own.is_empty(), "examples/README.md has no command for {name}");
        for words in own {
            let given = after(&words, "--features");
            assert!(needed.iter().all(|of| given.split(',').any(|given| given == of)), "{words:?} needs {needed:?}");
        }
    }
}
