//! What is known of the actions of a decision.

/// The expected values of the legal actions of one decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Actions that are legal in all worlds, by number.
    pub actions: Vec<ActionValue>,
    /// The number of worlds with equal weights that would be as good a sample (Kish): `1/Σ p_w²`, in `[1, W]`.
    pub effective_sample_size: f32,
}

impl Decision {
    /// The action of the highest value, the first of several; `None` without a legal action.
    ///
    /// # Example
    ///
    /// ```
    /// use eggroll_rl::{ActionValue, Decision};
    ///
    /// let value = |action, value| ActionValue { action, value, standard_error: 0.1 };
    /// let decision = Decision { actions: vec![value(2, 0.5), value(5, 1.5)], effective_sample_size: 10.0 };
    /// assert_eq!(decision.best(), Some(5));
    /// ```
    pub fn best(&self) -> Option<usize> {
        let better = |best: ActionValue, next: ActionValue| if next.value > best.value { next } else { best };
        self.actions.iter().copied().reduce(better).map(|best| best.action)
    }
}

/// The expected value of one action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActionValue {
    /// Its number.
    pub action: usize,
    /// `E[Q] = Σ_w p_w·Q_w`
    pub value: f32,
    /// Of the value, by the worlds that were sampled: `√(W/(W − 1)·Σ_w p_w²·(Q_w − E[Q])²)`, infinite for one world.
    /// With equal weights this is the usual one; else that of self-normalized importance sampling, and holds for many
    /// effective worlds only.
    pub standard_error: f32,
}
