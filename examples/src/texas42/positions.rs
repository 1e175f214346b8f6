//! Positions in which everything is known, as integers for an oracle, and the sampler of their worlds.

use super::columns::{NOT_LED, leads};
use super::{
    DOMINOES, Domino, DominoSet, GameError, HAND, HandState, Observation, PLAYERS, Progress, Suit, Trumps, Worlds,
};
use burn::tensor::{Bool, Int, Tensor};
use eggroll::rl::{SampledWorlds, WorldKey, WorldSampler};
use rand::Rng;

/// Integers of the longest [`position`]: trumps, the suit that was led, and a token for each domino.
pub const POSITION_SIZE: usize = 2 + DOMINOES;
/// Roles of a domino in a [`position`].
pub const ROLES: usize = 12;
/// Relations of a domino in a [`position`], as bits.
pub const RELATIONS: usize = 11;
/// Numbers of [`token_features`].
pub const TOKEN_FEATURES: usize = 16;

const PLAYABLE: i32 = 1;
const HELD: i32 = 2;
const IN_THIS_TRICK: i32 = 5;
const WINNING: i32 = 8;

/// A state as integers, from the view of the player who plays next, the mover:
///
/// - the index of the trumps
/// - the index of the suit that was led, or 8
/// - a token for each domino that is not in an earlier trick: the mover's dominoes first, by index
///
/// A token is
///
/// ```text
/// domino + 28·(role + 12·relations)
/// ```
///
/// - roles 1 and 2: in the mover's hand, legal and not legal
/// - roles 3, 4 and 5: in the hands of the next player, the partner and the player before
/// - roles 6, 7 and 8: in the trick, from these three players
/// - roles 9, 10 and 11: in the trick, from these three players, and strongest so far
/// - relations, bits 0 to 3: whether the mover, the next player, the partner, the player before could follow if the
///   domino were led
/// - relations, bits 4 to 7: whether they could play a stronger one then
/// - relations, bit 8, of a legal domino: whether it would be the strongest of this trick so far
/// - relations, bit 9, of a legal domino: whether an opponent who plays after the mover could still beat it
/// - relations, bit 10, of a legal domino: whether the partner, playing after the mover, could
///
/// A domino in the trick has no relations.
///
/// There are at least seven tokens, with zeros, which are no tokens, at the end. Points that were won are not in a
/// position: they do not change what is still to win.
pub fn position(state: &HandState) -> Vec<i32> {
    position_of(state.hands(), state)
}

fn position_of(hands: [DominoSet; PLAYERS], progress: &Progress) -> Vec<i32> {
    let (trick, trumps, mover) = (progress.trick(), progress.contract().trumps(), progress.mover());
    let hands: [DominoSet; PLAYERS] = std::array::from_fn(|seat| hands[(mover + seat) % PLAYERS]);
    let legal = progress.legal(hands[0]);
    let mut position = Vec::with_capacity(POSITION_SIZE);
    position.extend([trumps.index() as i32, trick.led().map_or(NOT_LED, Suit::index) as i32]);
    let token = |domino: Domino, role: i32, relations: i32| {
        domino.index() as i32 + DOMINOES as i32 * (role + ROLES as i32 * relations)
    };
    // What each seat could play, by the suit that is led.
    let answers = Suit::ALL.map(|led| hands.map(|hand| trumps.following(led, hand)));
    for (hand, role) in hands.into_iter().zip(HELD..) {
        for domino in hand {
            let lead = trumps.led_suit(domino);
            let mut relations = as_lead(trumps, domino, answers[lead.index()]);
            let playable = role == HELD && legal.contains(domino);
            if playable {
                let led = trick.led().unwrap_or(lead);
                relations |= i32::from(trumps.strength(led, domino) > trick.strength()) << 8;
                let stronger = trumps.beating(led, domino);
                for (seat, answers) in answers[led.index()].iter().enumerate().take(PLAYERS - trick.len()).skip(1) {
                    relations |= i32::from(!(*answers & stronger).is_empty()) << if seat == 2 { 10 } else { 9 };
                }
            }
            position.push(token(domino, if playable { PLAYABLE } else { role }, relations));
        }
    }
    for (player, domino) in trick.plays() {
        let base = if trick.winner() == Some(player) { WINNING } else { IN_THIS_TRICK };
        position.push(token(domino, base + ((player + PLAYERS - mover) % PLAYERS) as i32, 0));
    }
    position.resize(position.len().max(2 + HAND), 0); // with room for a hand
    position
}

/// Which seats could follow if a domino were led, and play a stronger one, by what they could play.
fn as_lead(trumps: Trumps, domino: Domino, answers: [DominoSet; PLAYERS]) -> i32 {
    let led = trumps.led_suit(domino);
    let (members, stronger) = (trumps.members(led), trumps.beating(led, domino));
    let mut relations = 0;
    for (seat, answers) in answers.into_iter().enumerate() {
        let follows = i32::from(!(answers & members).is_empty());
        relations |= follows << seat | i32::from(!(answers & stronger).is_empty()) << (PLAYERS + seat);
    }
    relations
}

/// What dominoes are, for the tokens of an oracle: `[9 · 9 · 28, TOKEN_FEATURES]`. Each trumps, suit that was led (or
/// none) and domino have a row of [`TOKEN_FEATURES`] numbers:
///
/// - whether the domino belongs to each of the eight suits, trumps apart
/// - whether it is a trump
/// - its strength if it were led
/// - its strength in this trick
/// - whether it can take this trick
/// - whether it is a double
/// - its pips, higher and lower
/// - its points
pub fn token_features() -> Vec<f32> {
    leads().flat_map(|(trumps, led, domino)| features_of(trumps, led, domino)).collect()
}

fn features_of(trumps: Trumps, led: Option<Suit>, domino: Domino) -> [f32; TOKEN_FEATURES] {
    let flag = |flag: bool| f32::from(u8::from(flag));
    let mut features = [0.0; TOKEN_FEATURES];
    let (suits, rest) = features.split_at_mut(Suit::ALL.len());
    for (suit, belongs) in Suit::ALL.into_iter().zip(suits) {
        *belongs = flag(trumps.members(suit).contains(domino));
    }
    let lead = trumps.led_suit(domino);
    let strength = |led: Suit| f32::from(trumps.strength(led, domino)) / 16.0;
    let now = led.map_or(0.0, strength);
    rest.copy_from_slice(&[
        flag(trumps.is_trump(domino)),
        strength(lead),
        now,
        flag(now > 0.0),
        flag(domino.is_double()),
        f32::from(domino.high()) / 6.0,
        f32::from(domino.low()) / 6.0,
        f32::from(domino.points()) / 10.0,
    ]);
    features
}

/// Worlds of Texas 42: hands of the other players, exactly uniform over the hands that agree with an [`Observation`],
/// whose player is to move. A state's position is its [`position`]; an action is the place of a domino in the mover's
/// hand, by index of dominoes.
///
/// The moves that are weighed are those in which another player had a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Texas42Worlds;

impl Texas42Worlds {
    /// The domino of an action. `None` where the hand has no such place.
    pub fn domino(observation: &Observation, action: usize) -> Option<Domino> {
        observation.hand().iter().nth(action)
    }
}

impl WorldSampler for Texas42Worlds {
    type Observation = Observation;
    type Error = GameError;

    fn actions(&self) -> usize {
        HAND
    }

    fn position_size(&self) -> usize {
        POSITION_SIZE
    }

    fn sample(&self, observation: &Observation, key: WorldKey, sampled: &mut SampledWorlds) -> Result<(), GameError> {
        let (player, mover) = (observation.player(), observation.progress().mover());
        if player != mover {
            return Err(GameError::NotToMove(player, mover));
        }
        let worlds = Worlds::new(observation)?;
        for world in 0..sampled.count() {
            let mut rng = key.rng(world);
            let hands = worlds.sample(&mut || rng.next_u32());
            sampled.push(&position_of(hands, observation.progress()));
            if sampled.weighs_moves() {
                push_moves(observation, hands, sampled);
            }
        }
        Ok(())
    }

    fn legal(&self, positions: &Tensor<2, Int>) -> Tensor<2, Bool> {
        let role = positions.clone().narrow(1, 2, HAND).div_scalar(DOMINOES as i32).remainder_scalar(ROLES as i32);
        role.equal_elem(PLAYABLE)
    }
}

/// Plays the hand again in a world, and pushes what others chose.
fn push_moves(observation: &Observation, mut hands: [DominoSet; PLAYERS], sampled: &mut SampledWorlds) {
    for play in observation.plays() {
        hands[play.player].insert(play.domino);
    }
    let mut progress = Progress::new(observation.progress().contract());
    for play in observation.plays() {
        if play.player != observation.player() {
            let hand = hands[play.player];
            if progress.legal(hand).len() > 1 {
                let place = hand.iter().take_while(|domino| *domino != play.domino).count();
                sampled.push_move(&position_of(hands, &progress), place);
            }
        }
        hands[play.player].remove(play.domino);
        progress.play(play.domino);
    }
}
