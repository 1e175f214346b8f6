//! Matches: every deal is played twice, with the sides changed.

use crate::args::Naming;
use crate::hands::{Dealt, Hand, play};
use crate::players::{DecisionCost, Player};
use eggroll::rl::ExpectedValuesError;

/// The result of a match.
#[derive(Clone, Copy, Debug)]
pub struct Score {
    /// Share of marks that the first player won.
    pub share: f64,
    /// Half of the 95 % interval: 1.96 standard errors over deals. 1 for a single deal.
    pub interval: f64,
    /// Points a hand that the first player's side won more.
    pub points: f64,
}

/// What a match is played with.
#[derive(Clone, Copy, Debug)]
pub struct Match {
    pub seed: u64,
    /// Each is played twice.
    pub deals: usize,
    /// Hands side by side.
    pub at_once: usize,
    pub naming: Naming,
}

/// Plays a match. `None` if `goes_on`, which is asked between batches, ends it.
pub fn play_match(
    players: [&Player<'_>; 2],
    Match { seed, deals, at_once, naming }: Match,
    work: &mut DecisionCost,
    goes_on: impl Fn() -> bool,
) -> Result<Option<Score>, ExpectedValuesError> {
    let numbers: Vec<u32> = (0..deals as u32).collect();
    let (mut shares, mut points) = (vec![], 0.0);
    for deals in numbers.chunks(at_once.div_ceil(2)) {
        if !goes_on() {
            return Ok(None);
        }
        let both = deals.iter().flat_map(|&deal| [(deal, 0), (deal, 1)]);
        let (dealt, sides): (Vec<Dealt>, Vec<usize>) =
            both.map(|(deal, side)| (Dealt::new(seed, deal, 2 * deal + side as u32), side)).unzip();
        let mut hands: Vec<Hand> = match naming {
            Naming::Longest => dealt.into_iter().map(|dealt| dealt.hand(dealt.longest())).collect(),
            Naming::Player => named(players, &dealt, &sides, seed, work)?,
        };
        play(&mut hands, players, &sides, seed, work)?;
        for (hands, sides) in hands.chunks(2).zip(sides.chunks(2)) {
            let mut won = [0.0; 2];
            for (hand, &side) in hands.iter().zip(sides) {
                let outcome = hand.state.outcome().expect("a hand that is over");
                won[(outcome.side + side) % 2] += f64::from(outcome.marks);
                points += f64::from(hand.state.points()[side]) - f64::from(hand.state.points()[1 - side]);
            }
            shares.push(won[0] / (won[0] + won[1]));
        }
    }
    let count = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / count;
    let squares = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>();
    let interval = if shares.len() > 1 { 1.96 * (squares / (count - 1.0) / count).sqrt() } else { 1.0 };
    Ok(Some(Score { share: mean, interval, points: points / (2.0 * count) }))
}

/// Hands whose trumps the player of the declarer has named.
fn named(
    players: [&Player<'_>; 2],
    dealt: &[Dealt],
    sides: &[usize],
    seed: u64,
    work: &mut DecisionCost,
) -> Result<Vec<Hand>, ExpectedValuesError> {
    let declares = |(dealt, side): (&Dealt, &usize)| (dealt.side() + side) % 2;
    let turns: Vec<usize> = dealt.iter().zip(sides).map(declares).collect();
    let mut names = vec![];
    for (player, number) in players.into_iter().zip(0..) {
        let mine: Vec<Dealt> = dealt.iter().zip(&turns).filter(|(_, turn)| **turn == number).map(|(d, _)| *d).collect();
        names.push(player.name_trumps(&mine, seed, work)?.into_iter());
    }
    let hand = |(dealt, turn): (&Dealt, &usize)| dealt.hand(names[*turn].next().expect("a name for every deal"));
    Ok(dealt.iter().zip(&turns).map(hand).collect())
}
