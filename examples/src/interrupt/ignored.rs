//! Signals that the program was started with ignored: `nohup` ignores HUP, a shell without job control INT of what it runs in the
//! background. They stay ignored, as programs without handlers leave them.

use std::fs;
use std::process::{Command, Stdio};

/// Whether a signal, by its number and its name for `kill`, is ignored. To be asked before it has a handler.
pub fn is_ignored(number: i32, name: &str) -> bool {
    said_by_linux(number).unwrap_or_else(|| said_by_a_shell(name))
}

/// What Linux says, where it does.
fn said_by_linux(number: i32) -> Option<bool> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask >> (number - 1) & 1 == 1)
}

/// Whether a shell outlives the signal, which inherits that it is ignored: slower, but safe and the same on every Unix.
fn said_by_a_shell(name: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill -s \"$0\" \"$$\"", name]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::{said_by_a_shell, said_by_linux};

    /// Both ask the system, also where the tests run under `nohup`.
    #[test]
    fn linux_and_a_shell_agree() {
        for (number, name) in [(1, "HUP"), (2, "INT"), (15, "TERM")] {
            let said = said_by_a_shell(name);
            assert_eq!(said_by_linux(number).unwrap_or(said), said, "{name}");
        }
    }
}
