//! Saves and loads the state of a strategy.

use super::EvolutionStrategy;
use crate::config::RunningSettings;
use crate::error::RecordError;
use crate::population::RowCheck;
use crate::update::KeptTensors;
use burn::lr_scheduler::LrSchedulerRecord;
use burn::optim::OptimizerRecord;
use burn::tensor::DType;
use eggroll_core::{ParameterEntry, ParameterTable, numbers};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

/// The state of a strategy, as [`to_record`](EvolutionStrategy::to_record) gives it.
pub struct StrategyRecord {
    /// Generations told.
    pub generation: u64,
    /// State of the optimizer.
    pub optimizer: OptimizerRecord,
    /// State of the learning-rate schedule.
    pub schedule: LrSchedulerRecord,
    /// Settings that were changed while the strategy ran.
    pub settings: RunningSettings,
    /// [Spreads](ParameterTable::spreads) that noise is relative to, in the order of the table, with the population's factor if there is one; `None` for
    /// absolute noise.
    pub spreads: Option<Vec<f64>>,
    /// [Digest](EvolutionStrategy::anchor_digest) of the anchor; `None` without anchor decay.
    pub anchor: Option<String>,
    /// [f32 copies](crate::EvolutionStrategyConfig::with_master_weights) of half-precision parameters; `None` if there are none.
    pub masters: Option<KeptTensors>,
    /// The state of [transforms](crate::GradientTransform); `None` if there is none.
    pub transforms: Option<KeptTensors>,
    /// [Checks](EvolutionStrategy::row_checks) of the rows that parameters are given; `None` if nothing was checked.
    pub rows: Option<Vec<RowCheck>>,
}

impl EvolutionStrategy {
    /// The state of the strategy without the model. A checkpoint holds it, the configuration and the model.
    pub fn to_record(&self) -> StrategyRecord {
        StrategyRecord {
            generation: self.generation,
            optimizer: self.chain.optimizer.to_record(),
            schedule: self.scheduler.to_record(),
            settings: self.settings,
            spreads: self.table.spreads().map(<[f64]>::to_vec),
            anchor: self.anchor_digest().map(str::to_owned),
            masters: self.chain.masters_record(),
            transforms: self.chain.transforms_record(),
            rows: self.row_checks().map(<[RowCheck]>::to_vec),
        }
    }

    /// [`load_record`](Self::load_record) for a record from a file, which may be damaged.
    ///
    /// Burn panics on some records: such a panic is caught here, but the panic hook sees it.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if Burn cannot read the record, if this strategy has another [anchor](Self::try_with_anchor), or if spreads, master weights or states of
    /// transforms do not fit this strategy and model.
    pub fn try_load_record(mut self, record: StrategyRecord) -> Result<Self, RecordError> {
        record.settings.validate().map_err(|error| RecordError::Settings(error.to_string()))?;
        self.begin_as(record.spreads, record.anchor, (record.masters, record.transforms), record.rows)?;
        self.check_state(&record.optimizer)?;
        let (before, scheduler) = (self.chain.optimizer, self.scheduler);
        self.chain.optimizer = caught(|| before.load_record(record.optimizer)).map_err(RecordError::Optimizer)?;
        self.scheduler = caught(|| scheduler.load_record(record.schedule)).map_err(RecordError::Schedule)?;
        self.generation = record.generation;
        self.settings = record.settings;
        Ok(self)
    }

    /// Continues from a record of a strategy with the same configuration and model. Noise is relative to the spreads of the record. The
    /// anchor is this strategy's: the model given to [`try_init`](crate::EvolutionStrategyConfig::try_init) or
    /// [`try_with_anchor`](Self::try_with_anchor).
    ///
    /// # Panics
    ///
    /// Panics if the record has another anchor, other master weights or other transforms; may panic if no strategy has made it. See
    /// [`try_load_record`](Self::try_load_record).
    #[track_caller]
    pub fn load_record(mut self, record: StrategyRecord) -> Self {
        if let Err(error) =
            self.begin_as(record.spreads, record.anchor, (record.masters, record.transforms), record.rows)
        {
            panic!("{error}");
        }
        if let Err(error) = self.check_state(&record.optimizer) {
            panic!("{error}");
        }
        self.chain.optimizer = self.chain.optimizer.load_record(record.optimizer);
        self.scheduler = self.scheduler.load_record(record.schedule);
        self.generation = record.generation;
        self.settings = record.settings;
        self
    }

    /// Refuses states of parameters in f64, which Burn reads as f32.
    fn check_state(&self, optimizer: &OptimizerRecord) -> Result<(), RecordError> {
        let stepped_on = |_: &&ParameterEntry| !optimizer.is_empty() && self.chain.optimizer.steps_on_each();
        match self.table.first_trained(DType::F64).filter(stepped_on) {
            Some(entry) => {
                Err(RecordError::Optimizer(format!("\"{}\" is in f64, and Burn reads states as f32", entry.path)))
            }
            None => Ok(()),
        }
    }

    /// Takes over spreads and the states of the update's links; refuses another anchor than this strategy's.
    fn begin_as(
        &mut self,
        spreads: Option<Vec<f64>>,
        anchor: Option<String>,
        (masters, transforms): (Option<KeptTensors>, Option<KeptTensors>),
        rows: Option<Vec<RowCheck>>,
    ) -> Result<(), RecordError> {
        check_spreads(&self.table, spreads.as_deref())?;
        let parameters = self.table.entries().len();
        if let Some(found) = rows.as_ref().map(Vec::len).filter(|found| *found != parameters) {
            return Err(RecordError::Rows { found, parameters });
        }
        let found = self.anchor_digest();
        if found != anchor.as_deref() {
            let name = |digest: Option<&str>| digest.unwrap_or("none").to_owned();
            return Err(RecordError::Anchor { expected: name(anchor.as_deref()), found: name(found) });
        }
        self.chain.load(&self.table, masters, transforms)?;
        self.rows = rows.map(Arc::from);
        if self.table.spreads() != spreads.as_deref() {
            self.table = Arc::new(ParameterTable::clone(&self.table).with_spreads(spreads));
        }
        Ok(())
    }
}

/// Refuses spreads that noise of this table cannot be relative to.
fn check_spreads(table: &ParameterTable, spreads: Option<&[f64]>) -> Result<(), RecordError> {
    let refuse = |reason: String| Err(RecordError::Spreads(reason));
    let (Some(spreads), true) = (spreads, table.spreads().is_some()) else {
        return match (spreads, table.spreads()) {
            (None, None) => Ok(()),
            (Some(_), _) => refuse("the record has some, and the noise of this strategy is absolute".to_owned()),
            (None, _) => refuse("the record has none, and the noise of this strategy is relative to them".to_owned()),
        };
    };
    if spreads.len() != table.entries().len() {
        return refuse(format!("{} for the {} parameters of the model", spreads.len(), table.entries().len()));
    }
    match spreads.iter().zip(table.entries()).find(|(spread, _)| !(**spread > 0.0 && numbers::holds(**spread))) {
        Some((spread, entry)) => refuse(format!("{spread:?} for \"{}\", a number above 0 is needed", entry.path)),
        None => Ok(()),
    }
}

/// What `load` returns, or the text of its panic.
fn caught<T>(load: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(load)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text").to_owned()
    })
}
