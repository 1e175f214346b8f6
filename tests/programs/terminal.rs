//! The dashboard on a pseudo-terminal: what a terminal would show is read.

use super::support::{OutputFolder, SMALL, example};
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
const COLUMNS: u16 = 80;
/// A line of a table: the generation at the left.
const FIRST: &str = "        50 ";

/// A program in a terminal.
struct Terminal {
    parser: Parser,
}

impl Terminal {
    /// Runs `mnist` with a dashboard to its end, and shows every screen on the way.
    fn run(place: &OutputFolder, mut look: impl FnMut(&Screen)) -> Self {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(example("mnist"));
        command.arg(place.digits());
        command.args(SMALL);
        command.args(["--generations", "1500", "--out", &place.path("out"), "--dashboard"]);
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
        let mut terminal = Self { parser: emulator() };
        let begun = Instant::now();
        loop {
            match pieces.recv_timeout(Duration::from_millis(50)) {
                Ok(piece) => {
                    terminal.parser.process(&piece);
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
        let mut lines = Vec::new();
        screen.set_scrollback(usize::MAX);
        for above in (0..=screen.scrollback()).rev() {
            screen.set_scrollback(above);
            lines.extend(screen.rows(0, COLUMNS).take(if above == 0 { usize::from(ROWS) } else { 1 }));
        }
        lines.iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
    }
}

/// What shows what a program writes, and keeps lines that leave it.
fn emulator() -> Parser {
    let size = |cells| NonZeroU16::new(cells).expect("a size");
    Parser::new(size(ROWS), size(COLUMNS), 1000)
}

/// Whether a screen is Burn's dashboard and nothing else: every row begins and ends with a frame.
fn is_whole(screen: &Screen) -> bool {
    let frames = ['│', '┌', '└', '┐', '┘'];
    screen.rows(0, COLUMNS).all(|row| {
        let ends = [row.chars().next(), row.chars().nth(usize::from(COLUMNS) - 1)];
        ends.iter().all(|end| end.is_some_and(|end| frames.contains(&end)))
    })
}

#[test]
fn a_dashboard_has_the_screen_alone() {
    let place = OutputFolder::new();
    let (mut shown, mut broken, mut parts, mut last) = (0, Vec::new(), 0, String::new());
    let mut terminal = Terminal::run(&place, |screen| {
        // A piece may end inside a frame that is being drawn: only a screen with all of its parts is looked at.
        let text = screen.contents();
        if screen.alternate_screen()
            && ["Controls", "Metrics", "Status", "Progress"].iter().all(|part| text.contains(part))
        {
            shown += 1;
            // Nothing repairs one that is still incomplete when more has come twice.
            parts = if is_whole(screen) { 0 } else { parts + 1 };
            match parts {
                0 => last = screen.state_formatted(),
                1 | 2 => {}
                _ => broken.push(text.clone()),
            }
            if text.contains("generation  seconds") || text.contains(FIRST) {
                broken.push(text);
            }
        }
    });
    assert!(shown > 0, "the dashboard was never seen");
    assert!(broken.is_empty(), "{} of {shown} screens are garbled: {}", broken.len(), broken[0]);
    // Canary: a line that is printed past the dashboard would be seen.
    let mut parser = emulator();
    parser.process(b"\x1b[?1049h");
    parser.process(last.as_bytes());
    assert!(is_whole(parser.screen()));
    parser.process(b"\x1b[12;1H        50      0.1        0.00M        8294   -1.8268    38.10 %\r\n");
    assert!(!is_whole(parser.screen()), "{}", parser.screen().contents());
    // Behind it, on the screen of before: the table, whole, and the result.
    assert!(!terminal.parser.screen().alternate_screen() && !terminal.parser.screen().hide_cursor());
    let lines = terminal.lines();
    let table = lines.iter().position(|line| line.starts_with("generation  seconds")).expect("a heading");
    assert!(lines[table + 1].starts_with(FIRST), "{lines:#?}");
    let rows = lines[table + 1..].iter().take_while(|line| line.ends_with(" %"));
    assert_eq!(rows.count(), 30, "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("RESULT {")), "{lines:#?}");
}
