//! The f64 oracle, and the suite that every implementation of the operations passes.

#[cfg(test)]
mod conformance;
pub mod reference;

/// This test binary as a new process: in the emulator that `EGGROLL_TEST_EMULATOR` names with its arguments, where programs are another machine's.
#[cfg(test)]
pub(crate) fn this_binary() -> std::process::Command {
    let program = std::env::current_exe().expect("a test binary");
    let emulator = std::env::var("EGGROLL_TEST_EMULATOR").unwrap_or_default();
    let mut words = emulator.split_whitespace();
    match words.next() {
        Some(name) => {
            let mut command = std::process::Command::new(name);
            command.args(words).arg(program);
            command
        }
        None => std::process::Command::new(program),
    }
}
