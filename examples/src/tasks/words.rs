//! Is a word positive or negative?

use super::lines::{numbered, read, shown};
use super::random::SplitMix64;
use super::{Example, Splits};
use crate::Failure;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

/// The seed of the shuffle, the same for everybody.
const SEED: u64 = 2014;
/// Words of the dev split, and of the test split.
const HELD_OUT: usize = 256;
/// The largest valence, and with a minus the smallest.
const STRONGEST: f32 = 4.0;

/// A question for each word of a file, and its answer. Positive and negative words of the training data are two kinds.
///
/// A line of the file has a word, a tab and the word's valence, from −4 to 4 and not 0. Blank lines are skipped; of a
/// word that is on several lines, the first counts. The words, in the order of the file, are shuffled by Fisher and
/// Yates, from the last place down, with the generator SplitMix64 seeded by 2014. The first 256 are for the test, the
/// next 256 for dev, and all others for training: the same file has the same splits everywhere.
///
/// In the repository's `data/words/sentiment.tsv`, 45 % of 4,028 words are positive: 121 of the test's, 102 of dev's.
/// The constant answer "negative" is right for 135 of the 256 words of the test (52.7 %), and for 154 of dev (60.2 %).
///
/// Words of one family, such as "abandon" and "abandoned", are in different splits. A simple rule is right for 235
/// words of the test (91.8 %): a vote of the training words with the same first four letters, and "negative" where
/// there are none. So a trained model has to exceed that before its accuracy tells more than that it has learned the
/// families.
///
/// # References
///
/// Hutto & Gilbert, *VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text* (ICWSM 2014).
///
/// # Errors
///
/// The file, the line, what was found and what was expected.
pub fn examples(path: &Path) -> Result<Splits<Example>, Failure> {
    words(path)?.try_map(|words| Ok(words.iter().map(Word::example).collect()))
}

/// The words behind [`examples`], in the same splits.
pub(super) fn words(path: &Path) -> Result<Splits<Word>, Failure> {
    let mut words = read(path, parse)?;
    SplitMix64::new(SEED).shuffle(&mut words);
    let train = words.split_off(2 * HELD_OUT);
    let dev = words.split_off(HELD_OUT);
    let (positive, negative) = train.into_iter().partition::<Vec<_>, _>(|word| word.is_positive);
    let kinds = [positive, negative].into_iter().filter(|kind| !kind.is_empty());
    Ok(Splits { train: kinds.collect(), dev, test: words })
}

/// A word and its sentiment.
pub(super) struct Word {
    word: String,
    pub(super) is_positive: bool,
    line: usize,
}

impl Word {
    pub(super) fn question(&self) -> String {
        format!("Is the word \"{}\" positive or negative?", self.word)
    }

    /// In ChatML, the chat format of Qwen and SmolLM2, without a system message, and with the start of the reply.
    fn example(&self) -> Example {
        let prompt = format!("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\nIt is", self.question());
        let completion = if self.is_positive { " positive" } else { " negative" };
        Example { prompt, completion: completion.into(), line: self.line }
    }

    fn parse(line: usize, content: &str) -> Option<Self> {
        let (word, valence) = content.split_once('\t')?;
        let valence: f32 = valence.parse().ok()?;
        let well_formed = !word.is_empty() && word.trim() == word && valence.abs() <= STRONGEST && valence != 0.0;
        well_formed.then(|| Self { word: word.into(), is_positive: valence > 0.0, line })
    }
}

fn parse(text: &str) -> Result<Vec<Word>, Failure> {
    let mut words = Vec::new();
    let mut seen = HashMap::new();
    for (line, content) in numbered(text) {
        let word = Word::parse(line, content).ok_or_else(|| {
            let expected = "a word, a tab and a valence from -4 to 4 that is not 0, such as \"kind<tab>2.4\"";
            format!("line {line}: found {}, expected {expected}", shown(content))
        })?;
        match seen.entry(word.word.clone()) {
            Entry::Vacant(entry) => {
                entry.insert((line, word.is_positive));
                words.push(word);
            }
            Entry::Occupied(entry) if entry.get().1 == word.is_positive => {}
            Entry::Occupied(entry) => {
                let (word, first) = (word.word, entry.get().0);
                return Err(
                    format!("line {line}: the word {word:?} has the other sign on line {first}: remove one").into()
                );
            }
        }
    }
    let (found, fewest) = (words.len(), 2 * HELD_OUT + 1);
    if found < fewest {
        let held_out = 2 * HELD_OUT;
        return Err(format!(
            "found {found} words, expected at least {fewest}: {held_out} are held out, and one is needed for training"
        )
        .into());
    }
    Ok(words)
}
