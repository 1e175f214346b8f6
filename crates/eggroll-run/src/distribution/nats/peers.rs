//! Which workers are there, and which slice each of them has. Nothing here touches the network.

use super::protocol::{Held, Status};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Workers that are told apart at most. All have shown their key.
const PEERS: usize = 4096;
/// How long a worker counts as heard of.
const MINUTE: Duration = Duration::from_secs(60);

struct Lease {
    held: Held,
    since: Instant,
}

struct Peer {
    heard: Instant,
    /// The slice that it was offered.
    lease: Option<Lease>,
    /// Whether it has something that it was not offered for this generation.
    busy: bool,
    /// What it has answered last.
    answered: Option<Held>,
    /// What it was offered and is others' now: it may still answer.
    late: Option<Held>,
}

/// The workers of a run.
pub(super) struct Peers {
    peers: BTreeMap<String, Peer>,
    /// How long a worker may be silent.
    silence: Duration,
    /// How long it may have a slice.
    longest: Duration,
}

impl Peers {
    pub fn new(silence: Duration, longest: Duration) -> Self {
        Self { peers: BTreeMap::new(), silence, longest }
    }

    /// A genuine message has come; `false` if there are too many workers, of which none is silent.
    pub fn hear(&mut self, node: &str, now: Instant) -> bool {
        if let Some(peer) = self.peers.get_mut(node) {
            peer.heard = now;
            return true;
        }
        if self.peers.len() >= PEERS {
            let silent = |peer: &Peer| now.duration_since(peer.heard) > self.silence.max(MINUTE);
            self.peers.retain(|_, peer| !silent(peer));
        }
        let fits = self.peers.len() < PEERS;
        if fits {
            self.peers
                .insert(node.to_owned(), Peer { heard: now, lease: None, busy: false, answered: None, late: None });
        }
        fits
    }

    /// What a worker says that it has. Returns the slice that it was offered and has lost.
    pub fn status(&mut self, node: &str, status: &Status, now: Instant) -> Option<Held> {
        let silence = self.silence;
        let peer = self.peers.get_mut(node)?;
        let answered = peer.answered;
        let mut held = status.held.iter().filter(|held| Some(**held) != answered);
        let lease = peer.lease.as_ref().map(|lease| lease.held);
        peer.busy = held.clone().any(|held| Some(*held) != lease);
        let keeps = lease.is_some_and(|lease| held.any(|held| *held == lease));
        // A sign of life that was sent before the offer had arrived.
        let is_young = peer.lease.as_ref().is_some_and(|lease| now.duration_since(lease.since) <= silence);
        let lost = if keeps || is_young && !status.leaving { None } else { peer.lease.take().map(|lease| lease.held) };
        if status.leaving {
            self.peers.remove(node);
        }
        lost
    }

    /// A worker has answered. Returns whether it was offered that.
    pub fn answered(&mut self, node: &str, held: Held) -> bool {
        let Some(peer) = self.peers.get_mut(node) else { return false };
        peer.answered = Some(held);
        peer.busy = false;
        let is_late = peer.late.take_if(|late| *late == held).is_some();
        peer.lease.take_if(|lease| lease.held == held).is_some() || is_late
    }

    /// A worker has lost its slice. Returns that.
    pub fn release(&mut self, node: &str) -> Option<Held> {
        self.peers.get_mut(node)?.lease.take().map(|lease| lease.held)
    }

    /// A worker that has nothing to do, of those that `may` have the slice.
    pub fn idle(&self, now: Instant, may: impl Fn(&str) -> bool) -> Option<String> {
        let idle = |peer: &Peer| peer.lease.is_none() && !peer.busy && now.duration_since(peer.heard) <= self.silence;
        self.peers.iter().find(|(node, peer)| idle(peer) && may(node)).map(|(node, _)| node.clone())
    }

    /// Whether a worker is there that `may` have the slice.
    pub fn any_alive(&self, now: Instant, may: impl Fn(&str) -> bool) -> bool {
        let alive = |peer: &Peer| now.duration_since(peer.heard) <= self.silence;
        self.peers.iter().any(|(node, peer)| alive(peer) && may(node))
    }

    /// A worker is offered a slice.
    pub fn lease(&mut self, node: &str, held: Held, now: Instant) {
        if let Some(peer) = self.peers.get_mut(node) {
            peer.lease = Some(Lease { held, since: now });
        }
    }

    /// Slices whose workers are silent or take too long: they are others' from now on.
    pub fn lost(&mut self, now: Instant) -> Vec<Held> {
        let (silence, longest) = (self.silence, self.longest);
        let lost = |peer: &mut Peer| {
            let is_silent = now.duration_since(peer.heard) > silence;
            let lease = peer.lease.take_if(|lease| is_silent || now.duration_since(lease.since) > longest)?;
            peer.busy = !is_silent;
            peer.late = Some(lease.held);
            Some(lease.held)
        };
        self.peers.values_mut().filter_map(lost).collect()
    }

    /// Slices that are out.
    pub fn out(&self) -> usize {
        self.peers.values().filter(|peer| peer.lease.is_some()).count()
    }

    /// Whether a worker has the slice.
    pub fn has(&self, slice: u32) -> bool {
        self.peers.values().any(|peer| peer.lease.as_ref().is_some_and(|lease| lease.held.slice == slice))
    }

    /// A generation is over: what is out is of no use.
    pub fn forget_leases(&mut self) {
        for peer in self.peers.values_mut() {
            if let Some(lease) = peer.lease.take() {
                peer.busy = true;
                peer.late = Some(lease.held);
            }
        }
    }

    /// Workers that were heard of in the last minute, of those that `may` have slices.
    pub fn heard_of(&self, now: Instant, may: impl Fn(&str) -> bool) -> usize {
        let is_heard = |peer: &Peer| now.duration_since(peer.heard) <= MINUTE;
        self.peers.iter().filter(|(node, peer)| is_heard(peer) && may(node)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(3);
    const LONGEST: Duration = Duration::from_secs(60);

    fn held(slice: u32) -> Held {
        Held { generation: 1, slice, attempt: 0 }
    }

    fn status(held: &[Held]) -> Status {
        Status { leaving: false, held: held.to_vec() }
    }

    fn any(_: &str) -> bool {
        true
    }

    #[test]
    fn a_worker_has_one_slice_at_a_time() {
        let (mut peers, now) = (Peers::new(SILENCE, LONGEST), Instant::now());
        assert_eq!(peers.idle(now, any), None);
        assert!(peers.hear("a", now) && peers.hear("b", now));
        assert_eq!(peers.idle(now, any).as_deref(), Some("a"));
        peers.lease("a", held(0), now);
        assert_eq!(peers.idle(now, any).as_deref(), Some("b"));
        assert_eq!(peers.idle(now, |node| node != "b"), None);
        assert!(peers.has(0) && !peers.has(1) && peers.out() == 1);
        assert!(!peers.answered("a", held(7)), "an answer to nothing");
        assert!(peers.answered("a", held(0)) && !peers.has(0));
        // A sign of life from before the answer.
        assert_eq!(peers.status("a", &status(&[held(0)]), now), None);
        assert_eq!(peers.idle(now, any).as_deref(), Some("a"));
    }

    #[test]
    fn slices_come_back() {
        let (mut peers, now) = (Peers::new(SILENCE, LONGEST), Instant::now());
        for (node, slice) in [("silent", 0), ("lost", 1), ("slow", 2), ("leaving", 3)] {
            peers.hear(node, now);
            peers.lease(node, held(slice), now);
        }
        assert_eq!(peers.status("lost", &status(&[]), now), None, "it may not have arrived");
        assert_eq!(peers.status("leaving", &Status { leaving: true, held: vec![] }, now), Some(held(3)));
        let later = now + SILENCE + Duration::from_millis(1);
        peers.hear("lost", later);
        peers.hear("slow", later);
        assert_eq!(peers.status("slow", &status(&[held(2)]), later), None);
        assert_eq!(peers.status("lost", &status(&[]), later), Some(held(1)));
        assert_eq!(peers.lost(later), [held(0)]);
        let late = now + LONGEST + Duration::from_millis(1);
        peers.hear("slow", late);
        assert_eq!(peers.lost(late), [held(2)]);
        assert!(!peers.answered("silent", held(1)) && peers.answered("silent", held(0)), "late, and once");
        assert!(!peers.answered("silent", held(0)));
        assert_eq!(peers.idle(late, any), None, "it is still busy");
        assert_eq!(peers.status("slow", &status(&[]), late), None);
        assert_eq!(peers.idle(late, any).as_deref(), Some("slow"));
    }

    /// No overflow, and nothing is ever lost.
    #[test]
    fn there_may_be_no_limit() {
        let (mut peers, now) = (Peers::new(Duration::MAX, Duration::MAX), Instant::now());
        peers.hear("a", now);
        peers.lease("a", held(0), now);
        assert!(peers.lost(now + Duration::from_secs(1 << 30)).is_empty());
    }

    #[test]
    fn silent_workers_make_room() {
        let (mut peers, now) = (Peers::new(SILENCE, LONGEST), Instant::now());
        assert!((0..PEERS).all(|number| peers.hear(&format!("{number}"), now)));
        assert!(!peers.hear("one more", now));
        assert!(peers.hear("7", now), "one that is known");
        let later = now + Duration::from_secs(61);
        assert!(peers.hear("one more", later));
        assert_eq!(peers.heard_of(later, any), 1);
        assert_eq!(peers.heard_of(later, |node| node != "one more"), 0);
    }
}
