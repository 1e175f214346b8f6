//! The transposition table of the solver.

/// Entries of a bucket.
const WAYS: usize = 4;

/// What is known of a position before a lead: bounds of its value, and the lead to try first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// The dominoes that are left, and the leader above them.
    key: u32,
    pub(super) lower: i8,
    pub(super) upper: i8,
    /// Index of a domino.
    pub(super) lead: u8,
    /// The deal that it belongs to. Of an empty entry 0.
    generation: u8,
}

/// An open-addressed table of fixed size, in buckets of four entries. Entries of one generation belong to one deal and
/// one trump, so that the dominoes that are left say who holds them.
#[derive(Clone, Debug)]
pub(super) struct TranspositionTable {
    entries: Vec<[Entry; WAYS]>,
    generation: u8,
    shift: u32,
}

impl TranspositionTable {
    /// A table of at least this many entries, a power of two.
    pub(super) fn new(capacity: usize) -> Self {
        let buckets = capacity.div_ceil(WAYS).clamp(2, 1 << 28).next_power_of_two();
        Self { entries: vec![[Entry::default(); WAYS]; buckets], generation: 1, shift: 32 - buckets.ilog2() }
    }

    /// Forgets all entries.
    pub(super) fn clear(&mut self) {
        if self.generation == u8::MAX {
            self.entries.fill([Entry::default(); WAYS]);
            self.generation = 0;
        }
        self.generation += 1;
    }

    #[inline]
    fn bucket(&self, key: u32) -> usize {
        // Multiplication by 2³² over the golden ratio spreads keys over the highest bits.
        (key.wrapping_mul(0x9e37_79b9) >> self.shift) as usize
    }

    #[inline]
    pub(super) fn get(&self, key: u32) -> Option<Entry> {
        self.entries[self.bucket(key)]
            .iter()
            .find(|entry| entry.key == key && entry.generation == self.generation)
            .copied()
    }

    /// Stores bounds over the entry of the same position, else an empty entry, else the entry with the fewest dominoes
    /// left, which is cheapest to search again.
    #[inline]
    pub(super) fn put(&mut self, key: u32, lower: i8, upper: i8, lead: u8) {
        let generation = self.generation;
        let worth = |entry: &Entry| match entry.generation == generation {
            true if entry.key == key => 0,
            true => 1 + (entry.key << 4).count_ones(),
            false => 1,
        };
        let bucket = self.bucket(key);
        if let Some(entry) = self.entries[bucket].iter_mut().min_by_key(|entry| worth(entry)) {
            *entry = Entry { key, lower, upper, lead, generation };
        }
    }
}
