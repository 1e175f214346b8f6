//! A row of a chain: whose it is, and what its elements go through.

/// A function of single elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainActivation {
    /// `x`
    Identity,
    /// `max(x, 0)`
    Relu,
    /// `tanh(x)`
    Tanh,
}

/// The member that a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainRow {
    /// The slot that holds the noise of its pair.
    pub slot: u32,
    /// Whether it is the pair's second member, whose noise is subtracted.
    pub minus: bool,
}
