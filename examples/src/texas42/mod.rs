//! Texas 42: the domino game with its rules, what a player knows of a hand, sampled worlds and a solver.
//!
//! Four players, 0 to 3, hold seven dominoes each of a double-six set; 0 and 2 are partners (side 0), and so are 1 and
//! 3 (side 1). The declarer names the trumps and leads the first trick. A trick is worth one point, and five dominoes
//! count: 5-0, 4-1 and 3-2 five points,
//! 5-5 and 6-4 ten; 42 points in all. The declarer's side makes the bid with at least as many points, and otherwise is
//! set. A hand is worth one mark, and two with the bid 84, which needs all tricks.
//!
//! A domino leads the trump suit if it is a trump, else the suit of its higher pips. Others follow the suit if they
//! can. The highest trump takes the trick, else the highest domino of the suit that was led: the double, then by the
//! pips on the other end. Trumps are a suit, the doubles, or none (follow me). Doubles belong to the suit of their
//! pips, unless they are trumps.
//!
//! - Rules: [`Domino`], [`DominoSet`], [`Suit`], [`Trumps`], [`Bid`], [`Contract`], [`Deal`], [`Trick`], [`Progress`],
//!   [`HandState`]
//! - Hidden information: [`Observation`], and [`Worlds`] that agree with it (determinizations)
//! - Perfect information: [`Solver`], and [`position`] for oracles
//! - Batches of games as tensors: [`TensorRules`], whose games are rows with the [`columns`] that [`Game`] writes
//! - A task for policies: [`Texas42`] against an [`Opponent`]
//! - Worlds as positions: [`Texas42Worlds`], for [`ExpectedValues`](eggroll::rl::ExpectedValues)
//!
//! There is no auction, and contracts such as nello, plunge and sevens are missing.
//!
//! Randomness is a closure that gives uniform words of 32 bits. The same words give the same deals and worlds.

pub mod columns;
mod contract;
mod deal;
mod domino;
mod domino_set;
mod environment;
mod error;
mod game;
mod observation;
mod positions;
mod progress;
mod solver;
mod state;
mod suit;
mod tensors;
mod trick;
mod trumps;
mod uniform;
mod worlds;

pub use contract::{Bid, Contract, HAND_POINTS, Outcome};
pub use deal::{Deal, HAND, PLAYERS};
pub use domino::{DOMINOES, Domino};
pub use domino_set::DominoSet;
pub use environment::{Opponent, Texas42};
pub use error::GameError;
pub use game::Game;
pub use observation::{Observation, Play};
pub use positions::{POSITION_SIZE, RELATIONS, ROLES, TOKEN_FEATURES, Texas42Worlds, position, token_features};
pub use progress::Progress;
pub use solver::Solver;
pub use state::HandState;
pub use suit::Suit;
pub use tensors::TensorRules;
pub use trick::Trick;
pub use trumps::Trumps;
pub use uniform::uniform_below;
pub use worlds::Worlds;
