//! The page of a run, if this build has pages.

#[cfg(feature = "report")]
use crate::diagnostics::diagnose;
#[cfg(feature = "report")]
use crate::report::Writer;
use burn::module::Module;
use eggroll_train::{Credits, EvolutionStrategy, Forecast};
use std::path::Path;

/// Keeps `report.html` up to date.
pub(super) struct RunPage {
    #[cfg(feature = "report")]
    writer: Writer,
}

#[cfg_attr(not(feature = "report"), expect(unused_variables, reason = "there are no pages"))]
impl RunPage {
    pub fn new<M: Module>(folder: &Path, strategy: &EvolutionStrategy, model: &M) -> Self {
        Self {
            #[cfg(feature = "report")]
            writer: {
                let devices: Vec<String> = model.devices().iter().map(|device| format!("{device:?}")).collect();
                let writer = Writer::new(folder, devices.join(", "), strategy.generation());
                writer.with_parameters(strategy.parameters())
            },
        }
    }

    /// Records what parameters learn from in the first generation of this process, and the forecast of their estimates.
    pub fn began(&mut self, credits: &Credits, forecast: Option<Forecast>) {
        #[cfg(feature = "report")]
        {
            self.writer.set_credits(credits);
            if let Some(forecast) = forecast {
                self.writer.set_forecast(forecast);
            }
        }
    }

    /// Records the statistics of a saved model, which is read from the device for saving anyway.
    pub fn saved<M: Module>(&mut self, strategy: &EvolutionStrategy, model: &M) {
        #[cfg(feature = "report")]
        self.writer.set_statistics(strategy.generation(), diagnose(model));
    }

    pub fn update(&mut self, generation: u64) {
        #[cfg(feature = "report")]
        self.writer.update(generation);
    }

    pub fn finish(&mut self) {
        #[cfg(feature = "report")]
        self.writer.finish();
    }
}
