//! The grades of many completions: accuracy and form apart.

use super::Grade;
use eggroll_core::messages::shown;
use std::fmt;

/// How many of some completions have a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Those that have it.
    pub hits: usize,
    /// All of them, at least 1.
    pub of: usize,
}

impl Share {
    /// Of the values that are there; `None` if none is.
    fn count(values: impl Iterator<Item = Option<bool>>) -> Option<Self> {
        let (hits, of) = values.flatten().fold((0, 0), |(hits, of), hit| (hits + usize::from(hit), of + 1));
        (of > 0).then_some(Self { hits, of })
    }

    /// `hits / of`.
    pub fn value(self) -> f64 {
        self.hits as f64 / self.of as f64
    }

    /// The interval that holds the share of the whole population with 95 % confidence, if the completions are independent: the score
    /// interval of Wilson (1927). Greedy replies to the same prompt are the same reply, so they do not make it narrower.
    ///
    /// ```
    /// use eggroll_lm::reward::Share;
    ///
    /// let (low, high) = Share { hits: 45, of: 128 }.interval();
    /// assert!((low - 0.274).abs() < 1e-3 && (high - 0.437).abs() < 1e-3);
    /// ```
    pub fn interval(self) -> (f64, f64) {
        let (p, n, z) = (self.value(), self.of as f64, 1.959_964_f64);
        let center = p + z * z / (2.0 * n);
        let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z * z / n;
        (((center - half) / scale).max(0.0), ((center + half) / scale).min(1.0))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.interval();
        let [value, low, high] = [self.value(), low, high].map(|share| 100.0 * share);
        write!(formatter, "{value:.1} % ({low:.1} to {high:.1}, n = {})", self.of)
    }
}

/// What many completions score, how many are correct, and how many only have the form: a higher score can come from either.
///
/// # Example
///
/// ```
/// use eggroll_lm::reward::{Grade, Share, Summary};
///
/// let right = Grade { score: 1.1, correct: Some(true), well_formed: Some(true) };
/// let form = Grade { score: 0.1, correct: Some(false), well_formed: Some(true) };
/// let summary = Summary::of(&[right, form, form, form]);
/// assert_eq!(summary.correct, Some(Share { hits: 1, of: 4 }));
/// assert_eq!(summary.well_formed, Some(Share { hits: 4, of: 4 }));
/// assert_eq!(
///     summary.to_string(),
///     "score 0.3500, correct 25.0 % (4.6 to 69.9, n = 4), well-formed 100.0 % (51.0 to 100.0, n = 4)",
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many completions.
    pub count: usize,
    /// The mean of the scores; 0 of no completions.
    pub score: f64,
    /// How many are correct, of those where the reward tells.
    pub correct: Option<Share>,
    /// How many are well-formed, of those where the reward tells.
    pub well_formed: Option<Share>,
}

impl Summary {
    /// The summary of some grades.
    pub fn of(grades: &[Grade]) -> Self {
        let total = grades.iter().fold(0.0, |total, grade| total + f64::from(grade.score));
        Self {
            count: grades.len(),
            score: total / grades.len().max(1) as f64,
            correct: Share::count(grades.iter().map(|grade| grade.correct)),
            well_formed: Share::count(grades.iter().map(|grade| grade.well_formed)),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "score {:.4}", shown(self.score, 4))?;
        for (name, share) in [("correct", self.correct), ("well-formed", self.well_formed)] {
            if let Some(share) = share {
                write!(formatter, ", {name} {share}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_that_do_not_tell_are_left_out() {
        let tells = Grade { score: 1.0, correct: Some(true), well_formed: None };
        let summary = Summary::of(&[tells, 0.0.into()]);
        let expected = Summary { count: 2, score: 0.5, correct: Some(Share { hits: 1, of: 1 }), well_formed: None };
        assert_eq!(summary, expected);
        assert_eq!(Summary::of(&[]), Summary { count: 0, score: 0.0, correct: None, well_formed: None });
        assert_eq!(Summary::of(&[]).to_string(), "score 0.0000");
    }

    #[test]
    fn intervals_stay_open_at_the_ends() {
        // Of 0 hits, the upper end is z²/(n + z²).
        let (low, high) = Share { hits: 0, of: 10 }.interval();
        assert!(low == 0.0 && (high - 0.277_53).abs() < 1e-4, "{low} {high}");
        let (low, high) = Share { hits: 10, of: 10 }.interval();
        assert!((low - 0.722_47).abs() < 1e-4 && (high - 1.0).abs() < 1e-12, "{low} {high}");
    }
}
