//! What the examples of reinforcement learning are given.

use super::args::Protocol;
use super::settings::ControlSettings;
use crate::Failure;
use crate::interrupt::Signals;
use burn::module::Module;
use burn::tensor::Device;
use eggroll::nn::{Mlp, MlpConfig};
use eggroll::rl::{Policy, TensorEnvironment};
use eggroll::run::RunFolder;

/// What differs between the examples.
pub trait ControlTask {
    /// What is played.
    type Environment: TensorEnvironment + Clone;
    /// What plays.
    type Network: Module + Policy;

    /// The environment.
    fn environment(&self) -> Self::Environment;

    /// The network before training.
    fn network(&self, settings: &ControlSettings, device: &Device) -> Self::Network;

    /// Shows what the trained network does.
    ///
    /// # Errors
    ///
    /// What keeps it from being shown.
    fn show(&self, _network: &Self::Network, _settings: &ControlSettings, _folder: &RunFolder) -> Result<(), Failure> {
        Ok(())
    }
}

/// A perceptron of the environment's sizes.
pub fn perceptron(environment: &impl TensorEnvironment, settings: &ControlSettings, device: &Device) -> Mlp {
    let (inputs, outputs) = (environment.observation_size(), environment.actions().outputs());
    let widths: Vec<usize> = [inputs].iter().chain(&settings.hidden).chain(&[outputs]).copied().collect();
    MlpConfig::new(widths).with_activation(settings.activation()).init(device)
}

/// What all runs of a program share.
pub struct ControlSession {
    pub(super) device: Device,
    pub(super) protocol: Protocol,
    pub(super) signals: Signals,
}
