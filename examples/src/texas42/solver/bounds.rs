//! Bounds of a position without a search.

use super::search::{Hands, Search, points};

impl Search<'_> {
    /// Bounds of the points of side 0 before a lead, of the total that is left.
    pub(super) fn bounds(&self, hands: &Hands, leader: usize, total: i32) -> (i32, i32) {
        let mut sure = [self.highest_trumps(hands, 0), self.highest_trumps(hands, 1)];
        let side = leader % 2;
        sure[side] = sure[side].max(self.winners(hands, leader, total));
        (sure[0], total - sure[1])
    }

    /// What a side gets by its trumps above all trumps of the opponents. Each takes the trick in which it is played, or
    /// the partner does. So the side has all their points, and at least as many tricks as one of its players has of
    /// them.
    fn highest_trumps(&self, hands: &Hands, side: usize) -> i32 {
        let opponents = hands[1 - side] | hands[3 - side];
        let unbeaten = |hand: u32| self.select(hand & self.trumps, |beating| beating & opponents == 0);
        let (first, second) = (unbeaten(hands[side]), unbeaten(hands[side + 2]));
        first.count_ones().max(second.count_ones()) as i32 + points(first | second)
    }

    /// What the leader's side gets by the leader's winners, once the opponents have no trumps.
    ///
    /// Winners are the leader's trumps, and dominoes which no other beats in the suit that they lead. The leader leads
    /// the latter first. If the partner has to trump one, the partner has only trumps and takes all other tricks. Then
    /// each trump takes a trick, whoever leads.
    fn winners(&self, hands: &Hands, leader: usize, total: i32) -> i32 {
        let (hand, partner) = (hands[leader], hands[(leader + 2) % 4]);
        let opponents = hands[(leader + 1) % 4] | hands[(leader + 3) % 4];
        if opponents & self.trumps != 0 {
            return 0;
        }
        let others = opponents | partner & !self.trumps;
        let winners = hand & self.trumps | self.select(hand & !self.trumps, |beating| beating & others == 0);
        if winners == hand { total } else { winners.count_ones() as i32 + points(winners) }
    }

    /// Those dominoes for which the set of stronger ones, when they are led, passes.
    #[inline]
    fn select(&self, dominoes: u32, passes: impl Fn(u32) -> bool) -> u32 {
        let (mut left, mut selected) = (dominoes, 0);
        while left != 0 {
            let domino = left.trailing_zeros();
            if passes(self.beating(self.led(domino), domino)) {
                selected |= 1 << domino;
            }
            left &= left - 1;
        }
        selected
    }
}
