//! Language models on the host: against tensors, for populations, and trained.

mod errors;
mod forward;
mod generation;
mod learning;
mod made;
mod population;
mod smollm2;
mod update;
