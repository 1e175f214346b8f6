//! What a rollout kernel is made for: the sizes of a policy and an environment, and how units share the work.

use super::super::device::Limits;
use super::super::eligibility::Demand;
use super::super::geometry::units;
use crate::fused::device_rollout::{ChainActivation, DeviceEpisodes, Dynamics, Head};
use cubecl::client::Client;
use cubecl::prelude::*;

/// Most lots of a cube: each has one or two rows, and every row has its own unit for its environment.
const MOST_LOTS: usize = 16;
/// Most steps of a launch: short enough for every watchdog, and long enough to make launches rare.
const MOST_STEPS: usize = 256;
/// Products that one turn of a loop adds up.
pub(crate) const PRODUCTS: usize = 4;
/// Numbers of an episode's record before sums and state: return, length, and whether it is running.
pub(crate) const HEADER: usize = 3;

/// One layer, and where its values begin among all parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LayerPlan {
    pub d_input: usize,
    pub d_output: usize,
    pub weight: usize,
    pub bias: Option<usize>,
    /// Whether members' weights differ.
    pub weight_differs: bool,
    /// Whether members' biases differ.
    pub bias_differs: bool,
    pub activation: ChainActivation,
}

/// A rollout kernel.
///
/// A lot is one episode of a pair, or of the plain model; a cube takes some lots. A lot has a row for each member; the rows of all
/// first members precede the rows of all second ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RolloutPlan {
    pub layers: Vec<LayerPlan>,
    pub dynamics: Dynamics,
    pub head: Head,
    pub outputs: usize,
    pub normalizes: bool,
    /// Whether there are pairs: two rows for every lot.
    pub pairs: bool,
    /// Lots of a cube.
    pub lots: usize,
    pub units: u32,
}

impl RolloutPlan {
    pub(crate) fn new(client: &Client, layers: Vec<LayerPlan>, episodes: &DeviceEpisodes, pairs: bool) -> Self {
        let widest = layers.iter().map(|layer| layer.d_output).max().unwrap_or(1);
        let most = units(client, usize::MAX / 2) as usize;
        let lots = (most / widest.next_power_of_two()).clamp(1, MOST_LOTS);
        Self {
            layers,
            dynamics: episodes.dynamics.clone(),
            head: episodes.head,
            outputs: episodes.outputs,
            normalizes: episodes.scaling.is_some(),
            pairs,
            lots,
            units: units(client, lots * widest),
        }
    }

    /// Rows of a cube.
    pub(crate) fn rows(&self) -> usize {
        self.lots * if self.pairs { 2 } else { 1 }
    }

    /// Values of a row of the widest layer, the observation included.
    pub(crate) fn width(&self) -> usize {
        self.layers.iter().map(|layer| layer.d_output).fold(self.seen(), usize::max)
    }

    /// Values of an observation.
    pub(crate) fn seen(&self) -> usize {
        self.dynamics.observation().outputs().len()
    }

    /// Sums of a normalizer.
    pub(crate) fn sums(&self) -> usize {
        if self.normalizes { 2 * self.seen() + 1 } else { 0 }
    }

    /// Numbers of an episode's record.
    pub(crate) fn record(&self) -> usize {
        HEADER + self.sums() + self.dynamics.state_size()
    }

    /// What a launch asks for that makes `steps` steps, and reads and writes tensors of so many elements.
    pub(crate) fn demand(&self, elements: usize, steps: usize, repeat: usize) -> Demand {
        let shared_bytes = 4 * self.rows() * (2 * self.width() + 1);
        Demand { elements, tensors: 6, units: self.units, shared_bytes, turns: steps * self.turns(repeat) }
    }

    /// Turns of a unit's loops in a step.
    fn turns(&self, repeat: usize) -> usize {
        let layer = |layer: &LayerPlan| self.items(layer) * (1 + layer.d_input.div_ceil(PRODUCTS));
        2 + repeat + self.layers.iter().map(layer).sum::<usize>()
    }

    /// Outputs of a lot's rows that a unit computes.
    fn items(&self, layer: &LayerPlan) -> usize {
        (self.lots * layer.d_output).div_ceil(self.units as usize)
    }

    /// Steps of a launch; 0 if the device does not take one.
    pub(crate) fn steps(&self, limits: &Limits, repeat: usize) -> usize {
        ((limits.turns - 1) / self.turns(repeat)).min(MOST_STEPS)
    }

    pub(crate) fn cube_dim(&self) -> CubeDim {
        CubeDim::new_1d(self.units)
    }
}

/// The numbers of a launch.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Launch {
    /// Lots of all cubes.
    pub lots: usize,
    /// Episodes of a member.
    pub episodes: usize,
    /// Elements of all parameters of one pair.
    pub parameters: usize,
    pub first_pair: u32,
    pub first_step: u32,
    pub steps: u32,
    pub repeat: u32,
    pub time_limit: f32,
    /// Bounds of actions.
    pub low: f32,
    pub high: f32,
    /// Bound of normalized observations.
    pub seen_limit: f32,
    pub farthest: f32,
}
