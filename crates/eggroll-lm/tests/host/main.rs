//! Language models on the host: against tensors, for populations, and trained.

mod errors;
#[path = "../shared/fetched.rs"]
mod fetched;
mod forward;
mod generation;
mod learning;
mod made;
mod population;
mod smollm2;
mod update;
