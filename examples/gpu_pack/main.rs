//! The programs of scripts/gpu-pack in one, which runs as the one by whose name it is called: what they share is packed once.

#[path = "../backend_comparison/main.rs"]
mod backend_comparison;
#[path = "../cartpole/main.rs"]
mod cartpole;
#[path = "../char_lm/main.rs"]
mod char_lm;
#[path = "../devices/main.rs"]
mod devices;
#[path = "../paper_setting/main.rs"]
mod paper_setting;
#[path = "../throughput/main.rs"]
mod throughput;

use std::path::Path;
use std::process::ExitCode;

/// One for all of them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type NamedProgram = (&'static str, fn() -> ExitCode);

const PROGRAMS: [NamedProgram; 6] = [
    ("backend_comparison", backend_comparison::main),
    ("cartpole", cartpole::main),
    ("char_lm", char_lm::main),
    ("devices", devices::main),
    ("paper_setting", paper_setting::main),
    ("throughput", throughput::main),
];

fn main() -> ExitCode {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default();
    match PROGRAMS.iter().find(|(program, _)| name == *program) {
        Some((_, run)) => run(),
        None => {
            let names = PROGRAMS.map(|(program, _)| program).join(", ");
            eprintln!("error: {} is none of the programs {names}: links of these names lead here", name.display());
            ExitCode::FAILURE
        }
    }
}
