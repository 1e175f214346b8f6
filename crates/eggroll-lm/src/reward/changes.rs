//! Two models on the same prompts.

use super::Grade;

/// What changed from one model to another on the same prompts, such as before and after training: far more sensitive than the
/// difference of two accuracies.
///
/// # Example
///
/// ```
/// use eggroll_lm::reward::{Changes, Grade};
///
/// let correct = |correct| Grade { score: 0.0, correct: Some(correct), well_formed: None };
/// let before = [false, false, false, false, false, false, true].map(correct);
/// let after = [true, true, true, true, true, true, true].map(correct);
/// let changes = Changes::between(&before, &after);
/// assert_eq!((changes.fixed, changes.broken), (6, 0));
/// assert!((changes.p_value() - 1.0 / 32.0).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changes {
    /// Prompts answered wrongly before and correctly after.
    pub fixed: usize,
    /// Prompts answered correctly before and wrongly after.
    pub broken: usize,
}

impl Changes {
    /// The changes from `before` to `after`, prompt by prompt. Prompts of which a grade does not tell are left out.
    ///
    /// # Panics
    ///
    /// Panics if there are not as many grades after as before.
    #[track_caller]
    pub fn between(before: &[Grade], after: &[Grade]) -> Self {
        let (old, new) = (before.len(), after.len());
        assert_eq!(old, new, "changes: {old} grades before and {new} after; grade the same prompts twice");
        let changed = |from: bool| {
            let pairs = before.iter().zip(after);
            pairs.filter(|(old, new)| old.correct == Some(from) && new.correct == Some(!from)).count()
        };
        Self { fixed: changed(false), broken: changed(true) }
    }

    /// How likely as uneven a count is, or a more uneven one, if each change were as likely a repair as a damage: the exact test of
    /// McNemar (1947), two-sided. 1 if nothing changed.
    pub fn p_value(self) -> f64 {
        let (changes, fewer) = (self.fixed + self.broken, self.fixed.min(self.broken));
        if self.fixed == self.broken {
            return 1.0;
        }
        // Σ_{k ≤ fewer} C(changes, k) / 2^changes, in logarithms: the terms of many changes are below what an f64 holds.
        let mut term = -(changes as f64) * std::f64::consts::LN_2;
        let mut tail = term.exp();
        for k in 1..=fewer {
            term += ((changes - k + 1) as f64 / k as f64).ln();
            tail += term.exp();
        }
        (2.0 * tail).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_p_values() {
        for (fixed, broken, expected) in
            [(0, 0, 1.0), (63, 63, 1.0), (1, 0, 1.0), (8, 2, 0.109_375), (2, 8, 0.109_375), (1500, 1500, 1.0)]
        {
            let found = Changes { fixed, broken }.p_value();
            assert!((found - expected).abs() < 1e-9, "{fixed} {broken}: {found}");
        }
        let many = Changes { fixed: 1600, broken: 1400 }.p_value();
        assert!((2.4e-4..2.9e-4).contains(&many), "{many}"); // the normal approximation gives z = 199/√3000
    }

    #[test]
    fn what_a_grade_does_not_tell_is_no_change() {
        let grade = |correct| Grade { score: 0.0, correct, well_formed: None };
        let before = [grade(None), grade(Some(false)), grade(Some(true))];
        let after = [grade(Some(true)), grade(None), grade(Some(false))];
        assert_eq!(Changes::between(&before, &after), Changes { fixed: 0, broken: 1 });
    }

    #[test]
    #[should_panic(expected = "1 grades before and 0 after")]
    fn other_prompts_are_refused() {
        Changes::between(&[0.0.into()], &[]);
    }
}
