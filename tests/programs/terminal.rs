//! Who has the terminal: the dashboard, or the table with a progress bar below it, or plain lines. Programs run in a pseudo-terminal, and
//! what a terminal would show is read.

use super::support::{Place, example, run};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::io::Read;
use std::num::NonZeroU16;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use vt100::{Parser, Screen};

/// Nothing here takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: u16 = 40;
/// A line of a table: the generation at the left.
const FIRST: &str = "        50 ";

/// A program in a terminal.
struct Terminal {
    parser: Parser,
    /// Everything that was written.
    bytes: Vec<u8>,
}

impl Terminal {
    /// Runs a program to its end in a terminal of so many columns, and shows every screen on the way.
    fn run(columns: u16, program: &str, arguments: &[&str], mut look: impl FnMut(&Screen)) -> Self {
        let size = PtySize { rows: ROWS, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(example(program));
        command.args(arguments);
        command.env("TERM", "xterm-256color");
        command.cwd(std::env::temp_dir());
        let mut child = pair.slave.spawn_command(command).expect("starts");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let (sender, pieces) = channel();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // Linux ends a terminal that nobody has open with an error.
            while let Ok(length @ 1..) = reader.read(&mut piece) {
                if sender.send(piece[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let mut terminal = Self { parser: emulator(columns), bytes: Vec::new() };
        let begun = Instant::now();
        loop {
            match pieces.recv_timeout(Duration::from_millis(50)) {
                Ok(piece) => {
                    terminal.parser.process(&piece);
                    terminal.bytes.extend(piece);
                    look(terminal.parser.screen());
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if begun.elapsed() > PATIENCE {
                let _ = child.kill();
                panic!("did not end: {}", terminal.text());
            }
        }
        assert!(child.wait().expect("a child").success(), "{}", terminal.text());
        terminal
    }

    fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// All lines that are still there, those above the screen too.
    fn lines(&mut self) -> Vec<String> {
        let screen = self.parser.screen_mut();
        let columns = screen.size().1.get();
        let mut lines = Vec::new();
        screen.set_scrollback(usize::MAX);
        for above in (0..=screen.scrollback()).rev() {
            screen.set_scrollback(above);
            lines.extend(screen.rows(0, columns).take(if above == 0 { usize::from(ROWS) } else { 1 }));
        }
        lines.iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
    }
}

/// What shows what a program writes, and keeps lines that leave it.
fn emulator(columns: u16) -> Parser {
    let size = |cells| NonZeroU16::new(cells).expect("a size");
    Parser::new(size(ROWS), size(columns), 1000)
}

/// Whether a screen is Burn's dashboard and nothing else: every row begins and ends with a frame.
fn is_whole(screen: &Screen) -> bool {
    let frames = ['│', '┌', '└', '┐', '┘'];
    let columns = screen.size().1.get();
    let rows: Vec<String> = screen.rows(0, columns).collect();
    rows.iter().all(|row| {
        let ends = [row.chars().next(), row.chars().nth(usize::from(columns) - 1)];
        ends.iter().all(|end| end.is_some_and(|end| frames.contains(&end)))
    })
}

fn arguments<'a>(digits: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let small =
        ["--population", "8", "--batch", "4", "--hidden", "4", "--evaluate-every", "50", "--generations", "1500"];
    [&[digits][..], &small, &["--out", out], more].concat()
}

#[test]
fn a_dashboard_has_the_screen_alone() {
    for columns in [80, 160] {
        let place = Place::new();
        let (digits, out) = (place.digits(), place.path("out"));
        let (mut shown, mut with_accuracy, mut broken, mut parts) = (0, 0, Vec::new(), 0);
        let mut terminal = Terminal::run(columns, "mnist", &arguments(&digits, &out, &["--dashboard"]), |screen| {
            // A piece may end inside a frame that is being drawn: only a screen with all of its parts is looked at.
            let text = screen.contents();
            if screen.alternate_screen()
                && ["Controls", "Metrics", "Status", "Progress"].iter().all(|part| text.contains(part))
            {
                shown += 1;
                with_accuracy += usize::from(text.contains("Accuracy") && text.contains("Valid epoch"));
                // One that is still incomplete when more has come twice is not being drawn: nothing repairs it.
                parts = if is_whole(screen) { 0 } else { parts + 1 };
                if parts > 2 || text.contains("generation  seconds") || text.contains(FIRST) {
                    broken.push(text);
                }
            }
        });
        assert!(shown > 0, "the dashboard was never seen");
        assert!(
            broken.is_empty(),
            "{} of {shown} screens at {columns} columns are garbled: {}",
            broken.len(),
            broken[0]
        );
        assert!(with_accuracy > 0, "accuracy is no metric of the dashboard");
        // Behind it, on the screen of before: the table, whole, and the result.
        assert!(!terminal.parser.screen().alternate_screen() && !terminal.parser.screen().hide_cursor());
        let lines = terminal.lines();
        let table = lines.iter().position(|line| line.starts_with("generation  seconds")).expect("a heading");
        assert!(lines[table + 1].starts_with(FIRST), "{lines:#?}");
        let rows = lines[table + 1..].iter().take_while(|line| line.ends_with(" %"));
        assert_eq!(rows.count(), 30, "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("RESULT {")), "{lines:#?}");
    }
}

/// The canary of the test above: a line that is printed past the dashboard is seen.
#[test]
fn a_line_across_the_dashboard_would_be_seen() {
    let place = Place::new();
    let (digits, out) = (place.digits(), place.path("out"));
    let mut last = String::new();
    Terminal::run(80, "mnist", &arguments(&digits, &out, &["--dashboard"]), |screen| {
        if screen.alternate_screen() && screen.contents().contains("Progress") && is_whole(screen) {
            last = screen.state_formatted();
        }
    });
    let mut parser = emulator(80);
    parser.process(b"\x1b[?1049h");
    parser.process(last.as_bytes());
    assert!(is_whole(parser.screen()));
    parser.process(b"\x1b[12;1H        50      0.1        0.00M        8294   -1.8268    38.10 %\r\n");
    assert!(!is_whole(parser.screen()), "{}", parser.screen().contents());
}

#[test]
fn a_table_stands_above_its_progress_bar() {
    for columns in [80, 160] {
        let place = Place::new();
        let (digits, out) = (place.digits(), place.path("out"));
        let mut bars = 0;
        let mut terminal = Terminal::run(columns, "mnist", &arguments(&digits, &out, &[]), |screen| {
            let text = screen.contents();
            let last = text.trim_end().lines().last().unwrap_or_default();
            bars +=
                usize::from(last.contains("/1500 ") && last.contains(" eta ") && text.contains("generation  seconds"));
        });
        assert!(bars > 0, "no progress bar below the table");
        let lines = terminal.lines();
        let table = lines.iter().position(|line| line.starts_with("generation  seconds")).expect("a heading");
        let rows: Vec<&String> = lines[table + 1..].iter().take_while(|line| line.ends_with(" %")).collect();
        assert_eq!(rows.len(), 30, "{lines:#?}");
        for row in rows {
            assert_eq!(row.split_whitespace().count(), 7, "a row with something else in it: {row:?}");
        }
        assert!(!lines.iter().any(|line| line.contains(" eta ")), "the bar is left behind: {lines:#?}");
    }
}

/// A run that ends by its seconds has no end that a bar could count to; its table fits too.
#[test]
fn a_run_of_some_seconds_fits_and_has_a_dashboard() {
    let place = Place::new();
    let (text, out) = (place.text(), place.path("out"));
    let small = [
        "--data",
        &text,
        "--population",
        "8",
        "--width",
        "8",
        "--validate-every",
        "10",
        "--seconds",
        "2",
        "--out",
        &out,
    ];
    let mut terminal = Terminal::run(80, "char_lm", &small, |_| {});
    let lines = terminal.lines();
    let table = lines.iter().position(|line| line.starts_with("generation  seconds")).expect("a heading");
    assert!(lines[table].ends_with("tied"), "the heading is broken: {lines:#?}");
    assert!(lines[table + 1].starts_with("        10 ") && lines[table + 1].ends_with(" %"), "{lines:#?}");

    let out = place.path("dashboard");
    let small = [&small[..10], &["--out", &out, "--dashboard"]].concat();
    let mut seen = false;
    let mut terminal = Terminal::run(80, "char_lm", &small, |screen| {
        seen |= screen.alternate_screen() && is_whole(screen) && screen.contents().contains("Bits per byte");
    });
    assert!(seen, "no dashboard, or without bits per byte");
    assert!(terminal.lines().iter().all(|line| !line.contains("panicked")), "{}", terminal.text());
}

/// Into a pipe or a file go plain lines, whatever was asked for.
#[test]
fn a_file_gets_plain_lines() {
    for more in [&[][..], &["--dashboard"]] {
        let place = Place::new();
        let ended = run(&mut place.mnist(&[more, &["--generations", "200"]].concat()), &place);
        assert_eq!((ended.status, ended.errors.as_str()), (0, ""), "{ended:?}");
        assert!(!ended.output.chars().any(|character| character.is_control() && character != '\n'), "{ended:?}");
        assert_eq!(ended.output.lines().filter(|line| line.ends_with(" %")).count(), 4, "{ended:?}");
    }
}
