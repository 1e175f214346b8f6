//! The rules once more, as lists of dominoes written from the highest to the lowest. Slow, and without any code of the
//! library.

use eggroll_examples::texas42::{Domino, DominoSet, Suit, Trumps};

pub type Pips = (u8, u8);

pub fn pips(domino: Domino) -> Pips {
    (domino.high(), domino.low())
}

/// A suit of pips: the double, then by the other end.
fn with_pip(pip: u8) -> Vec<Pips> {
    let mut suit = vec![(pip, pip)];
    for other in (0..=6).rev().filter(|&other| other != pip) {
        suit.push((pip.max(other), pip.min(other)));
    }
    suit
}

pub fn trump_suit(trumps: Trumps) -> Vec<Pips> {
    match trumps {
        Trumps::FollowMe => vec![],
        Trumps::Suit(Suit::Doubles) => (0..=6).rev().map(|pip| (pip, pip)).collect(),
        Trumps::Suit(suit) => with_pip(suit as u8),
    }
}

/// The dominoes that follow a lead.
pub fn suit_of_lead(trumps: Trumps, lead: Pips) -> Vec<Pips> {
    let high = trump_suit(trumps);
    if high.contains(&lead) {
        return high;
    }
    let mut suit = with_pip(lead.0);
    suit.retain(|domino| !high.contains(domino));
    suit
}

pub fn legal(trumps: Trumps, lead: Option<Pips>, hand: &[Pips]) -> Vec<Pips> {
    let suit = lead.map_or(vec![], |lead| suit_of_lead(trumps, lead));
    let following: Vec<Pips> = hand.iter().copied().filter(|domino| suit.contains(domino)).collect();
    if following.is_empty() { hand.to_vec() } else { following }
}

/// The place of the domino that takes a trick: the first of the trumps, else of the suit that was led.
pub fn winner(trumps: Trumps, trick: &[Pips]) -> usize {
    let lists = [trump_suit(trumps), suit_of_lead(trumps, trick[0])];
    let best = lists.iter().flatten().find(|domino| trick.contains(domino)).expect("the lead is in its suit");
    trick.iter().position(|domino| domino == best).expect("it is in the trick")
}

/// Who played which domino.
pub fn players(trumps: Trumps, declarer: usize, plays: &[Domino]) -> Vec<(usize, Domino)> {
    let mut leader = declarer;
    let mut all = vec![];
    for trick in plays.chunks(4) {
        all.extend(trick.iter().enumerate().map(|(place, &domino)| ((leader + place) % 4, domino)));
        leader = (leader + winner(trumps, &trick.iter().copied().map(pips).collect::<Vec<_>>())) % 4;
    }
    all
}

/// The hands before the first lead, from those after plays.
pub fn first_hands(hands: [DominoSet; 4], plays: &[(usize, Domino)]) -> [DominoSet; 4] {
    let mut first = hands;
    for &(player, domino) in plays {
        first[player].insert(domino);
    }
    first
}

/// Whether all plays were legal, had the players these hands now.
pub fn all_legal(trumps: Trumps, hands: [DominoSet; 4], plays: &[(usize, Domino)]) -> bool {
    let mut hands = first_hands(hands, plays);
    plays.chunks(4).flat_map(|trick| trick.iter().map(|play| (trick[0].1, play))).all(|(lead, &(player, domino))| {
        let hand: Vec<Pips> = hands[player].iter().map(pips).collect();
        let lead = Some(pips(lead)).filter(|&lead| lead != pips(domino));
        hands[player].remove(domino);
        legal(trumps, lead, &hand).contains(&pips(domino))
    })
}
