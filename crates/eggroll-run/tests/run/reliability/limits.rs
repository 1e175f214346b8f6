//! Limits that Linux sets a process: this test program, started again within them, says what it is refused.
#![cfg(target_os = "linux")]

use crate::reliability::support::*;
use burn::optim::AdamConfig;
use eggroll_core::{EggrollConfig, NoiseSourceConfig};

/// Set in the program that is started again.
const CHILD: &str = "EGGROLL_TEST_LIMITED";
/// Of 448 bytes of noise for each pair, about 940 MB: more than the limits here, less than a machine has.
const POPULATION: usize = 1 << 22;

/// Not a test of its own: what the others start within limits.
#[test]
fn within_limits() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let config = config(EggrollConfig::new(), AdamConfig::new()).with_noise_source(NoiseSourceConfig::Cached);
    match config.with_population_size(POPULATION).try_init(&layer(16, 48)) {
        Ok(_) => println!("not refused"),
        Err(error) => println!("refused: {error}"),
    }
}

/// The limit by which this program refuses noise after the commands of a shell; `None` if the noise fits.
fn limit_after(commands: &str) -> Option<u64> {
    let shell = format!("{commands} && exec \"$0\" \"$@\"");
    let mut command = child(&["sh", "-c", &shell], "reliability::limits::within_limits");
    let child = command.env(CHILD, "1").output().expect("a shell");
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{text}\n{}", String::from_utf8_lossy(&child.stderr));
    if text.contains("not refused") {
        return None;
    }
    let after = text.split("more than the ").nth(1).unwrap_or_else(|| panic!("a refusal: {text}"));
    Some(after.split(' ').next().and_then(|bytes| bytes.parse().ok()).expect("bytes"))
}

#[test]
fn the_address_space() {
    const LIMIT: u64 = 900 << 20;
    let found = limit_after(&format!("ulimit -v {}", LIMIT / 1024)).expect("refused");
    assert!((1..LIMIT).contains(&found), "{found}");
    assert_eq!(limit_after("true"), None, "canary: without it the noise fits");
}
