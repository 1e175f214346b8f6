//! Options that would be ignored, and numbers that cannot be: an error that names them, before anything begins.

use super::support::{OutputFolder, example, run};
use std::process::Command;

/// Command lines that must be refused, each with words of the error.
const REFUSED: [(&str, &str, &str); 28] = [
    ("mnist", "--weight-decay 0.5", "--weight-decay cannot be used without --optimizer adam-w"),
    ("mnist", "--noiser open-es --rank 2", "--rank cannot be used"),
    ("mnist", "--kernel 3", "--kernel cannot be used with the mlp"),
    ("mnist", "--resume --lr 0.1", "--lr cannot be used with --resume"),
    ("mnist", "--compare --generations 5", "--generations cannot be used with --compare"),
    ("char_lm", "--heads 2", "--heads cannot be used with a recurrent model"),
    ("char_lm", "--model gru --alpha 2", "--alpha cannot be used with a float model"),
    ("char_lm", "--resume --width 8", "--width cannot be used with --resume"),
    ("cartpole", "--noiser open-es --rank 2", "--rank cannot be used with the noiser open-es"),
    ("pendulum", "--sampled", "--sampled is for discrete actions"),
    ("memory", "--hidden 8,8", "--hidden must be one width"),
    ("expected_q", "--train-steps 5", "--train"),
    ("throughput", "--python python3", "--jax"),
    ("paper_setting", "--columns open-es --rank 2", "--rank cannot be used with open-es alone"),
    ("backend_comparison", "--merge x --rank 2", "--rank cannot be used with --merge"),
    ("llm", "--temperature 0.5", "--temperature cannot be used with the tasks words and sft"),
    ("llm", "--resume --seed 1", "--seed cannot be used with --resume"),
    // Numbers.
    ("mnist", "--lr=inf", "--lr must be a finite number, not inf"),
    ("char_lm", "--sigma nan", "--sigma must be a finite number, not NaN"),
    ("cartpole", "--sigma nan", "--sigma must be a finite number, not NaN"),
    ("finetune", "--sigma inf", "--sigma must be a finite number, not inf"),
    ("throughput", "--populations 33", "a population must be even and at least 2, not 33"),
    ("mnist", "DIGITS --batch 4 --population 7", "not 7"),
    ("mnist", "DIGITS --batch 4 --hidden 18446744073709551615", "18446744073709551615"),
    ("mnist", "DIGITS --batch 4 --sigma 1e300", "1e300"),
    ("mnist", "DIGITS --batch 4 --shift 28", "a shift of 28 pixels moves images of [28, 28] out of sight"),
    ("cartpole", "--population 18446744073709551615", "18446744073709551615"),
    ("soak", "--generations 0", "generations must be at least 1, not 0"),
];

#[test]
fn what_cannot_be_is_refused() {
    let place = OutputFolder::new();
    let digits = place.digits();
    for (program, words, expected) in REFUSED {
        let words = words.replace("DIGITS", &digits);
        let mut command = Command::new(example(program));
        let ended = run(command.args(words.split_whitespace()).current_dir(place.path("")), &place);
        assert!(matches!(ended.status, 1 | 2), "{program} {words}: {ended:?}");
        assert!(ended.errors.contains(expected), "{program} {words}: {ended:?}");
        assert!(!ended.output.contains("RESULT"), "{program} {words}: {ended:?}");
    }
}
