//! The display of a run, and how it gets the terminal.

use super::config::EsTrainingConfig;
#[cfg(feature = "tui")]
use super::dashboard::Dashboard;
use super::machinery::TrainingParts;
use super::metric_names::MetricNames;
use super::progress::Progress;
use crate::terminal::Owner;
use burn::train::Interrupter;
use burn::train::metric::ItemLazy;
#[cfg(feature = "tui")]
use std::io::{IsTerminal, stdout};

/// What a run shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Display {
    /// Burn's dashboard if standard output is a terminal, otherwise the progress bar. The dashboard has the whole screen: lines printed
    /// with [`print_line!`](crate::print_line) meanwhile appear when it ends.
    #[default]
    Dashboard,
    /// A progress bar on standard error, if that is a terminal, below the lines that the program prints.
    Progress,
}

/// Takes the terminal for the display. The caller has no other step left that may fail.
#[cfg_attr(not(feature = "tui"), expect(unused_variables, reason = "there is no dashboard"))]
pub(super) fn take<V: ItemLazy + 'static>(
    display: Display,
    parts: TrainingParts<V>,
    config: &EsTrainingConfig,
    generation: u64,
    interrupter: &Interrupter,
    names: MetricNames,
) -> (TrainingParts<V>, Owner) {
    #[cfg(feature = "tui")]
    if display == Display::Dashboard && stdout().is_terminal() {
        let owner = Owner::dashboard();
        return (parts.renderer(Box::new(Dashboard::new(interrupter.clone(), names))), owner);
    }
    let bar = Progress::bar(config, generation);
    let parts = parts.renderer(Box::new(Progress::new(bar.clone(), config.clone())));
    (parts, Owner::bar(bar))
}
