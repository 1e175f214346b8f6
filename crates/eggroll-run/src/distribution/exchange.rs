//! The interface between a loop and an engine that connects replicas.

use crate::digest::portable_digest;
use crate::error::Error;
use burn::module::Module;
use burn::tensor::Device;
use eggroll_core::{InstructionSet, ParameterKind};
use eggroll_train::{EvolutionStrategy, Fitness, Population};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// The score of a slice of a population.
pub type Score<'a> = &'a mut dyn FnMut(&Population) -> Result<Fitness, Error>;

/// How replicas of one run share the evaluation of populations. Engines implement it: fixed ranks by a
/// [`Communicator`](super::Communicator), workers that come and go by `eggroll-nats`.
///
/// A loop calls [`begin`](Self::begin) once, then for every generation [`wants_checkpoint`](Self::wants_checkpoint), [`later_checkpoint`](Self::later_checkpoint),
/// [`evaluate`](Self::evaluate), [`after`](Self::after) and [`any_stops`](Self::any_stops), and at last [`end`](Self::end) or
/// [`fail`](Self::fail).
pub trait Exchange: Send {
    /// Whether this replica writes logs and checkpoints, validates, and decides when to stop.
    fn leads(&self) -> bool;

    /// Refuses replicas of another run.
    ///
    /// # Errors
    ///
    /// [`Error::Distribution`] or [`Error::Engine`] with the difference.
    fn begin(&mut self, start: &RunStart<'_>) -> Result<(), Error>;

    /// The fitness of all members, the same on all replicas. This replica scores some of them with the closure; with
    /// [credit](eggroll_train::Credit) by part, at least one pair, so that the rows of layers are known. `digest` computes the digest of
    /// the parameters. `None` if the others have left this replica behind, or need a checkpoint: the loop then asks for a [later
    /// one](Self::later_checkpoint), or [saves one](Self::wants_checkpoint).
    ///
    /// # Errors
    ///
    /// Errors of the score, [`Error::Distribution`], [`Error::Engine`].
    fn evaluate(
        &mut self,
        population: &Population,
        digest: &dyn Fn() -> String,
        score: Score<'_>,
    ) -> Result<Option<Fitness>, Error>;

    /// Compares replicas after an update, if a comparison is due.
    ///
    /// # Errors
    ///
    /// [`Error::Distribution`], [`Error::Engine`].
    fn after(&mut self, _generation: u64, _digest: &dyn Fn() -> String) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the run ends before the next generation; `this` says whether this replica wants that.
    ///
    /// # Errors
    ///
    /// [`Error::Distribution`], [`Error::Engine`].
    fn any_stops(&mut self, this: bool) -> Result<bool, Error>;

    /// A checkpoint to continue from, if the others have moved on from `generation`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Engine`].
    fn later_checkpoint(&mut self, _generation: u64) -> Result<Option<TempDir>, Error> {
        Ok(None)
    }

    /// Whether joining replicas need a checkpoint of `generation`: this replica, which leads, then saves one.
    ///
    /// # Errors
    ///
    /// [`Error::Engine`].
    fn wants_checkpoint(&mut self, _generation: u64) -> Result<bool, Error> {
        Ok(false)
    }

    /// Called after this replica, which leads, has saved a checkpoint of `generation`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Engine`].
    fn saved(&mut self, _generation: u64, _checkpoint: &Path) -> Result<(), Error> {
        Ok(())
    }

    /// Waits for all replicas.
    ///
    /// # Errors
    ///
    /// [`Error::Distribution`], [`Error::Engine`].
    fn wait(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Ends the run.
    ///
    /// # Errors
    ///
    /// [`Error::Distribution`], [`Error::Engine`].
    fn end(&mut self) -> Result<(), Error>;

    /// Tells the others that this replica cannot continue.
    fn fail(&mut self);
}

/// The common properties of a run's replicas, as text to compare.
pub struct RunStart<'a> {
    /// The generation at which this replica begins.
    pub generation: u64,
    /// The same from the run's first generation to its last: the digest of the data, the settings, the configuration, what is trained.
    pub of_run: Vec<(&'static str, String)>,
    /// Devices and instruction set, which affect the rounding of floats, if floats are trained.
    pub arithmetic: Option<String>,
    /// The same on replicas of this generation: digests of the parameters, all of which are read.
    pub of_generation: &'a dyn Fn() -> Vec<(&'static str, String)>,
}

/// The program's part of a run, in addition to strategy and model.
#[derive(Clone, Copy)]
pub(crate) struct OfProgram<'a> {
    /// The digest of the data.
    pub data: Option<&'a str>,
    /// Other settings that must be the same.
    pub settings: &'a Value,
}

/// The digests of parameters.
pub(super) fn digests<M: Module>(strategy: &EvolutionStrategy, model: &M) -> Vec<(&'static str, String)> {
    let masters = strategy.master_digest().map(|masters| ("set of f32 master weights", masters));
    masters.into_iter().chain([("set of parameters", portable_digest(model))]).collect()
}

impl<'a> RunStart<'a> {
    /// The start of a strategy and its model; the last argument computes their [`digests`].
    pub(super) fn of<M: Module>(
        strategy: &EvolutionStrategy,
        model: &M,
        of_program: OfProgram<'_>,
        of_generation: &'a dyn Fn() -> Vec<(&'static str, String)>,
    ) -> Self {
        let settings = strategy.config().of_updates();
        // The configuration without the choices of each process.
        let configuration = serde_json::to_string(&settings).unwrap_or_default();
        let entries = strategy.parameters().entries().iter();
        let trained =
            entries.map(|entry| format!("{} {:?} {:?} {:?}\n", entry.path, entry.shape, entry.kind, entry.role));
        let mut of_run = vec![
            ("digest of its data", of_program.data.unwrap_or("none").to_owned()),
            ("settings of the program", of_program.settings.to_string()),
            ("configuration", configuration),
            ("version of noise", settings.noiser.stream_version().to_string()),
            ("list of parameters", trained.collect()),
        ];
        // With equal configurations, all have them or none.
        if let Some(spreads) = strategy.parameters().spreads() {
            of_run.push(("set of spreads that noise is relative to", format!("{spreads:?}")));
        }
        if let Some(anchor) = strategy.anchor_digest() {
            of_run.push(("anchor of the decay", anchor.to_owned()));
        }
        let floats = strategy.parameters().trained(ParameterKind::Float).next().is_some();
        let arithmetic = floats.then(|| arithmetic(model.devices().iter()));
        Self { generation: strategy.generation(), of_run, arithmetic, of_generation }
    }
}

/// Determines the rounding of floats: the kind of device, and on hosts the instruction set.
fn arithmetic<'a>(devices: impl Iterator<Item = &'a Device>) -> String {
    let kinds = devices.map(|device| {
        let name = format!("{:?}", device.as_dispatch());
        name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
    });
    let mut kinds: Vec<String> = kinds.collect();
    kinds.sort();
    kinds.dedup();
    format!("{} ({:?})", kinds.join(", "), InstructionSet::detected().of_floats())
}
