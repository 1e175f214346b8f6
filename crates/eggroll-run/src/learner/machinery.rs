//! burn-train's machinery without its loop.
//!
//! Its event processor and event store are made only inside [`SupervisedTraining::launch`], which hands them to a learning strategy. A
//! learning strategy must not borrow anything, but tasks do. So this strategy takes them and returns at once; the loop over generations
//! runs outside. Its model is a dummy without parameters, whose steps are never called.

use super::metrics::GenerationItem;
use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::module::{Devices, Module, ModuleMapper, ModuleVisitor};
use burn::optim::SgdConfig;
use burn::tensor::Device;
use burn::train::metric::ItemLazy;
use burn::train::metric::store::{Aggregate, EventStoreClient, Split};
use burn::train::renderer::CliMetricsRenderer;
use burn::train::{
    CloneEarlyStoppingStrategy, EventProcessorTraining, InferenceStep, Interrupter, Interruption, Learner,
    LearnerEvent, LearningResult, SupervisedLearningStrategy, SupervisedTraining, SupervisedTrainingEventProcessor,
    TrainLoader, TrainOutput, TrainStep, TrainingComponents, TrainingError, TrainingStrategy, ValidLoader,
};
use eggroll_core::sync::locked;
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A training whose components are taken out; metrics, loggers and the like are registered as usual.
pub(super) type TrainingParts<V> = SupervisedTraining<DummyModel<V>>;

/// An empty training.
pub(super) fn parts<V: ItemLazy + 'static>(folder: &Path) -> TrainingParts<V> {
    SupervisedTraining::new(folder, Arc::new(NoData), Arc::new(NoData)).with_application_logger(None)
}

/// Runs metrics, renderer, loggers and strategies.
pub(super) struct Machinery<V: ItemLazy + 'static> {
    processor: SupervisedTrainingEventProcessor<DummyModel<V>>,
    pub store: Arc<EventStoreClient>,
    pub interrupter: Interrupter,
    pub early_stopping: Option<Box<dyn CloneEarlyStoppingStrategy>>,
}

/// Why a run stopped that was told to.
pub(super) struct Ending {
    pub interruption: Option<Interruption>,
    pub error: Option<Arc<TrainingError>>,
}

impl<V: ItemLazy + 'static> Machinery<V> {
    /// Starts the registered components and takes them.
    pub fn start(parts: TrainingParts<V>) -> Self {
        let handover = Arc::new(Handover(Mutex::new(None)));
        let learner = Learner::new(DummyModel(PhantomData), SgdConfig::new().init(), 0.0);
        parts.with_training_strategy(TrainingStrategy::Custom(handover.clone())).launch(learner);
        let components = locked(&handover.0).take().expect("launch trains");
        let TrainingComponents { event_processor, event_store, interrupter, early_stopping, .. } = components;
        Self { processor: event_processor, store: event_store, interrupter, early_stopping }
    }

    /// Hands on an event of training; a failure of a metric interrupts the run.
    pub fn train(&mut self, event: LearnerEvent<GenerationItem>) {
        self.interrupter.fail_on_error(self.processor.process_train(event));
    }

    /// Hands on an event of a validation.
    pub fn valid(&mut self, event: LearnerEvent<V>) {
        self.interrupter.fail_on_error(self.processor.process_valid(event));
    }

    /// Waits until metrics and loggers have seen all events.
    pub fn flush(&mut self) {
        self.interrupter.fail_on_error(self.processor.flush());
        // The store has its own queue: an answer means that it is empty.
        self.store.find_metric("", 0, Aggregate::Mean, &Split::Train);
    }

    /// Ends the run: files are complete and the terminal is the program's again.
    pub fn finish(mut self) -> Ending {
        self.flush();
        // The dashboard resets the interrupter when training ends.
        let ending = Ending { interruption: self.interrupter.interruption(), error: self.interrupter.error() };
        self.train(LearnerEvent::End(None));
        self.flush();
        drop(self.processor.renderer());
        ending
    }
}

/// A learning strategy that gives the components away.
struct Handover<V: ItemLazy + 'static>(Mutex<Option<TrainingComponents<DummyModel<V>>>>);

impl<V: ItemLazy + 'static> SupervisedLearningStrategy<DummyModel<V>> for Handover<V> {
    fn train(
        &self,
        learner: Learner<DummyModel<V>>,
        _train: TrainLoader<DummyModel<V>>,
        _valid: ValidLoader<DummyModel<V>>,
        components: TrainingComponents<DummyModel<V>>,
    ) -> LearningResult<DummyModel<V>> {
        *locked(&self.0) = Some(components);
        let renderer = Box::new(CliMetricsRenderer::new());
        LearningResult { model: learner.model(), renderer, interrupted: None, error: None }
    }

    fn fit(
        &self,
        _components: TrainingComponents<DummyModel<V>>,
        _learner: Learner<DummyModel<V>>,
        _train: TrainLoader<DummyModel<V>>,
        _valid: ValidLoader<DummyModel<V>>,
        _starting_epoch: usize,
    ) -> (DummyModel<V>, SupervisedTrainingEventProcessor<DummyModel<V>>) {
        unreachable!("only train calls fit, and ours does not")
    }
}

/// A model of no parameters whose validation has outputs `V`.
pub(super) struct DummyModel<V>(PhantomData<fn() -> V>);

impl<V> Clone for DummyModel<V> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<V> fmt::Debug for DummyModel<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DummyModel")
    }
}

impl<V> fmt::Display for DummyModel<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl<V> Module for DummyModel<V> {
    /// One, because a launch looks at the first.
    fn collect_devices(&self, mut devices: Devices) -> Devices {
        devices.push(Device::default());
        devices
    }

    fn fork(self, _device: &Device) -> Self {
        self
    }

    fn to_device(self, _device: &Device) -> Self {
        self
    }

    fn visit<Visitor: ModuleVisitor>(&self, _visitor: &mut Visitor) {}

    fn map<Mapper: ModuleMapper>(self, _mapper: &mut Mapper) -> Self {
        self
    }

    fn train(self) -> Self {
        self
    }

    fn valid(&self) -> Self {
        self.clone()
    }

    fn materialize(self) -> Self {
        self
    }
}

impl<V> TrainStep for DummyModel<V> {
    type Input = Infallible;
    type Output = GenerationItem;

    fn step(&self, item: Infallible) -> TrainOutput<GenerationItem> {
        match item {}
    }
}

impl<V: ItemLazy + 'static> InferenceStep for DummyModel<V> {
    type Input = Infallible;
    type Output = V;

    fn step(&self, item: Infallible) -> V {
        match item {}
    }
}

/// A data loader of nothing.
struct NoData;

impl Iterator for NoData {
    type Item = Result<Infallible, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

impl DataLoaderIterator<Infallible> for NoData {
    fn progress(&self) -> Progress {
        Progress::new(0, 0, None)
    }
}

impl DataLoader<Infallible> for NoData {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<Infallible> + 'a> {
        Box::new(NoData)
    }

    fn num_items(&self) -> usize {
        0
    }

    fn to_device(&self, _device: &Device) -> Arc<dyn DataLoader<Infallible>> {
        Arc::new(NoData)
    }

    fn slice(&self, _start: usize, _end: usize) -> Arc<dyn DataLoader<Infallible>> {
        Arc::new(NoData)
    }
}
