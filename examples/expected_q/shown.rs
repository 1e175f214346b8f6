//! One decision, in words.

use crate::hands::Hand;
use crate::players::{DecisionCost, Player, Thinker};
use eggroll::rl::{ActionValue, Decision};
use eggroll::run::print_line;
use eggroll_examples::Failure;
use eggroll_examples::texas42::{Domino, HandState, Observation, PLAYERS, Play, Solver, Suit, Texas42Worlds, Worlds};

/// Plays after which a decision is shown, and dominoes that may be chosen from.
const PLAYS: usize = 9;
const CHOICES: usize = 3;

/// A decision with what is known of it, and what is not.
pub struct Shown {
    pub seen: Observation,
    pub state: HandState,
    pub weighed: Decision,
    pub equal: Decision,
    /// Points of each domino of the decision, with all hands open.
    pub exact: Vec<i32>,
}

/// One domino of a decision.
pub struct DominoRow {
    pub domino: Domino,
    pub weighed: ActionValue,
    pub equal: ActionValue,
    pub exact: i32,
    pub played: bool,
}

impl Shown {
    /// The first decision of these deals that is late enough and leaves a choice.
    pub fn find(weighed: &Thinker<'_>, equal: &Thinker<'_>, seed: u64) -> Result<Self, Failure> {
        let player = Player::ExpectedValues(weighed.clone());
        for deal in 0..100 {
            let mut hand = Hand::deal(seed, deal);
            while !hand.state.is_over() {
                let game = hand.decision(seed);
                let legal = game.1.legal_moves();
                if game.1.played().len() >= PLAYS && legal.len() >= CHOICES && !hand.state.trick().is_empty() {
                    let exact = Solver::default().action_values(&hand.state);
                    let decide = |thinker: &Thinker<'_>| thinker.decide(&[game]).map(|mut decided| decided.remove(0));
                    return Ok(Self {
                        seen: game.1,
                        state: hand.state,
                        weighed: decide(weighed)?,
                        equal: decide(equal)?,
                        exact: legal.iter().filter_map(|domino| exact[domino.index()]).collect(),
                    });
                }
                let chosen = player.choose(&[game], &mut DecisionCost::default())?;
                hand.play(chosen[0]);
            }
        }
        Err("no decision to show in 100 deals: take another --seed".into())
    }

    pub fn rows(&self) -> Vec<DominoRow> {
        let best = self.weighed.best();
        let both = self.weighed.actions.iter().zip(&self.equal.actions).zip(&self.exact);
        let row = |((&weighed, &equal), &exact): ((&ActionValue, &ActionValue), &i32)| {
            let domino = Texas42Worlds::domino(&self.seen, weighed.action)?;
            Some(DominoRow { domino, weighed, equal, exact, played: best == Some(weighed.action) })
        };
        both.filter_map(row).collect()
    }

    /// Who is to move, and in which contract.
    pub fn heading(&self) -> String {
        let contract = self.state.contract();
        let (trick, player, declarer) = (self.state.trick_number() + 1, self.seen.player(), contract.declarer());
        format!(
            "player {player} in trick {trick}; player {declarer} bid {} on {}",
            contract.bid().number(),
            contract.trumps()
        )
    }

    pub fn print(&self) -> Result<(), Failure> {
        print_line!("\nOne decision: {}", self.heading());
        let plays: Vec<Play> = self.seen.plays().collect();
        let tricks: Vec<String> = plays.chunks(4).map(trick).collect();
        print_line!("  tricks      {}", tricks.join("\n              "));
        print_line!("  hand        {}", self.seen.hand());
        let voids: Vec<String> = (0..PLAYERS).filter_map(|player| self.voids(player)).collect();
        print_line!(
            "  shown       {}",
            if voids.is_empty() { "everybody followed".to_owned() } else { voids.join("; ") }
        );
        let (worlds, effective) = (Worlds::new(&self.seen)?.count(), self.weighed.effective_sample_size);
        print_line!("  worlds      {worlds} agree; those sampled count as {effective:.1} by their weights");
        print_line!("\n  domino   E[Q]  std. error   equal weights   hands open");
        for row in self.rows() {
            let (weighed, note) = (row.weighed, if row.played { "   played" } else { "" });
            print_line!(
                "  {:<6} {:>6.2}  {:>10.2}   {:>13.2}   {:>10}{note}",
                row.domino.to_string(),
                weighed.value,
                weighed.standard_error,
                row.equal.value,
                row.exact
            );
        }
        Ok(())
    }

    fn voids(&self, player: usize) -> Option<String> {
        let suits: Vec<String> = Suit::ALL
            .into_iter()
            .filter(|suit| self.seen.is_void(player, *suit))
            .map(|suit| suit.to_string())
            .collect();
        (!suits.is_empty()).then(|| format!("player {player} has no {}", suits.join(", no ")))
    }
}

/// `player 2 led 6-5  5-5  5-1  0-0`
fn trick(plays: &[Play]) -> String {
    let dominoes: Vec<String> = plays.iter().map(|play| play.domino.to_string()).collect();
    format!("player {} led {}", plays[0].player, dominoes.join("  "))
}
