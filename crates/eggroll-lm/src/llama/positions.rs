//! Positions of rows, in the form that layers use.

use crate::load::LayerAttention;
use burn::tensor::{Bool, Tensor};

/// Positions for layers that see all of them, and for layers with a window.
pub(super) struct Positions {
    pub full: LayerPositions,
    /// `None` if no layer has a window.
    pub windowed: Option<LayerPositions>,
}

/// Positions for a layer. Axes of length 1 are shared by rows and heads.
pub(super) struct LayerPositions {
    /// `[rows or 1, 1, length, head_dim/2]`
    pub cosines: Tensor<4>,
    /// `[rows or 1, 1, length, head_dim/2]`
    pub sines: Tensor<4>,
    /// `[rows or 1, 1, length, slots]`, true where a position must not look.
    pub hidden: Tensor<4, Bool>,
}

impl Positions {
    /// Positions of a layer.
    pub fn of(&self, kind: LayerAttention) -> &LayerPositions {
        self.windowed.as_ref().filter(|_| kind.windowed).unwrap_or(&self.full)
    }
}
