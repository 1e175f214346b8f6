//! Loads weights of a file into a model of any modules; refuses NaN and infinity.

use burn::module::Module;
use burn::store::{ModuleSnapshot, ModuleStore};
use eggroll_core::{NonFiniteError, check_finite};
use std::path::{Path, PathBuf};

/// Why weights are not taken over from a file.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// Burn's store refuses the file: it is damaged, or of another model.
    #[error("{file}: {reason}")]
    Store {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// A tensor with values that are NaN or infinite.
    #[error("{file}: {tensor}")]
    NonFinite {
        /// The file.
        file: PathBuf,
        /// The tensor, as the model names it, and the number of such values.
        tensor: NonFiniteError,
    },
}

eggroll_core::debug_is_message!(WeightsError);

/// `model` with the weights of a store that reads `file`: Burn's `SafetensorsStore`, `PytorchStore` or `BurnpackStore`. Burn's own
/// `load_from` accepts NaN and infinity.
///
/// # Errors
///
/// [`WeightsError`] with the file. If values are not finite, it also names the tensor and their number.
///
/// # Example
///
/// ```no_run
/// use burn::store::SafetensorsStore;
/// use burn::tensor::Device;
/// use eggroll_nn::{MlpConfig, weights};
/// # fn main() -> Result<(), weights::WeightsError> {
/// let model = MlpConfig::new(vec![784, 64, 10]).init(&Device::flex());
/// let file = "model.safetensors";
/// let model = weights::load(model, &mut SafetensorsStore::from_file(file), file)?;
/// # drop(model);
/// # Ok(())
/// # }
/// ```
pub fn load<M: Module, S: ModuleStore>(mut model: M, store: &mut S, file: impl AsRef<Path>) -> Result<M, WeightsError> {
    let file = file.as_ref().to_owned();
    if let Err(error) = model.load_from(store) {
        return Err(WeightsError::Store { file, reason: error.to_string() });
    }
    match check_finite(&model) {
        Ok(()) => Ok(model),
        Err(tensor) => Err(WeightsError::NonFinite { file, tensor }),
    }
}
