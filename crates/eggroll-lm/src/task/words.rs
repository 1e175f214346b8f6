//! Is a word positive or negative?

use super::lines::{numbered, read, shown};
use super::random::SplitMix64;
use super::{SftExample, Split, TaskError};
use crate::reward::Prompt;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

/// The seed of the shuffle, the same for everybody.
const SEED: u64 = 2014;

/// Words of the dev split, and of the test split.
const HELD_OUT: usize = 256;

/// The largest valence, and with a minus the smallest.
const STRONGEST: f32 = 4.0;

/// A word and its sentiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The word.
    pub word: String,
    /// From −4, very negative, to 4, very positive; not 0.
    pub valence: f32,
    /// Its line in the file, from 1.
    pub line: usize,
}

impl Word {
    /// Both answers, as they continue [`prompt`](Self::prompt): the place of [`answer`](Self::answer) is [`label`](Self::label).
    pub const ANSWERS: [&str; 2] = [" positive", " negative"];

    /// 0 for a positive word, 1 for a negative one.
    pub fn label(&self) -> usize {
        usize::from(self.valence < 0.0)
    }

    /// The right one of [`ANSWERS`](Self::ANSWERS).
    pub fn answer(&self) -> &'static str {
        Self::ANSWERS[self.label()]
    }

    /// The question in ChatML, the chat format of Qwen and SmolLM2, without a system message, and the start of the reply; the answer
    /// is the reference.
    pub fn prompt(&self) -> Prompt {
        let question = format!(
            "<|im_start|>user\nIs the word \"{}\" positive or negative?<|im_end|>\n<|im_start|>assistant\n",
            self.word
        );
        Prompt::new(question).with_opening("It is").with_reference(self.answer())
    }

    /// The prompt and its answer, for likelihood training.
    pub fn example(&self) -> SftExample {
        SftExample { prompt: self.prompt().text(), completion: self.answer().into(), line: self.line }
    }
}

/// Words with a sentiment, split for training, choice and test.
///
/// A line of the file has a word, a tab and the word's valence. The words, in the order of the file, are shuffled by Fisher and Yates,
/// from the last place down, with the generator SplitMix64 seeded by 2014. The first 256 are for the test, the next 256 for dev, and
/// all others for training: the same file has the same splits everywhere.
///
/// In the repository's `data/words/sentiment.tsv`, 45 % of 4,028 words are positive: 121 of the test's, 102 of dev's. The constant
/// answer "negative" is right for 135 of the 256 words of the test (52.7 %), and for 154 of dev (60.2 %).
///
/// Words of one family, such as "abandon" and "abandoned", are in different splits: a vote of the training words with the same first
/// four letters, and "negative" where there are none, is right for 235 words of the test (91.8 %). So a trained model has to exceed
/// that before its accuracy tells more than that it has learned the families.
///
/// # References
///
/// Hutto & Gilbert, *VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text* (ICWSM 2014).
///
/// # Example
///
/// ```
/// use eggroll_lm::task::{Split, Words};
///
/// let letters = || 'a'..='z';
/// let lines = letters().flat_map(|x| letters().map(move |y| format!("{x}{y}\t{}\n", if y < 'm' { 2.5 } else { -1.9 })));
/// let words = Words::parse(&lines.collect::<String>())?;
/// assert_eq!(words.split(Split::Test).len(), 256);
/// assert_eq!(words.split(Split::Train).len(), 26 * 26 - 512);
///
/// let prompt = words.split(Split::Train)[0].prompt();
/// assert!(prompt.text().ends_with("<|im_start|>assistant\nIt is"));
/// # Ok::<(), eggroll_lm::task::TaskError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Words {
    /// Test, dev, train.
    shuffled: Vec<Word>,
}

impl Words {
    /// Reads a file, as [`parse`](Self::parse) does.
    ///
    /// # Errors
    ///
    /// [`TaskError::Io`] if the file cannot be read, [`TaskError::File`] with an error of [`parse`](Self::parse).
    pub fn read(path: impl AsRef<Path>) -> Result<Self, TaskError> {
        read(path.as_ref(), Self::parse)
    }

    /// The words of a text. Blank lines are skipped; of a word that is on several lines, the first counts, so that no word is in two
    /// splits.
    ///
    /// # Errors
    ///
    /// [`TaskError::Line`] if a line is malformed, [`TaskError::Contradiction`] if a word is both positive and negative,
    /// [`TaskError::Words`] if there are fewer than 513 words.
    pub fn parse(text: &str) -> Result<Self, TaskError> {
        let mut shuffled = Vec::new();
        let mut lines = HashMap::new();
        for (line, content) in numbered(text) {
            let word = parse_word(line, content).ok_or_else(|| TaskError::Line {
                line,
                found: shown(content),
                expected: "a word, a tab and a valence from -4 to 4 that is not 0, such as \"kind<tab>2.4\"".into(),
            })?;
            match lines.entry(word.word.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert((line, word.label()));
                    shuffled.push(word);
                }
                Entry::Occupied(entry) if entry.get().1 == word.label() => {}
                Entry::Occupied(entry) => {
                    return Err(TaskError::Contradiction { line, word: word.word, first: entry.get().0 });
                }
            }
        }
        let (found, held_out) = (shuffled.len(), 2 * HELD_OUT);
        if found <= held_out {
            return Err(TaskError::Words { found, expected: held_out + 1, held_out });
        }
        SplitMix64::new(SEED).shuffle(&mut shuffled);
        Ok(Self { shuffled })
    }

    /// The words of a split, shuffled.
    pub fn split(&self, split: Split) -> &[Word] {
        match split {
            Split::Test => &self.shuffled[..HELD_OUT],
            Split::Dev => &self.shuffled[HELD_OUT..2 * HELD_OUT],
            Split::Train => &self.shuffled[2 * HELD_OUT..],
        }
    }
}

fn parse_word(line: usize, content: &str) -> Option<Word> {
    let (word, valence) = content.split_once('\t')?;
    let valence: f32 = valence.parse().ok()?;
    let well_formed = !word.is_empty() && word.trim() == word && valence.abs() <= STRONGEST && valence != 0.0;
    well_formed.then(|| Word { word: word.into(), valence, line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/words/sentiment.tsv");

    fn lines(count: usize) -> String {
        (0..count).map(|index| format!("w{index}\t{}\n", if index % 2 == 0 { "1.5" } else { "-2" })).collect()
    }

    #[test]
    fn the_file_of_the_repository() {
        let words = Words::read(FILE).unwrap();
        let [train, dev, test] = [Split::Train, Split::Dev, Split::Test].map(|split| words.split(split));
        assert_eq!((train.len(), dev.len(), test.len()), (4028 - 512, 256, 256));
        let different: HashSet<&str> =
            [train, dev, test].concat().iter().map(|word| &*word.word.clone().leak()).collect();
        assert_eq!(different.len(), 4028);
        let positive = |words: &[Word]| words.iter().filter(|word| word.label() == 0).count();
        assert_eq!((positive(train), positive(dev), positive(test)), (1583, 102, 121));
        let first = |words: &[Word]| words.iter().take(3).map(|word| word.word.clone()).collect::<Vec<_>>().join(" ");
        assert_eq!(first(train), "sentimentally disagreeably stupid");
        assert_eq!(first(dev), "rageful poisonings outcry");
        assert_eq!(first(test), "favorable fabulous ffs");
    }

    /// The baseline of the documentation.
    #[test]
    fn families_are_in_both_splits() {
        let words = Words::read(FILE).unwrap();
        let mut votes: HashMap<&str, i32> = HashMap::new();
        for word in words.split(Split::Train) {
            *votes.entry(&word.word[..word.word.len().min(4)]).or_default() += 1 - 2 * word.label() as i32;
        }
        let vote = |word: &&Word| votes.get(&word.word[..word.word.len().min(4)]).is_some_and(|votes| *votes > 0);
        let right = words.split(Split::Test).iter().filter(|word| vote(word) == (word.label() == 0)).count();
        assert_eq!(right, 235);
    }

    #[test]
    fn prompts_end_where_the_answer_starts() {
        let word = |valence| Word { word: "kind".into(), valence, line: 7 };
        let example = word(2.4).example();
        let text =
            "<|im_start|>user\nIs the word \"kind\" positive or negative?<|im_end|>\n<|im_start|>assistant\nIt is";
        assert_eq!(example, SftExample { prompt: text.into(), completion: " positive".into(), line: 7 });
        assert_eq!(word(-2.4).example().completion, " negative");
        assert_eq!(word(-2.4).prompt().reference.as_deref(), Some(" negative"));
    }

    #[test]
    fn malformed_lines_are_named() {
        for bad in [
            "kind",
            "kind 2.4",
            "\t2.4",
            "kind\t",
            "kind\tx",
            "kind\tNaN",
            "kind\t0",
            "kind\t4.1",
            "kind\t1\t2",
            " k\t1",
        ] {
            let error = Words::parse(&format!("good\t2\n\n{bad}\n{}", lines(600))).unwrap_err();
            assert!(matches!(&error, TaskError::Line { line: 3, .. }), "{bad:?}: {error}");
            assert!(error.to_string().contains(&format!("found {bad:?}, expected a word, a tab")), "{error}");
        }
        let error = Words::parse("kind\t2\nbad\t-2\nkind\t-2.1\n").unwrap_err().to_string();
        assert_eq!(error, "line 3: the word \"kind\" has the other sign on line 1: remove one of them");
    }

    #[test]
    fn a_repeated_word_counts_once() {
        let once = lines(600);
        assert_eq!(Words::parse(&format!("{once}w7\t-3\nw8\t3\n")).unwrap(), Words::parse(&once).unwrap());
    }

    #[test]
    fn missing_and_short_files_are_refused() {
        let missing = Words::read("/nonexistent/words.tsv").unwrap_err();
        assert!(matches!(missing, TaskError::Io { .. }), "{missing}");
        let short = Words::parse(&lines(512)).unwrap_err().to_string();
        assert_eq!(short, "found 512 words, expected at least 513: 512 are held out, and one is needed for training");
        assert_eq!(Words::parse(&lines(513)).unwrap().split(Split::Train).len(), 1);
    }
}
