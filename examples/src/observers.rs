//! What watches a run next to its page and its log of metrics: Burn's dashboard, and logs for other programs.

use eggroll::run::{Display, EsTraining};

/// Options of what watches a run.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct ObserverArgs {
    /// Show Burn's dashboard on a terminal.
    #[arg(long)]
    pub dashboard: bool,
    /// Write the metrics to log.csv too.
    #[arg(long)]
    pub csv: bool,
    /// Write the metrics for TensorBoard too, in the folder tensorboard of the output folder.
    #[arg(long)]
    pub tensorboard: bool,
}

impl ObserverArgs {
    /// The names of these options.
    pub const NAMES: [&str; 3] = ["dashboard", "csv", "tensorboard"];

    /// The run with what watches it. Command lines refuse what the build does not have.
    pub fn watch(self, training: EsTraining) -> EsTraining {
        let training = training.with_display(if self.dashboard { Display::Dashboard } else { Display::Progress });
        #[cfg(feature = "csv")]
        let training = if self.csv { training.with_csv() } else { training };
        #[cfg(feature = "tensorboard")]
        let training = if self.tensorboard { training.with_tensorboard() } else { training };
        training
    }
}
