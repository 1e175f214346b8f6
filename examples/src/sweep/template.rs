//! The command with places for settings.

use super::space::Value;
use crate::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

/// Stands for a folder of the trial's own, which is not there yet when the trial begins.
pub const FOLDER: &str = "folder";
/// Stands for the trial's seed.
pub const SEED: &str = "seed";

/// Words and environment of a command, with `{name}` where a setting belongs. Other braces are ordinary characters.
#[derive(Clone, Debug)]
pub struct Template {
    words: Vec<Vec<Piece>>,
    environment: BTreeMap<String, Vec<Piece>>,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(String),
}

impl Template {
    /// Splits words into text and places.
    pub fn new(command: &[String], environment: &BTreeMap<String, String>) -> Self {
        let environment = environment.iter().map(|(name, word)| (name.clone(), pieces(word))).collect();
        Self { words: command.iter().map(|word| pieces(word)).collect(), environment }
    }

    /// Checks that every place has a setting and every setting a place.
    pub fn check<'a>(&self, parameters: impl Iterator<Item = &'a str>, seeds: bool) -> Result<(), Failure> {
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for name in parameters {
            if [FOLDER, SEED].contains(&name) {
                return Err(format!("parameters.{name}: {{{name}}} stands for something else already").into());
            }
            if !name.chars().all(is_name) {
                return Err(format!("parameters.{name:?}: a name is letters, digits, - and _").into());
            }
            known.insert(name);
        }
        known.extend(seeds.then_some(SEED));
        let words = self.words.iter().chain(self.environment.values()).flatten();
        let places: BTreeSet<&str> = words.filter_map(Piece::place).collect();
        if let Some(unknown) = places.iter().find(|place| **place != FOLDER && !known.contains(**place)) {
            return Err(format!("the command has {{{unknown}}}, but there are only {known:?} and {FOLDER:?}").into());
        }
        match known.iter().find(|name| !places.contains(**name)) {
            Some(unused) => Err(format!("the command has no {{{unused}}}: {unused} would change nothing").into()),
            None => Ok(()),
        }
    }

    /// The command's words and environment under some settings; the folder stays a place.
    pub fn fill(
        &self,
        settings: &BTreeMap<String, Value>,
        seed: Option<u64>,
    ) -> (Vec<String>, BTreeMap<String, String>) {
        let fill = |word: &Vec<Piece>| -> String { word.iter().map(|piece| piece.fill(settings, seed)).collect() };
        let environment = self.environment.iter().map(|(name, word)| (name.clone(), fill(word))).collect();
        (self.words.iter().map(fill).collect(), environment)
    }
}

impl Piece {
    fn place(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::Place(name) => Some(name),
        }
    }

    fn fill(&self, settings: &BTreeMap<String, Value>, seed: Option<u64>) -> String {
        match (self, seed) {
            (Self::Text(text), _) => text.clone(),
            (Self::Place(name), Some(seed)) if name == SEED => seed.to_string(),
            (Self::Place(name), _) => settings.get(name).map_or_else(|| format!("{{{name}}}"), Value::to_string),
        }
    }
}

/// Puts the trial's folder into a filled word.
pub fn with_folder(word: &str, folder: &Path) -> String {
    word.replace(&format!("{{{FOLDER}}}"), &folder.to_string_lossy())
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn pieces(word: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut text, mut rest) = (String::new(), word);
    while let Some((before, inside)) = rest.split_once('{') {
        text += before;
        match inside.split_once('}').filter(|(name, _)| !name.is_empty() && name.chars().all(is_name)) {
            Some((name, after)) => {
                pieces.extend([Piece::Text(std::mem::take(&mut text)), Piece::Place(name.to_owned())]);
                rest = after;
            }
            None => {
                text.push('{');
                rest = inside;
            }
        }
    }
    pieces.push(Piece::Text(text + rest));
    pieces
}

/// The program of a command: a path as it is; a name next to this program, where the other examples are, or on the search path.
pub fn find_program(name: &str) -> Result<PathBuf, Failure> {
    if name.contains(['/', MAIN_SEPARATOR]) {
        let path = PathBuf::from(name);
        return if path.is_file() { Ok(path) } else { Err(format!("there is no program {name}").into()) };
    }
    let beside = env::current_exe()?.parent().map(Path::to_path_buf).unwrap_or_default();
    let search = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(beside.clone()).chain(env::split_paths(&search));
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    folders.map(|folder| folder.join(&file)).find(|path| path.is_file()).ok_or_else(|| {
        let beside = beside.display();
        format!(
            "there is no program {name}, neither in {beside} nor on the search path: an example must be built first"
        )
        .into()
    })
}
