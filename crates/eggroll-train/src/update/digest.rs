//! Digests of kept tensors.

use burn::tensor::Tensor;
use sha2::{Digest, Sha256};

/// SHA-256 over position, type and values, as hexadecimal digits; `None` if there are none. Reads them.
pub(super) fn digest(values: &[Option<Tensor<1>>]) -> Option<String> {
    let mut state = Sha256::new();
    for (position, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let data = value.clone().into_data();
        state.update(format!("{position} {:?} {} ", data.dtype(), data.num_elements()));
        state.update(data.as_bytes());
    }
    let any = values.iter().any(Option::is_some);
    any.then(|| state.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
