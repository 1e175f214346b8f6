//! Sources of an operation's noise.

use crate::rng::TABLE_ADDRESS;
use crate::rng::key::{NoiseKey, PairRange};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType};
use burn::tensor::Tensor;

/// The source of the noise of an operation's pairs.
#[derive(Clone, Debug, Default)]
pub enum NoiseSource {
    /// Drawn where it is used: the stream of [`crate::rng`] in the distribution of the key. Nothing is held.
    #[default]
    Drawn,
    /// The same stream, drawn beforehand by [`noise`](super::noise): equal results.
    Cached {
        /// `[pairs, elements]`
        noise: Tensor<2>,
        /// The pair of the first row.
        first_pair: u32,
    },
    /// Runs of one table of noise, `[len]`, that all parameters, pairs and generations share: another stream. The noise of a
    /// pair is the run from [`table_start`] on. Runs may overlap: a table should be much longer than the noise of one pair.
    Table(Tensor<1>),
}

impl NoiseSource {
    /// Whether a pair's noise is its stream of [`crate::rng`], drawn or held.
    pub fn is_stream(&self) -> bool {
        !matches!(self, Self::Table(_))
    }
}

/// [`NoiseSource`] for backends.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "cube"))]
pub enum SourcePrimitive<B: Backend> {
    /// Drawn where it is used.
    Drawn,
    /// Drawn beforehand, from the given pair on.
    Cached(FloatTensor<B>, u32),
    /// Runs of a table.
    Table(FloatTensor<B>),
}

/// Runs start at multiples of this: a cache line of f32.
pub(crate) const TABLE_STEP: usize = 16;

/// First element of `pair`'s run of `elements` elements in a table of `len`:
///
/// `16·⌊w·n / 2³²⌋`, `n = ⌊(len − elements)/16⌋ + 1`,
///
/// where `w` is the first Philox word of the counter `(0, pair, generation, 2²⁴ + parameter)` under the key's seed.
///
/// # Panics
///
/// Panics if the table is shorter than `elements`.
#[track_caller]
pub fn table_start(key: NoiseKey, pair: u32, elements: usize, len: usize) -> usize {
    let runs = table_runs(elements, len);
    let [c0, c1, c2, c3] = key.counter(0, pair);
    let word = crate::rng::philox::philox4x32([c0, c1, c2, c3 | TABLE_ADDRESS], key.words())[0];
    TABLE_STEP * ((u128::from(word) * runs as u128) >> 32) as usize
}

/// 0 for baselines, 1 for all other pairs.
pub(crate) fn baseline_mask(key: NoiseKey, pairs: PairRange) -> Vec<f32> {
    let loud = |pair| if key.is_baseline(pairs.first + pair) { 0.0 } else { 1.0 };
    (0..pairs.count).map(loud).collect()
}

/// Number of places where a run may start.
#[track_caller]
pub(crate) fn table_runs(elements: usize, len: usize) -> usize {
    assert!(elements <= len, "the noise table has {len} elements, fewer than the {elements} of one pair's noise");
    (len - elements) / TABLE_STEP + 1
}

impl NoiseSource {
    pub(crate) fn into_primitive(self) -> SourcePrimitive<Dispatch> {
        match self {
            Self::Drawn => SourcePrimitive::Drawn,
            Self::Cached { noise, first_pair } => SourcePrimitive::Cached(noise.into_dispatch(), first_pair),
            Self::Table(table) => SourcePrimitive::Table(table.into_dispatch()),
        }
    }

    /// Panics if the source does not hold the noise of `pairs`, `elements` each.
    #[track_caller]
    pub(crate) fn check(&self, pairs: PairRange, elements: usize) {
        match self {
            Self::Drawn => {}
            Self::Table(table) => {
                table_runs(elements, table.dims()[0]);
            }
            Self::Cached { noise, first_pair } => {
                let [held, each] = noise.dims();
                let end = u64::from(*first_pair) + held as u64;
                assert!(
                    each == elements
                        && *first_pair <= pairs.first
                        && u64::from(pairs.first) + u64::from(pairs.count) <= end,
                    "the cached noise {:?} of pairs {first_pair}..{end} is not that of pairs {}..{} with {elements} elements",
                    noise.dims(),
                    pairs.first,
                    u64::from(pairs.first) + u64::from(pairs.count)
                );
            }
        }
    }
}
