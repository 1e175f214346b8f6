//! A network that learns to read handwritten digits by evolution, in a browser tab. `scripts/web` compiles it to WebAssembly and writes
//! the page; `page/worker.js` calls [`Trainer`].

#[cfg(target_family = "wasm")]
mod bindings;
mod digits;
mod drawing;
mod network;
mod noise_check;
mod trainer;

pub use digits::{Digits, DigitsError};
pub use drawing::centered;
pub use network::Network;
pub use noise_check::draws_the_same_noise;
pub use trainer::{Error, Trainer};
