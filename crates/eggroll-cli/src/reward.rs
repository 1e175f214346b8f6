//! Rewards of another program.

use eggroll_lm::reward::{Prompt, Reward};
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A program that is given answers, a line of JSON each, and says a number in a line for each. It is started with the first answer.
pub struct RewardProgram {
    command: Option<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    program: Option<Program>,
    /// The first thing that went wrong.
    failure: Option<String>,
}

struct Program {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// An answer to be graded.
#[derive(Serialize)]
struct Question<'a> {
    prompt: &'a Prompt,
    completion: &'a str,
}

impl RewardProgram {
    /// Of a command of the system's shell.
    pub fn new(command: Option<String>) -> Self {
        Self { command, state: Mutex::default() }
    }

    /// The first thing that went wrong.
    pub fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, program: &mut Option<Program>, question: &Question) -> Result<f32, String> {
        let command = self.command.as_deref();
        let command =
            command.ok_or("this run learned from rewards: give --reward COMMAND, the program that grades answers")?;
        let in_program = |error: io::Error| format!("--reward {command:?}: {error}");
        let program = match program {
            Some(program) => program,
            None => program.insert(Program::start(command).map_err(in_program)?),
        };
        let line = program.answer(question).map_err(in_program)?;
        line.trim()
            .parse()
            .map_err(|_| format!("--reward {command:?}: expected a number in a line, but it says {line:?}"))
    }
}

impl Reward for RewardProgram {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        let State { program, failure } = &mut *self.state();
        if failure.is_some() {
            return f32::NAN;
        }
        self.ask(program, &Question { prompt, completion }).unwrap_or_else(|error| {
            *failure = Some(error);
            f32::NAN
        })
    }
}

impl Program {
    fn start(command: &str) -> io::Result<Self> {
        let [shell, option] = if cfg!(windows) { ["cmd", "/C"] } else { ["sh", "-c"] };
        let mut child =
            Command::new(shell).args([option, command]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take()).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, to: pipes.0, from: BufReader::new(pipes.1) })
    }

    fn answer(&mut self, question: &Question) -> io::Result<String> {
        let mut text = serde_json::to_vec(question)?;
        text.push(b'\n');
        self.to.write_all(&text)?;
        self.to.flush()?;
        let mut line = String::new();
        match self.from.read_line(&mut line)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended without an answer")),
            _ => Ok(line),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
