//! What a run looks like: `report.html` in its folder, and curves as SVG.
//!
//! The learner ([`EsTraining`](crate::EsTraining)) writes the page of its run while it runs and when it ends. [`write()`] makes it again from
//! the folder alone, whoever has written the folder. [`Page`], [`LineChart`] and [`BarChart`] are for pages and pictures of a program's own.

mod bars;
mod chart;
mod curves;
mod facts;
mod lines;
mod page;
mod probe;
mod run_page;
mod scale;
mod settings;
mod writer;

pub use bars::BarChart;
pub use chart::{Color, Picture, grid};
pub use facts::{Session, commit};
pub use lines::{Corner, LineChart, Series};
pub use page::Page;
pub use probe::sigma_probe;
pub use run_page::{page, write};
pub use scale::Scale;
pub use writer::Writer;

/// The page of a run in its folder.
pub const FILE: &str = "report.html";
