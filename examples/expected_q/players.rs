//! Who plays: by expected values, by chance, or the highest domino.

use crate::hands::Dealt;
use crate::oracle::{Oracle, TokenTables};
use eggroll::core::profile;
use eggroll::rl::{Decision, ExpectedValues, ExpectedValuesError, WorldKey};
use eggroll_examples::texas42::{Domino, Observation, Opponent, Texas42Worlds, Trumps, uniform_below};
use rand::Rng;
use std::time::{Duration, Instant};

/// Random words of a decision that worlds do not use: theirs are counted from 0.
const CHANCE: u32 = u32::MAX;

/// A player of both seats of a side.
pub enum Player<'a> {
    /// Decides by sampled worlds.
    ExpectedValues(Thinker<'a>),
    /// Needs no thought.
    Simple(Opponent),
}

/// What a player by expected values needs.
#[derive(Clone)]
pub struct Thinker<'a> {
    pub engine: ExpectedValues,
    pub oracle: &'a Oracle,
    pub tables: &'a TokenTables,
}

/// What deciding took.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecisionCost {
    pub decisions: u64,
    pub steps: u64,
    pub time: Duration,
}

impl DecisionCost {
    pub fn decisions_per_second(&self) -> f64 {
        self.decisions as f64 / self.time.as_secs_f64()
    }
}

impl Thinker<'_> {
    /// Decides one step of games.
    pub fn decide(&self, games: &[(WorldKey, Observation)]) -> Result<Vec<Decision>, ExpectedValuesError> {
        self.engine.decide(&Texas42Worlds, games, |positions| self.oracle.points(self.tables, positions))
    }

    /// The same for none or more games, and notes what it took.
    fn timed(
        &self,
        games: &[(WorldKey, Observation)],
        work: &mut DecisionCost,
    ) -> Result<Vec<Decision>, ExpectedValuesError> {
        if games.is_empty() {
            return Ok(vec![]);
        }
        let start = Instant::now();
        profile::generation(work.steps);
        let decisions = self.decide(games)?;
        work.time += start.elapsed();
        work.steps += 1;
        work.decisions += decisions.len() as u64;
        Ok(decisions)
    }
}

impl Player<'_> {
    /// The trumps of every deal, all named by this player. By expected values it names the trumps whose best lead
    /// has the highest one. `Random` names any, `Highest` the suit of which the declarer has most.
    pub fn name_trumps(
        &self,
        dealt: &[Dealt],
        seed: u64,
        work: &mut DecisionCost,
    ) -> Result<Vec<Trumps>, ExpectedValuesError> {
        let thinker = match self {
            Self::Simple(Opponent::Random) => {
                let any = |dealt: &Dealt| {
                    let mut rng = dealt.naming(seed, dealt.longest()).0.rng(CHANCE);
                    Trumps::ALL[uniform_below(Trumps::ALL.len() as u64, &mut || rng.next_u32()) as usize]
                };
                return Ok(dealt.iter().map(any).collect());
            }
            Self::Simple(Opponent::Highest) => return Ok(dealt.iter().map(Dealt::longest).collect()),
            Self::ExpectedValues(thinker) => thinker,
        };
        let choices = dealt.iter().flat_map(|dealt| Trumps::ALL.map(|trumps| dealt.naming(seed, trumps)));
        let decisions = thinker.timed(&choices.collect::<Vec<_>>(), work)?;
        let best = |decisions: &[Decision]| {
            let value = |decision: &Decision| decision.actions.iter().map(|action| action.value).fold(0.0, f32::max);
            let highest = Trumps::ALL.into_iter().zip(decisions.iter().map(value)).max_by(|a, b| a.1.total_cmp(&b.1));
            highest.expect("nine trumps").0
        };
        Ok(decisions.chunks(Trumps::ALL.len()).map(best).collect())
    }

    /// A domino for every game, which are all this player's turn. Dominoes without a choice are not thought about.
    pub fn choose(
        &self,
        games: &[(WorldKey, Observation)],
        work: &mut DecisionCost,
    ) -> Result<Vec<Domino>, ExpectedValuesError> {
        let chance = |key: &WorldKey| (key.rng(CHANCE).next_u32() >> 8) as f32 / (1 << 24) as f32;
        let simple = |opponent: Opponent, (key, seen): &(WorldKey, Observation)| {
            opponent.choose(seen.legal_moves(), chance(key)).expect("the player is to move")
        };
        let thinker = match self {
            Self::Simple(opponent) => return Ok(games.iter().map(|game| simple(*opponent, game)).collect()),
            Self::ExpectedValues(thinker) => thinker,
        };
        let with_choice: Vec<_> = games.iter().filter(|(_, seen)| seen.legal_moves().len() > 1).copied().collect();
        let decisions = thinker.timed(&with_choice, work)?;
        let mut decisions = decisions.iter();
        let choose = |(_, seen): &(WorldKey, Observation)| {
            if seen.legal_moves().len() == 1 {
                return seen.legal_moves().first();
            }
            let best = decisions.next().and_then(Decision::best);
            best.and_then(|action| Texas42Worlds::domino(seen, action))
        };
        Ok(games.iter().map(choose).collect::<Option<_>>().expect("a legal domino in every game"))
    }
}
