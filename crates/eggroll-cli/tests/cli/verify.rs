//! Logs of which a share is asked again.

use crate::{apply, completions, eggroll, pretrained, settings, tuned};
use eggroll_lm::reward::Prompt;
use eggroll_lm::{Finetune, Llama, Questions, SamplingConfig};
use eggroll_train::Credit;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// A program whose number is that of an answer's letters before n.
const REWARD: &str =
    r#"while read -r line; do line=${line##*\":\"}; printf %s "${line%\"*}" | tr -d n-z | wc -c; done"#;

fn answers(_: &Finetune<Llama>) -> Questions {
    let prompts = ["abc", "hello", "zq"].map(Prompt::new).into();
    Questions::Answers { prompts, sampling: SamplingConfig::greedy(6).with_temperature(1.0) }
}

/// A verification that is to succeed, or its error.
fn verify(model: &Path, log: &Path, more: &[&str]) -> Result<String, String> {
    let output = eggroll("verify", model, log, more);
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

fn check(parts: &[&[u8]]) -> [u8; 8] {
    *Sha256::digest(parts.concat()).first_chunk().unwrap()
}

/// Changes the score of a member in a step, as somebody does who knows the format: sums of bytes are right again.
fn change(log: &Path, step: u64, member: usize) {
    let mut bytes = fs::read(log).unwrap();
    let magic = b"eggroll replay log\n".len();
    let header = magic + 4 + u32::from_le_bytes(*bytes[magic..].first_chunk().unwrap()) as usize;
    let of_log = check(&[&bytes[magic..header]]);
    assert_eq!(of_log, bytes[header..header + 8]);
    let mut record = header + 8;
    loop {
        let [count, head, found] = [1, 13, 5].map(|offset| record + offset);
        let count = u32::from_le_bytes(*bytes[count..].first_chunk().unwrap()) as usize;
        let end = head + 4 * count;
        if bytes[record] == 0 && bytes[found..head] == step.to_le_bytes() {
            let score: &mut [u8; 4] = (&mut bytes[head + 4 * member..][..4]).try_into().unwrap();
            *score = (f32::from_le_bytes(*score) + 0.25).to_le_bytes();
            let sum = check(&[&of_log, &bytes[record..end]]);
            bytes[end..end + 8].copy_from_slice(&sum);
            return fs::write(log, bytes).unwrap();
        }
        record = end + 8;
    }
}

/// Of a hundred tries of a twentieth, as many find one false score as look at its pair; a log without one never raises an alarm.
#[test]
fn a_changed_score_is_found_in_the_shares_proportion() {
    let folder = tempfile::tempdir().unwrap();
    let (model, log) = (pretrained(folder.path().join("model"), 7), folder.path().join("run.replay"));
    tuned(&model, &log, settings().with_population_size(20), completions);
    let found = || {
        let alarm = |seed: &u64| match verify(&model, &log, &["--share", "0.05", "--seed", &seed.to_string()]) {
            Ok(said) => {
                assert!(said.contains("of 100 members were asked again"), "{said}");
                false
            }
            Err(said) => {
                assert!(said.contains("does not give the logged fitness"), "{said}");
                true
            }
        };
        (0..100).filter(alarm).count()
    };
    let whole = fs::read(&log).unwrap();
    assert_eq!(found(), 0, "false alarms");
    change(&log, 4, 13);
    let of_last = found();
    // Five are expected, and 14 or more come once in two thousand times.
    assert!((1..14).contains(&of_last), "{of_last} of 100");
    // The steps behind a change are those of another model: 40 pairs, of which none is looked at with probability 0.13.
    fs::write(&log, whole).unwrap();
    change(&log, 0, 13);
    let of_first = found();
    println!("found in the last step: {of_last} of 100, in the first: {of_first}");
    assert!((75..=97).contains(&of_first), "{of_first} of 100");
}

/// Means and parts, completions and answers.
#[test]
fn logs_of_all_kinds_are_verified_and_applied() {
    let folder = tempfile::tempdir().unwrap();
    let model = pretrained(folder.path().join("model"), 7);
    for credit in [Credit::Mean, Credit::Auto] {
        for (name, asked) in [("completions", completions as fn(&Finetune<Llama>) -> Questions), ("answers", answers)] {
            let run = folder.path().join(format!("{name} {credit}"));
            fs::create_dir(&run).unwrap();
            let log = run.join("run.replay");
            let digests = tuned(&model, &log, settings().with_credit(credit), asked);
            let said = verify(&model, &log, &["--share", "1", "--reward", REWARD]).unwrap();
            assert!(said.contains("40 of 40 members") && said.contains(&digests[4]), "{said}");
            let output = apply(&model, &log, &run.join("tuned"), &["--reward", REWARD, "--until", "3"]);
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && said.contains(&digests[2]),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [model, other] = [("model", 7), ("other", 8)].map(|(name, seed)| pretrained(folder.path().join(name), seed));
    let log = folder.path().join("run.replay");
    tuned(&model, &log, settings(), answers);
    let all = |model: &Path, more: &[&str]| verify(model, &log, &[&["--share", "1"], more].concat()).unwrap_err();
    let says = |said: String, words: &[&str]| assert!(words.iter().all(|word| said.contains(word)), "{said}");
    let reward = ["--reward", REWARD];
    says(all(&other, &reward), &["another start"]);
    says(all(&model, &["--reward", "while read -r _; do echo 3; done"]), &["generation 0", "logged fitness"]);
    says(all(&model, &[]), &["--reward COMMAND"]);
    says(all(&model, &["--reward", "echo much; cat > /dev/null"]), &["a number in a line", "much"]);
    says(all(&model, &["--reward", "exit"]), &["the reward \"exit\""]);
    says(all(&model, &["--reward", "echo 1; echo 2; exit"]), &["the reward \"echo 1; echo 2; exit\""]);
    says(verify(&model, &log, &["--share", "1.5"]).unwrap_err(), &["a number from 0 to 1"]);
    says(all(&model, &["--precision", "int4"]), &["f32, bf16, int8 or q8_0"]);
    // What was asked, and asked otherwise.
    let lessons = log.with_file_name("lessons.jsonl");
    let text = fs::read_to_string(&lessons).unwrap();
    fs::write(&lessons, text.replace("hello", "hullo")).unwrap();
    says(all(&model, &reward), &["generation 0", "logged fitness"]);
    fs::write(&lessons, text.lines().take(3).collect::<Vec<_>>().join("\n")).unwrap();
    says(all(&model, &reward), &["lessons.jsonl: no line of generation 3"]);
    fs::remove_file(&log).unwrap();
    tuned(&model, &log, settings(), completions);
    says(all(&model, &["--precision", "f32"]), &["generation 0", "number format"]);
    fs::remove_file(&lessons).unwrap();
    says(all(&model, &reward), &["lessons.jsonl: no line of generation 0"]);
}
