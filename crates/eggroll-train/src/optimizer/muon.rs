//! Muon for matrices and AdamW for other parameters.

use super::EPSILON;
use burn::config::Config;
use burn::optim::{
    AdamW, AdamWConfig, AdamWState, AdjustLrFn, ModuleOptimizer, Muon, MuonConfig, MuonState, Optimizer, RecordState,
    StateSink, StateSource,
};
use burn::tensor::{Device, Tensor};

/// Settings of Muon, whose updates are orthogonal matrices: for parameters of two axes. All others, such as biases, gains and the kernels
/// of convolutions, go to AdamW. Both have the same learning rate, in AdamW's scale: by default matrices have
/// [`AdjustLrFn::MatchRmsAdamW`](burn::optim::AdjustLrFn), which adjusts it. `MuonConfig::new()` has `Original`, which needs about 0.02.
///
/// # References
///
/// Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024; Liu et al., "Muon is Scalable for LLM Training",
/// arXiv 2502.16982.
#[derive(Config, Debug)]
pub struct MuonAdamWConfig {
    /// For matrices; by default with steps as long as AdamW's.
    #[config(default = "MuonConfig::new().with_adjust_lr_fn(AdjustLrFn::MatchRmsAdamW)")]
    pub matrices: MuonConfig,
    /// For all other parameters; by default with an epsilon of 1e-8.
    #[config(default = "AdamWConfig::new().with_epsilon(EPSILON)")]
    pub others: AdamWConfig,
}

impl MuonAdamWConfig {
    /// The optimizer of a module's parameters.
    pub fn init(&self) -> ModuleOptimizer {
        ModuleOptimizer::from(MuonAdamW { matrices: self.matrices.build(), others: self.others.build() })
    }
}

#[derive(Clone)]
pub(super) struct MuonAdamW {
    pub matrices: Muon,
    pub others: AdamW,
}

#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "made of handles to tensors and moved, not kept in arrays")]
pub(super) enum MuonAdamWState<const D: usize> {
    Matrix(MuonState<D>),
    Other(AdamWState<D>),
}

impl<const D: usize> MuonAdamWState<D> {
    fn matrix(self) -> Option<MuonState<D>> {
        match self {
            Self::Matrix(state) => Some(state),
            Self::Other(_) => None,
        }
    }

    fn other(self) -> Option<AdamWState<D>> {
        match self {
            Self::Matrix(_) => None,
            Self::Other(state) => Some(state),
        }
    }
}

impl<const D: usize> RecordState for MuonAdamWState<D> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        match self {
            Self::Matrix(state) => state.state_flatten(prefix, out),
            Self::Other(state) => state.state_flatten(prefix, out),
        }
    }

    fn state_unflatten(prefix: &str, src: &mut StateSource, device: &Device) -> Option<Self> {
        match D {
            2 => MuonState::state_unflatten(prefix, src, device).map(Self::Matrix),
            _ => AdamWState::state_unflatten(prefix, src, device).map(Self::Other),
        }
    }
}

impl Optimizer for MuonAdamW {
    type State<const D: usize> = MuonAdamWState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        tensor: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<MuonAdamWState<D>>,
    ) -> (Tensor<D>, Option<MuonAdamWState<D>>) {
        if D == 2 {
            let (tensor, state) = self.matrices.step(rate, tensor, gradient, state.and_then(MuonAdamWState::matrix));
            (tensor, state.map(MuonAdamWState::Matrix))
        } else {
            let (tensor, state) = self.others.step(rate, tensor, gradient, state.and_then(MuonAdamWState::other));
            (tensor, state.map(MuonAdamWState::Other))
        }
    }

    fn to_device<const D: usize>(state: MuonAdamWState<D>, device: &Device) -> MuonAdamWState<D> {
        match state {
            MuonAdamWState::Matrix(state) => MuonAdamWState::Matrix(Muon::to_device(state, device)),
            MuonAdamWState::Other(state) => MuonAdamWState::Other(AdamW::to_device(state, device)),
        }
    }
}
