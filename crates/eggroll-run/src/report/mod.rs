//! The page of a run: `report.html` in its folder.
//!
//! The learner ([`EsTraining`](crate::EsTraining)) writes the page of its run while it runs and when it ends. [`write()`] makes it from the
//! folder alone, for any program's run. [`Page`] is for a program's own pages.

mod curves;
mod facts;
mod page;
mod plot;
mod run_page;
mod settings;
mod writer;

pub use facts::Session;
pub use page::Page;
pub use run_page::{page, write};
pub use writer::Writer;

/// The page of a run in its folder.
pub const FILE: &str = "report.html";
