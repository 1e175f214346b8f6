//! MuJoCo's environments compared with records of Gymnasium's (`record.py`), episodes by key. Feature `mujoco`; `EGGROLL_MUJOCO_ASSETS` names
//! the folder of Gymnasium's files.

use burn_rl::Environment;
use eggroll_rl::EpisodeKey;
use eggroll_rl::mujoco::{HalfCheetah, Hopper, Humanoid, MujocoError, Walker2d};
use serde_json::Value;
use std::path::Path;

/// Gymnasium's numbers are recorded with 12 decimals; contacts let rounding grow over the steps.
const TOLERANCE: f64 = 1e-8;

fn record(name: &str) -> Value {
    let records: Value = serde_json::from_str(include_str!("trajectories.json")).expect("JSON");
    records[name].clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("numbers").iter().map(|x| x.as_f64().expect("a number")).collect()
}

/// The largest difference from the record in an observation or a reward, and whether all episodes ended alike.
fn differences<E, const O: usize, const A: usize>(environment: &mut E, record: &Value, gain: f64) -> (f64, bool)
where
    E: Environment<State = [f64; O], Action = [f64; A]>,
{
    let (mut worst, mut alike) = (0.0f64, true);
    for step in record["steps"].as_array().expect("steps") {
        let action = numbers(&step["action"]).iter().map(|a| a * gain).collect::<Vec<_>>();
        let result = environment.step(action.try_into().expect("as many actuators"));
        let expected = numbers(&step["observation"]);
        assert_eq!(expected.len(), O);
        let observed = result.next_state.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        let reward = (result.reward - step["reward"].as_f64().expect("a number")).abs();
        worst = observed.fold(worst.max(reward), f64::max);
        alike &= step["terminated"] == result.done;
    }
    (worst, alike)
}

#[test]
fn half_cheetah_is_gymnasiums() {
    let record = record("HalfCheetah-v5");
    let mut cheetah = HalfCheetah::open(None).expect("a description");
    let mut play = |gain: f64| {
        cheetah.set_state(&numbers(&record["qpos"]), &numbers(&record["qvel"]));
        differences(&mut cheetah, &record, gain)
    };
    let (worst, alike) = play(1.0);
    assert!(worst < TOLERANCE && alike, "{worst}");
    // Canary: slightly weaker muscles are another trajectory.
    assert!(play(0.999).0 > 1e-4);
}

#[test]
fn hopper_is_gymnasiums_to_the_fall() {
    let record = record("Hopper-v5");
    let last = record["steps"].as_array().expect("steps").last().expect("a step");
    assert_eq!(last["terminated"], true);
    let mut hopper = Hopper::open(None).expect("a description");
    let mut play = |gain: f64| {
        hopper.set_state(&numbers(&record["qpos"]), &numbers(&record["qvel"]));
        differences(&mut hopper, &record, gain)
    };
    let (worst, alike) = play(1.0);
    assert!(worst < TOLERANCE && alike, "{worst}");
    // Canary: the record's end is that of its actions. With less of them it stands longer.
    assert!(!play(0.2).1);
}

#[test]
fn walker_is_gymnasiums() {
    let record = record("Walker2d-v5");
    let mut walker = Walker2d::open(None).expect("a description");
    let mut play = |gain: f64| {
        walker.set_state(&numbers(&record["qpos"]), &numbers(&record["qvel"]));
        differences(&mut walker, &record, gain)
    };
    let (worst, alike) = play(1.0);
    assert!(worst < TOLERANCE && alike, "{worst}");
    assert!(play(0.999).0 > 1e-4, "canary");
}

/// External forces are hundreds of newtons where it bumps into the ground: the tolerance is relative to the largest number.
#[test]
fn humanoid_is_gymnasiums() {
    let record = record("Humanoid-v5");
    let seen = record["steps"].as_array().expect("steps").iter().flat_map(|step| numbers(&step["observation"]));
    let largest = seen.fold(1.0, |largest: f64, x| largest.max(x.abs()));
    let mut humanoid = Humanoid::open(None).expect("a description");
    let mut play = |gain: f64| {
        humanoid.set_state(&numbers(&record["qpos"]), &numbers(&record["qvel"]));
        differences(&mut humanoid, &record, gain)
    };
    let (worst, alike) = play(1.0);
    assert!(worst < TOLERANCE * largest && alike, "{worst} of {largest}");
    assert!(play(0.999).0 > 1e-4, "canary");
}

#[test]
fn episodes_are_functions_of_their_keys() {
    let cheetah = HalfCheetah::open(None).expect("a description");
    let first = |key: EpisodeKey| cheetah.episode(key).state();
    let key = EpisodeKey::new(3, 1, 4);
    assert_eq!(first(key), first(key));
    assert_ne!(first(key), first(EpisodeKey::new(3, 1, 5)));
    // Positions are within the noise, velocities normal: 2,000 of each.
    let states: Vec<[f64; 17]> = (0..250).map(|episode| first(EpisodeKey::new(0, 0, episode))).collect();
    assert!(states.iter().all(|state| state[..8].iter().all(|x| x.abs() <= 0.1)));
    let velocities: Vec<f64> = states.iter().flat_map(|state| state[8..].to_vec()).collect();
    let variance = velocities.iter().map(|v| v * v).sum::<f64>() / velocities.len() as f64;
    assert!((variance.sqrt() - 0.1).abs() < 0.01, "{variance}");
    assert!(velocities.iter().any(|v| v.abs() > 0.2));
    // A second reset is another episode, and the same one for the same key.
    let again = || {
        let mut environment = cheetah.episode(key);
        environment.step([0.3; 6]);
        environment.reset();
        environment.state()
    };
    assert_ne!(again(), first(key));
    assert_eq!(again(), again());
}

#[test]
fn episodes_are_cut_off_at_the_time_limit() {
    let mut cheetah = HalfCheetah::open(None).expect("a description").episode(EpisodeKey::new(0, 0, 0));
    let cut: Vec<bool> = (0..HalfCheetah::MAX_STEPS).map(|_| cheetah.step([0.0; 6]).truncated).collect();
    assert!(cut.iter().rev().skip(1).all(|cut| !cut));
    assert!(cut[HalfCheetah::MAX_STEPS - 1]);
}

#[test]
fn descriptions_that_cannot_be_used_are_refused() {
    let missing = Path::new("no/such/half_cheetah.xml");
    let error = HalfCheetah::open(Some(missing)).expect_err("there is none");
    assert_eq!(error, MujocoError::Missing { path: missing.to_owned() });
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hopper.xml");
    std::fs::write(&file, "<mujoco><worldbody/></mujoco>").expect("writes");
    let error = Hopper::open(Some(&file)).expect_err("nobody is there");
    assert!(matches!(error, MujocoError::OtherBody { found: [0, 0, 0], expected: [6, 6, 3], .. }), "{error}");
    std::fs::write(&file, "<mujoco><world").expect("writes");
    let error = Hopper::open(Some(&file)).expect_err("it is cut off");
    assert!(matches!(error, MujocoError::Description { .. }), "{error}");
}
