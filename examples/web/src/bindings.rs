//! What JavaScript calls.

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(message: &str);
}

/// Panics are written to the console.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| error(&panic.to_string())));
}

/// [`crate::Trainer`]
#[wasm_bindgen]
pub struct Trainer(crate::Trainer);

#[wasm_bindgen]
impl Trainer {
    /// [`crate::Trainer::new`]
    #[wasm_bindgen(constructor)]
    pub fn new(file: &[u8], population: u32) -> Result<Trainer, JsError> {
        Ok(Self(crate::Trainer::new(file, population as usize)?))
    }

    /// [`crate::Trainer::generation`]
    #[wasm_bindgen(getter)]
    pub fn generation(&self) -> f64 {
        self.0.generation() as f64
    }

    /// [`crate::Trainer::step`]
    pub fn step(&mut self) -> Result<f64, JsError> {
        Ok(self.0.step()?)
    }

    /// [`crate::Trainer::set_population`]
    pub fn set_population(&mut self, population: u32) -> Result<(), JsError> {
        Ok(self.0.set_population(population as usize)?)
    }

    /// [`crate::Trainer::accuracy`]
    pub fn accuracy(&self) -> f64 {
        self.0.accuracy()
    }

    /// [`crate::Trainer::read`]
    pub fn read(&self, ink: &[u8], width: u32) -> Vec<f32> {
        self.0.read(ink, width as usize).to_vec()
    }
}

/// [`crate::draws_the_same_noise`]
#[wasm_bindgen]
pub fn draws_the_same_noise() -> bool {
    crate::draws_the_same_noise()
}
