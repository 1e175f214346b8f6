//! What watches a run next to its page and its log of metrics, and when the run stops: options and endings.

use crate::Ending;
use eggroll::run::{Display, EarlyStoppingConfig, EsTraining, MetricTarget, StopReason, print_line};
use std::num::NonZeroUsize;

/// Options of what watches a run and when it stops.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct ObserverArgs {
    /// Show Burn's dashboard on a terminal.
    #[arg(long)]
    pub dashboard: bool,
    /// Also write the metrics to log.csv.
    #[arg(long)]
    pub csv: bool,
    /// Also write the metrics for TensorBoard, in the folder tensorboard.
    #[arg(long)]
    pub tensorboard: bool,
    /// Stop after N validations without a better result. Default: never.
    #[arg(long, value_name = "N")]
    pub patience: Option<NonZeroUsize>,
}

impl ObserverArgs {
    /// The names of these options.
    pub const NAMES: [&str; 4] = ["dashboard", "csv", "tensorboard", "patience"];

    /// The run with what watches it. Command lines refuse what the build does not have.
    pub fn watch(self, training: EsTraining) -> EsTraining {
        let training = training.with_display(if self.dashboard { Display::Dashboard } else { Display::Progress });
        #[cfg(feature = "csv")]
        let training = if self.csv { training.with_csv() } else { training };
        #[cfg(feature = "tensorboard")]
        let training = if self.tensorboard { training.with_tensorboard() } else { training };
        training
    }

    /// When the run stops early; a better result is a better value of `metric`.
    pub fn early_stopping(self, metric: MetricTarget) -> Option<EarlyStoppingConfig> {
        self.patience.map(|validations| EarlyStoppingConfig::new(metric, validations.get()))
    }

    /// How the run ended. Prints it, unless all generations are done.
    pub fn ending(self, stop: &StopReason, generation: u64) -> Ending {
        match stop {
            StopReason::Finished => Ending::Finished,
            StopReason::Early { .. } => {
                let patience = self.patience.map_or(0, NonZeroUsize::get);
                print_line!("stopped early after generation {generation}: no better result in {patience} validations");
                Ending::Finished
            }
            StopReason::Interrupted(_) | StopReason::OtherReplica => {
                print_line!("stopped after generation {generation}: continue with --resume");
                Ending::Stopped
            }
        }
    }
}
