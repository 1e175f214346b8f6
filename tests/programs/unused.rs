//! Options that what else is chosen would ignore: two runs that differ by one of them would be the same run.

use super::support::{Place, example};
use std::process::Command;

/// Runs that must be refused, each with words of the error.
const REFUSED: [(&str, &[&str], &str); 34] = [
    ("mnist", &["--weight-decay", "0.5"], "--weight-decay cannot be used without --optimizer adam-w"),
    ("mnist", &["--optimizer", "adam", "--weight-decay", "0.5"], "--weight-decay cannot be used"),
    ("mnist", &["--weight-decay", "nan"], "--weight-decay must be a finite number, not NaN"),
    ("mnist", &["--lr=inf"], "--lr must be a finite number, not inf"),
    ("mnist", &["--noiser", "open-es", "--rank", "2"], "--rank cannot be used"),
    ("mnist", &["--noiser", "q-eggroll", "--rademacher"], "--rademacher cannot be used with q-eggroll"),
    ("mnist", &["--noiser", "q-eggroll", "--alpha", "0.5", "--decay", "5"], "--decay cannot be used"),
    ("mnist", &["--kernel", "3"], "--kernel cannot be used with the mlp"),
    ("mnist", &["--resume", "--lr", "0.1"], "--lr cannot be used with --resume"),
    ("mnist", &["--compare", "--generations", "5"], "--generations cannot be used with --compare"),
    ("mnist", &["--epochs", "2"], "--compare"),
    ("char_lm", &["--sigma", "0.1"], "--sigma cannot be used with an integer model"),
    ("char_lm", &["--sigma", "nan"], "--sigma must be a finite number, not NaN"),
    ("char_lm", &["--learning-rate", "inf"], "--learning-rate must be a finite number, not inf"),
    ("char_lm", &["--heads", "2"], "--heads cannot be used with the recurrent model"),
    ("char_lm", &["--model", "gru", "--alpha", "2"], "--alpha cannot be used with the float model"),
    ("char_lm", &["--samples", "0", "--prompt", "x"], "--prompt cannot be used with --samples 0"),
    ("char_lm", &["--resume", "--width", "8"], "--width cannot be used with --resume"),
    ("cartpole", &["--noiser", "open-es", "--rank", "2"], "--rank cannot be used with the noiser open-es"),
    ("cartpole", &["--throughput", "--budget", "5"], "--budget cannot be used with --throughput"),
    ("cartpole", &["--sigma", "nan"], "--sigma must be a finite number, not NaN"),
    ("pendulum", &["--sampled"], "--sampled is for discrete actions"),
    ("classic", &["--env", "mountain-car-continuous", "--sampled"], "--sampled is for discrete actions"),
    ("memory", &["--activation", "tanh"], "--activation cannot be used with a GRU"),
    ("memory", &["--hidden", "8,8"], "--hidden must be one width"),
    ("expected_q", &["--train-steps", "5"], "--train"),
    ("expected_q", &["--train", "eggroll", "--oracle", "x", "--worlds", "5"], "--worlds cannot be used with --train"),
    ("finetune", &["--sigma", "inf"], "--sigma must be a finite number, not inf"),
    ("throughput", &["--python", "python3"], "--jax"),
    ("paper_setting", &["--columns", "open-es", "--rank", "2"], "--rank cannot be used with open-es alone"),
    ("backend_comparison", &["--merge", "x", "--rank", "2"], "--rank cannot be used with --merge"),
    ("llm", &["--temperature", "0.5"], "--temperature cannot be used with the tasks words and sft"),
    ("llm", &["--throughput", "--steps", "5"], "--steps cannot be used with --throughput"),
    ("llm", &["--resume", "--seed", "1"], "--seed cannot be used with --resume"),
];

#[test]
fn options_without_effect_are_refused() {
    let place = Place::new();
    for (program, words, expected) in REFUSED {
        let output = Command::new(example(program)).args(words).current_dir(place.path("")).output().expect("runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{program} {words:?}: {}", output.status);
        assert!(errors.contains(expected), "{program} {words:?}: {errors}");
        assert!(output.stdout.is_empty(), "{program} {words:?} has begun");
    }
}

/// The bound is that of the images that were read.
#[test]
fn images_are_not_moved_out_of_sight() {
    let place = Place::new();
    let shift = |shift: &str| {
        let mut command = Command::new(example("mnist"));
        command.arg(place.digits_of(8)).args([
            "--population",
            "4",
            "--batch",
            "4",
            "--hidden",
            "4",
            "--generations",
            "2",
        ]);
        command.args(["--shift", shift, "--out", &place.path("out")]).output().expect("runs")
    };
    assert!(shift("7").status.success());
    let errors = String::from_utf8_lossy(&shift("8").stderr).into_owned();
    assert!(errors.contains("a shift of 8 pixels moves images of [8, 8] out of sight"), "{errors}");
}
