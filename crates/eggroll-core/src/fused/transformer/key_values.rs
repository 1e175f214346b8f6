//! The keys and values of a sequence, and attention over them.

use crate::backend::cpu::{Attend, MAX_COLUMNS, place};

/// What attention makes of the products `q·k`, and how far back a row sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionScores {
    /// Factor of `q·k`.
    pub scale: f32,
    /// `c` of soft-capped scores `c·tanh(scale·q·k/c)` (Gemma-2, arXiv 2408.00118); `None` for `scale·q·k`.
    pub cap: Option<f32>,
    /// Newest positions that a row sees, its own among them: sliding-window attention (Beltagy et al., arXiv 2004.05150); `None` for all.
    pub window: Option<usize>,
}

impl AttentionScores {
    /// `q·k/√head_dim` over all positions.
    pub fn of_dimension(head_dim: usize) -> Self {
        Self { scale: 1.0 / (head_dim as f32).sqrt(), cap: None, window: None }
    }
}

/// Keys and values of one sequence in all layers, and how many positions they cover.
#[derive(Clone, Debug)]
pub struct KeyValues {
    heads: usize,
    head_dim: usize,
    capacity: usize,
    layers: usize,
    len: usize,
    /// `[layers, heads, capacity/32, head_dim, 32]`
    keys: Vec<f32>,
    /// `[layers, heads, capacity, head_dim]`, with slack for a vector behind.
    values: Vec<f32>,
}

impl KeyValues {
    /// Of no positions yet, with room for at least `capacity`.
    ///
    /// # Panics
    ///
    /// Panics if heads or their dimension are 0, or if no memory has as many values.
    #[track_caller]
    pub fn new(layers: usize, heads: usize, head_dim: usize, capacity: usize) -> Self {
        assert!(heads > 0 && head_dim > 0, "keys of {heads} heads of dimension {head_dim}");
        let padded = capacity.checked_next_multiple_of(MAX_COLUMNS);
        let size = padded.and_then(|size| [layers, heads, head_dim].into_iter().try_fold(size, usize::checked_mul));
        let addressable = size.filter(|size| *size <= isize::MAX as usize / 8);
        let (Some(capacity), Some(size)) = (padded, addressable) else {
            panic!(
                "{layers} layers of {heads} heads of dimension {head_dim} and {capacity} positions are more than memory holds"
            );
        };
        Self { heads, head_dim, capacity, layers, len: 0, keys: vec![0.0; size], values: vec![0.0; size + MAX_COLUMNS] }
    }

    /// Bytes of a sequence of that many positions.
    pub fn bytes(layers: usize, heads: usize, head_dim: usize, capacity: usize) -> usize {
        let positions = capacity.checked_next_multiple_of(MAX_COLUMNS).unwrap_or(usize::MAX);
        [layers, heads, head_dim, positions, 8].into_iter().fold(1, usize::saturating_mul)
    }

    /// Positions so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no positions yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Positions that it has room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// A sequence that begins with the positions of this one, with room for at least `capacity`.
    ///
    /// # Panics
    ///
    /// Panics if it has not room for them.
    #[track_caller]
    pub fn fork(&self, capacity: usize) -> Self {
        let mut fork = Self::new(self.layers, self.heads, self.head_dim, capacity);
        assert!(fork.capacity >= self.len, "a sequence of {} positions in room for {capacity}", self.len);
        let used = self.len.next_multiple_of(MAX_COLUMNS) * self.head_dim;
        let [from, to] = [self.capacity * self.head_dim, fork.capacity * self.head_dim];
        for head in 0..if used > 0 { self.layers * self.heads } else { 0 } {
            fork.keys[head * to..][..used].copy_from_slice(&self.keys[head * from..][..used]);
            fork.values[head * to..][..used].copy_from_slice(&self.values[head * from..][..used]);
        }
        fork.len = self.len;
        fork
    }

    /// Appends a layer's keys and values of new positions, `[rows, heads, head_dim]` each. They count once all layers have theirs
    /// ([`advance`](Self::advance)).
    ///
    /// # Panics
    ///
    /// Panics if they do not fit, or if there is no such layer.
    #[track_caller]
    pub fn write(&mut self, layer: usize, keys: &[f32], values: &[f32]) {
        let width = self.heads * self.head_dim;
        let rows = keys.len() / width;
        assert!(keys.len() == values.len() && keys.len() == rows * width, "keys of {width} elements: {}", keys.len());
        let end = self.len + rows;
        assert!(end <= self.capacity, "{end} positions where there is room for {}", self.capacity);
        assert!(layer < self.layers, "layer {layer} of {}", self.layers);
        let start = layer * self.capacity * width;
        let room = [&mut self.keys[start..], &mut self.values[start..]];
        place([keys, values], [self.heads, self.head_dim, self.capacity], self.len, room);
    }

    /// Attention of new rows, whose keys and values are [written](Self::write): `softmax(s(q·Kᵀ))·V` with the scores `s`, over positions up to the
    /// row's own, for each head. If there are more query heads than key heads, several share one (grouped-query attention, arXiv 2305.13245).
    ///
    /// # Shapes
    ///
    /// - queries, out: `[rows, query heads, head_dim]`
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit.
    #[track_caller]
    pub fn attend(
        &self,
        layer: usize,
        query_heads: usize,
        queries: &[f32],
        scores: AttentionScores,
        scratch: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        let width = query_heads * self.head_dim;
        assert!(
            query_heads > 0 && query_heads.is_multiple_of(self.heads),
            "{query_heads} heads of queries for {}",
            self.heads
        );
        let (given, wanted) = (queries.len(), out.len());
        assert!(
            given.is_multiple_of(width) && wanted == given,
            "{given} values of queries and {wanted} of out, in rows of {width}"
        );
        let Self { layers, capacity, .. } = *self;
        let positions = self.len + given / width;
        assert!(
            layer < layers && positions <= capacity,
            "layer {layer} of {layers}, {positions} positions in room for {capacity}"
        );
        let start = layer * self.heads * self.capacity * self.head_dim;
        Attend {
            queries,
            keys: &self.keys[start..],
            values: &self.values[start..],
            capacity: self.capacity,
            heads: query_heads,
            kv_heads: self.heads,
            head_dim: self.head_dim,
            first: self.len,
            window: scores.window.unwrap_or(usize::MAX),
            scale: scores.scale,
            cap: scores.cap,
            scratch,
            out,
        }
        .run();
    }

    /// Counts `rows` more positions.
    ///
    /// # Panics
    ///
    /// Panics if there is no room for them.
    #[track_caller]
    pub fn advance(&mut self, rows: usize) {
        assert!(self.len + rows <= self.capacity, "{} positions in room for {}", self.len + rows, self.capacity);
        self.len += rows;
    }
}
