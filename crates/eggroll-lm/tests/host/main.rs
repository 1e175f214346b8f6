//! Language models on the host: against tensors, for populations, and trained.

mod architectures;
mod errors;
#[path = "../shared/fetched.rs"]
mod fetched;
mod forward;
mod generation;
mod learning;
#[path = "../shared/letters.rs"]
mod letters;
mod made;
mod population;
mod smollm2;
mod update;
