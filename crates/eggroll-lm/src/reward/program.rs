//! Rewards of another program.

use super::{Prompt, Reward};
use serde::Serialize;
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Seconds that an answer may take by default.
const SECONDS: f64 = 60.0;

/// A reward that another program computes, in any language: it reads a line of JSON for each answer, `{"prompt": {"prompt": …, "reference": …}, "completion": …}`,
/// and writes its score, a number in a line.
///
/// One program runs for each answer that is graded at a time; each grades one answer after the other. If it takes too long, ends, or writes something else, it
/// is ended with all processes that it has started. The answer's score is then NaN: its member ranks with the worst of the step, and
/// [`failures`](Self::failures) counts it. Another program starts with the next answer.
///
/// With [replies](Self::with_replies) it plays episodes of several turns. Lines have `"turns": […]` then, the model's answers and the program's replies. One
/// without `"completion"` asks for a [reply](Reward::reply): a string of JSON, or `null` to end the episode. One with it asks for the score of the episode.
///
/// # Example
///
/// ```
/// # #[cfg(unix)] {
/// use eggroll_lm::reward::{Prompt, Reward, RewardProgram};
///
/// let length = RewardProgram::new("while read -r line; do echo ${#line}; done").with_seconds(5.0);
/// assert_eq!(length.score(&Prompt::new("Name?"), "four"), r#"{"prompt":{"prompt":"Name?"},"completion":"four"}"#.len() as f32);
/// assert_eq!(length.failures(), (0, None));
/// # }
/// ```
pub struct RewardProgram {
    command: String,
    limit: Duration,
    memory: Option<u64>,
    replies: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Programs that wait for an answer.
    idle: Vec<Program>,
    failures: u64,
    first: Option<String>,
    /// Prompt and turns of episodes without a reply.
    unanswered: HashSet<Vec<u8>>,
}

/// A running program, and a thread that talks to it.
struct Program {
    child: Child,
    lines: Sender<Vec<u8>>,
    scores: Receiver<io::Result<String>>,
}

/// An answer to be graded, or replied to.
#[derive(Serialize)]
struct Answer<'a> {
    prompt: &'a Prompt,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<&'a [String]>,
}

impl RewardProgram {
    /// Of a command of the system's shell, with a minute for an answer.
    pub fn new(command: impl Into<String>) -> Self {
        let limit = Duration::from_secs_f64(SECONDS);
        Self { command: command.into(), limit, memory: None, replies: false, state: Mutex::default() }
    }

    /// Sets the seconds that an answer may take; infinity is no limit.
    pub fn with_seconds(mut self, seconds: f64) -> Self {
        self.limit = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        self
    }

    /// Sets the bytes of memory that the program may have, by the shell's `ulimit -v`: on Linux.
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Asks the program for replies too.
    pub fn with_replies(mut self) -> Self {
        self.replies = true;
        self
    }

    /// Answers without a score or a reply, and the first error.
    pub fn failures(&self) -> (u64, Option<String>) {
        let state = self.state();
        (state.failures, state.first.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<T>(&self, line: &[u8], read: impl Fn(&str) -> Option<T>, expected: &str) -> Option<T> {
        let asked = || {
            let idle = self.state().idle.pop();
            let program = match idle {
                Some(program) => program,
                None => Program::start(&self.command, self.memory).map_err(|error| error.to_string())?,
            };
            let said = program.answer(line, self.limit)?;
            let answer =
                read(said.trim()).ok_or_else(|| format!("expected {expected} in a line, but it says {said:?}"))?;
            self.state().idle.push(program);
            Ok::<_, String>(answer)
        };
        asked()
            .map_err(|error| {
                let mut state = self.state();
                state.failures += 1;
                state.first.get_or_insert_with(|| format!("the reward {:?}: {error}", self.command));
            })
            .ok()
    }

    fn grade(&self, answer: &Answer) -> f32 {
        self.ask(&answer.line(), |said| said.parse().ok(), "a number").unwrap_or(f32::NAN)
    }
}

impl Answer<'_> {
    fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("texts are JSON");
        line.push(b'\n');
        line
    }
}

impl Reward for RewardProgram {
    fn score(&self, prompt: &Prompt, completion: &str) -> f32 {
        self.grade(&Answer { prompt, completion: Some(completion), turns: None })
    }

    fn reply(&self, prompt: &Prompt, turns: &[String]) -> Option<String> {
        if !self.replies {
            return None;
        }
        let line = Answer { prompt, completion: None, turns: Some(turns) }.line();
        let reply = |said: &str| serde_json::from_str::<Option<String>>(said).ok();
        let reply = self.ask(&line, reply, "a string of JSON or null");
        let unanswered = &mut self.state().unanswered;
        match reply {
            Some(_) => unanswered.remove(&line),
            None => unanswered.insert(line),
        };
        reply.flatten()
    }

    fn score_episode(&self, prompt: &Prompt, turns: &[String]) -> f32 {
        let completion = turns.last().map_or("", String::as_str);
        if !self.replies {
            return self.score(prompt, completion);
        }
        let asked = Answer { prompt, completion: None, turns: Some(turns) };
        if self.state().unanswered.contains(&asked.line()) {
            return f32::NAN;
        }
        self.grade(&Answer { completion: Some(completion), ..asked })
    }
}

impl Program {
    fn start(command: &str, memory: Option<u64>) -> io::Result<Self> {
        let mut shell = Command::new(if cfg!(windows) { "cmd" } else { "sh" });
        match (cfg!(windows), memory) {
            (true, None) => shell.args(["/C", command]),
            (true, Some(_)) => return Err(io::Error::new(io::ErrorKind::Unsupported, "no limit of memory on Windows")),
            (false, None) => shell.args(["-c", command]),
            (false, Some(bytes)) => shell.args(["-c", &format!("ulimit -v {} || exit\n{command}", bytes / 1024)]),
        };
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (mut to, from) = child.stdin.take().zip(child.stdout.take()).ok_or(io::ErrorKind::BrokenPipe)?;
        let (lines, asked) = channel::<Vec<u8>>();
        let (answers, scores) = channel();
        let (heard, said) = channel();
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            loop {
                let mut line = String::new();
                let result = from.read_line(&mut line);
                let ended = || io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended without an answer");
                let result = result.and_then(|bytes| if bytes > 0 { Ok(line) } else { Err(ended()) });
                let is_last = result.is_err();
                if heard.send(result).is_err() || is_last {
                    break;
                }
            }
        });
        thread::spawn(move || {
            let hear = || said.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
            for (number, line) in asked.into_iter().enumerate() {
                // Its first answer may be there before it is asked; what has come after an answer would be taken for the next.
                let early = if number > 0 { said.try_recv().ok() } else { None };
                let result = match early {
                    Some(Ok(rest)) => {
                        let found = format!("it has said more than one line for an answer, then {rest:?}");
                        Err(io::Error::new(io::ErrorKind::InvalidData, found))
                    }
                    Some(ended) => ended,
                    None => to.write_all(&line).and_then(|()| to.flush()).and_then(|()| hear()),
                };
                if answers.send(result).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines, scores })
    }

    fn answer(&self, line: &[u8], limit: Duration) -> Result<String, String> {
        // If the thread is gone, so is its answer.
        let _ = self.lines.send(line.to_vec());
        match self.scores.recv_timeout(limit) {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(RecvTimeoutError::Timeout) => Err(format!("no answer within {limit:?}")),
            Err(RecvTimeoutError::Disconnected) => Err("it has ended without an answer".to_owned()),
        }
    }
}

impl Drop for Program {
    /// Ends it with all that it has started, where there are process groups.
    fn drop(&mut self) {
        #[cfg(unix)]
        let _ = Command::new("sh")
            .args(["-c", "kill -s KILL -- \"-$0\" 2> /dev/null", &self.child.id().to_string()])
            .status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::time::Instant;

    fn score(program: &RewardProgram, text: &str) -> f32 {
        program.score(&Prompt::new("a"), text)
    }

    /// The second line would be the score of the next answer.
    #[test]
    fn more_than_one_line_is_refused() {
        let program = RewardProgram::new("while read -r _; do printf '1\n2\n'; done").with_seconds(10.0);
        let ask = |_| {
            let score = score(&program, "b");
            thread::sleep(Duration::from_millis(200)); // until the second line is there
            score
        };
        let scores: Vec<f32> = (0..4).map(ask).collect();
        assert!(scores[0] == 1.0 && scores[1].is_nan() && !scores.contains(&2.0), "{scores:?}");
        assert!(program.failures().1.is_some_and(|first| first.contains("more than one line")));
    }

    #[test]
    fn what_fails_has_no_score_and_the_next_answer_has_one() {
        let started = tempfile::tempdir().unwrap();
        // The second answer of each program is late, ends it, or is no number.
        for (second, reason) in
            [("sleep 60", "no answer within"), ("exit", "without an answer"), ("echo much", "expected a number")]
        {
            let folder = started.path().join(reason);
            std::fs::create_dir(&folder).unwrap();
            let command =
                format!("mktemp -p '{}' > /dev/null; read -r _; echo 1; read -r _; {second}", folder.display());
            let program = RewardProgram::new(command).with_seconds(0.5);
            let start = Instant::now();
            let scores: Vec<f32> = (0..3).map(|_| score(&program, "b")).collect();
            assert!(scores[0] == 1.0 && scores[1].is_nan() && scores[2] == 1.0, "{scores:?}");
            let (count, first) = program.failures();
            assert!(count == 1 && first.as_ref().is_some_and(|first| first.contains(reason)), "{first:?}");
            assert_eq!(
                std::fs::read_dir(&folder).unwrap().count(),
                2,
                "a program for the first two answers, one for the third"
            );
            drop(program);
            assert!(start.elapsed().as_secs() < 30, "what it has started is ended too");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_limited() {
        let command = "read -r _; big=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#big}";
        assert_eq!(score(&RewardProgram::new(command), "b"), 3e8, "canary: without a limit it answers");
        let limited = RewardProgram::new(command).with_memory(100 << 20);
        assert!(score(&limited, "b").is_nan() && limited.failures().0 == 1);
    }

    /// A program that replies once; of what it does not reply to, no score is asked.
    #[test]
    fn dialogues_are_replied_to_and_scored_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let command = r#"while read -r line; do case "$line" in
            *'"completion":"c","turns":["a","b","c"]'*) echo 7;;
            *'"completion"'*) echo 1;;
            *'"turns":["a"]'*) echo '"b"';;
            *'"turns":["a","b","c"]'*) echo null;;
            *) if mkdir ONCE 2> /dev/null; then echo what; else echo null; fi;; esac; done"#;
        let command = command.replace("ONCE", &folder.path().join("once").display().to_string());
        let program = RewardProgram::new(command.as_str()).with_replies();
        let prompt = Prompt::new("p");
        let turns = |turns: &[&str]| turns.iter().map(|turn| (*turn).to_owned()).collect::<Vec<_>>();
        assert_eq!(program.reply(&prompt, &turns(&["a"])), Some("b".to_owned()));
        assert_eq!(program.reply(&prompt, &turns(&["a", "b", "c"])), None);
        assert_eq!(program.score_episode(&prompt, &turns(&["a", "b", "c"])), 7.0);
        assert_eq!(program.failures(), (0, None));
        assert_eq!(program.reply(&prompt, &turns(&["x"])), None);
        assert!(program.score_episode(&prompt, &turns(&["x"])).is_nan());
        assert_eq!(program.score_episode(&prompt, &turns(&["y"])), 1.0, "canary: the same score was asked");
        let (count, first) = program.failures();
        assert!(count == 1 && first.as_ref().is_some_and(|first| first.contains("string of JSON")), "{first:?}");
        // The next time there is one.
        assert_eq!(program.reply(&prompt, &turns(&["x"])), None);
        assert_eq!(program.score_episode(&prompt, &turns(&["x"])), 1.0);
        let without = RewardProgram::new(command);
        assert_eq!(without.reply(&prompt, &turns(&["a"])), None);
        assert_eq!(without.score_episode(&prompt, &turns(&["y"])), 1.0);
        assert_eq!(without.failures(), (0, None));
    }

    #[test]
    fn answers_are_graded_at_a_time() {
        let program = RewardProgram::new("while read -r line; do sleep 0.3; echo ${#line}; done");
        let start = Instant::now();
        thread::scope(|scope| {
            for letters in 1..=8 {
                let program = &program;
                scope.spawn(move || assert_eq!(score(program, &"b".repeat(letters)), (41 + letters) as f32));
            }
        });
        assert!(start.elapsed().as_secs_f64() < 1.8, "{:?}", start.elapsed());
        assert_eq!(program.failures(), (0, None));
    }
}
