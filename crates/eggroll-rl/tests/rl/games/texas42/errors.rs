//! Errors say what was found, what was expected and what to do.

use super::support::domino;
use eggroll_rl::games::texas42::{GameError, Suit};
use std::error::Error;

#[test]
fn errors_are_errors_with_the_values_in_them() {
    let (player, domino) = (2, domino(6, 4));
    let cases: [(GameError, &str); 12] = [
        (GameError::Player(4), "there is no player 4: players are 0, 1, 2 and 3"),
        (GameError::Bid(29), "29 is no bid: bid 30 to 42 points, or 84 for two marks"),
        (GameError::HandSize { player, size: 6 }, "player 2 has 6 dominoes: deal seven"),
        (GameError::DealtTwice(domino), "6-4 is in two hands: deal it once"),
        (GameError::NotHeld { player, domino }, "player 2 cannot hold 6-4: play a domino of the hand"),
        (
            GameError::MustFollow { player, domino, led: Suit::Fives },
            "player 2 played 6-4 where fives were led, and can follow: play a domino of the suit",
        ),
        (GameError::PlayedTwice(domino), "6-4 was played before: play a domino of the hand"),
        (
            GameError::Revoked { player, domino, suit: Suit::Sixes },
            "player 2 played 6-4 of the sixes, but did not follow them before: check the history",
        ),
        (GameError::Over(domino), "6-4 was played after the last trick: deal a new hand"),
        (
            GameError::World { player },
            "the hand of player 2 does not agree with what was seen: use the hands of a sampled world",
        ),
        (
            GameError::NotToMove { player, mover: 3 },
            "player 2 decides, but player 3 is to move: ask the player whose turn it is",
        ),
        (
            GameError::NoWorlds { unseen: 18 },
            "no assignment of the 18 unseen dominoes agrees with voids and sizes of hands: check the history",
        ),
    ];
    for (error, text) in cases {
        let error: Box<dyn Error + Send + Sync> = error.into();
        assert_eq!(error.to_string(), text);
        assert!(error.source().is_none());
    }
}
