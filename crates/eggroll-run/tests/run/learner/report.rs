//! The page of a run.

use crate::learner::task::{Scripted, config, layer, training};
use burn::optim::AdamConfig;
use eggroll_run::{EsTrainingConfig, JsonLines, StopReason, report};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn run(folder: &Path, config: EsTrainingConfig, interrupt: Option<u64>) -> StopReason {
    let training = training(folder, config);
    let mut task = Scripted::new([0.5, 1.5, 2.5]);
    task.interrupt = interrupt.map(|at| (at, training.interrupter()));
    training.launch(layer(), &mut task).unwrap_or_else(|error| panic!("{error}")).stop
}

fn watched(generations: u64) -> EsTrainingConfig {
    let mut config = config(generations).with_diagnostics(true);
    config.strategy.optimizer = AdamConfig::new().into();
    config.with_settings(serde_json::json!({ "name": "<script>alert(1)</script>" }))
}

#[test]
fn a_run_has_a_page_that_its_folder_makes_again() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), watched(30), None);
    let path = folder.path().join(report::FILE);
    let page = fs::read_to_string(&path).expect("a page");
    let parts = [
        "30 of 30",
        "Ended at ",
        "Score (validation)",
        ">Twice<",
        "Fitness mean",
        "Sigma",
        "Learning rate",
        "Gradient norm",
        "Signal to noise",
        "Evaluations per second",
        "<td>weight</td><td>[3, 2]</td>",
        "low rank 2",
        "Statistics of float parameters after generation 30",
        "strategy.optimizer.name",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "Machine, commit, time",
        env!("CARGO_PKG_VERSION"),
    ];
    // Titles in pictures stand in separate lines.
    let packed: String = page.split('\n').map(str::trim).collect();
    for part in parts {
        assert!(packed.contains(part), "no {part}: {page}");
    }
    assert!(!page.contains("<script"), "{page}");
    let addresses = page.matches("://").count() - page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
    assert_eq!(addresses, 0, "nothing is loaded from elsewhere");

    fs::remove_file(&path).expect("removed");
    assert_eq!(report::write(folder.path()).expect("written"), path);
    assert_eq!(fs::read_to_string(&path).expect("a page"), page, "the same page from the folder alone");
    // Canary: it is made from the log.
    fs::write(folder.path().join("log.jsonl"), r#"{"generation":0,"epoch":1,"split":"valid","other":1}"#)
        .expect("writes");
    report::write(folder.path()).expect("written");
    let other = fs::read_to_string(&path).expect("a page");
    assert!(other.contains("Other (validation)") && !other.contains("Fitness mean"));
}

/// A run that is continued says so; one that has nothing left to do leaves its page.
#[test]
fn a_continued_run_has_a_page_of_all_its_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(matches!(run(folder.path(), watched(30), Some(12)), StopReason::Interrupted(_)));
    let page = || fs::read_to_string(folder.path().join(report::FILE)).expect("a page");
    assert!(page().contains("13 of 30") && !page().contains("Parts of the run"), "{}", page());
    assert_eq!(run(folder.path(), watched(30), None), StopReason::Finished);
    let whole = page();
    assert!(whole.contains("30 of 30") && whole.contains("0 to 13") && whole.contains("13 to 30"), "{whole}");
    assert_eq!(run(folder.path(), watched(30), None), StopReason::Finished);
    assert_eq!(page(), whole);
}

/// A page that cannot be written ends no run.
#[test]
fn a_run_goes_on_without_its_page() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), watched(10), None);
    fs::remove_file(folder.path().join(report::FILE)).expect("removed");
    fs::create_dir(folder.path().join(report::FILE)).expect("in the way");
    fs::write(folder.path().join("report.json"), "[1").expect("damaged");
    assert_eq!(run(folder.path(), watched(30), None), StopReason::Finished);
    let lines: Vec<Value> = JsonLines::read(folder.path().join("log.jsonl")).expect("a log");
    assert!(lines.iter().any(|line| line["generation"] == 29));
}

#[test]
fn a_folder_without_a_run_has_no_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = report::write(folder.path()).expect_err("refused").to_string();
    assert!(error.contains(&folder.path().display().to_string()), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

/// What a program has logged itself is drawn where there is no log of the learner: a line for each run in it.
#[test]
fn a_table_of_several_runs_has_curves() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |noiser: &str, generation: u64| {
        format!("{{\"noiser\":\"{noiser}\",\"seed\":1,\"generation\":{generation},\"policy_return\":{generation}}}\n")
    };
    let lines: String = (0..5).flat_map(|g| [line("eggroll", g), line("open_es", g)]).collect();
    fs::write(folder.path().join("curve.jsonl"), lines).expect("writes");
    let path = report::write(folder.path()).expect("written");
    let page = fs::read_to_string(path).expect("a page");
    for part in ["Policy return", "eggroll, seed 1", "open_es, seed 1"] {
        assert!(page.contains(part), "no {part}: {page}");
    }
}

/// What the program draws into the folder is on the page, as an image: nothing in it becomes HTML.
#[test]
fn pictures_of_the_program_are_on_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writes");
    file("settings.json", "{}");
    file("policy.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert('1')</script></svg>");
    file("curve.svg", "<svg>repeated</svg>");
    file("broken.svg", "\u{0}");
    fs::write(folder.path().join("bytes.svg"), [0xff, 0xfe]).expect("writes");
    let path = report::write(folder.path()).expect("written");
    let page = fs::read_to_string(path).expect("a page");
    assert!(page.contains("<figcaption>policy</figcaption>") && page.contains("src=\"data:image/svg+xml,%3Csvg xmlns"));
    assert!(!page.contains("<script") && !page.contains("repeated") && !page.contains("bytes"), "{page}");
}
