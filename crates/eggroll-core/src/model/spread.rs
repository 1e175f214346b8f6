//! The spread of parameters, which noise can be relative to.

use crate::model::entry::ParameterKind;
use crate::model::paths::{ModulePath, PathVisitor, visit_with_paths};
use crate::model::table::ParameterTable;
use crate::work::numbers;
use burn::module::{Module, Param};
use burn::tensor::{DType, Tensor, TensorData};
use rayon::prelude::*;

/// Values that one task sums up, fixed so that sums do not depend on the number of threads.
const PART: usize = 1 << 16;
/// Sums that one task adds up side by side.
const LANES: usize = 8;

/// A trained parameter that noise cannot be relative to.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error(
    "noise cannot be relative to the spread of \"{path}\" of shape {shape:?}: its values have the standard deviation \
     {spread:?}, expected a positive f32 number. Freeze it by role or name, or use absolute noise"
)]
pub struct SpreadError {
    /// The parameter.
    pub path: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Standard deviation of its values.
    pub spread: f64,
}

crate::debug_is_message!(SpreadError);

impl ParameterTable {
    /// The spread of every float parameter that is not frozen, by position; 1 for all others. It is the standard deviation of the
    /// values, `√(Σ(θ − mean)²/n)`, computed in f64 on the host. A parameter of equal values gets the smallest spread of the
    /// others. Examples are a bias of one value and the gains of a new normalization layer. The result depends on the values
    /// alone, not on the device or the number of threads. Reads every such parameter to the host.
    ///
    /// # Errors
    ///
    /// [`SpreadError`] of the first parameter whose spread is not finite or below the range of f32, or of the first one if all
    /// are 0.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::module::Param;
    /// use burn::tensor::{Device, Tensor};
    /// use eggroll_core::{EggrollConfig, ParameterTable};
    ///
    /// let noiser = EggrollConfig::new().init().unwrap();
    /// let model = Param::from_tensor(Tensor::<1>::from_floats([3.0, 5.0], &Device::flex()));
    /// let table = ParameterTable::new(&model, &noiser, &[]).unwrap();
    /// assert_eq!(table.measure_spreads(&model).unwrap(), [1.0]);
    ///
    /// let gains = model.map(|values| values.ones_like());
    /// assert_eq!(table.measure_spreads(&gains).unwrap_err().spread, 0.0);
    /// ```
    pub fn measure_spreads<M: Module>(&self, model: &M) -> Result<Vec<f64>, SpreadError> {
        let mut visitor = Spreads { table: self, found: vec![1.0; self.entries().len()] };
        visit_with_paths(model, &mut visitor);
        let spreads = self.trained(ParameterKind::Float).map(|(position, _)| visitor.found[position]);
        if let Some(smallest) = spreads.filter(|spread| *spread > 0.0).reduce(f64::min) {
            visitor.found.iter_mut().filter(|spread| **spread == 0.0).for_each(|spread| *spread = smallest);
        }
        let unusable = |spread: f64| !(spread > 0.0 && numbers::holds(spread));
        match visitor.found.iter().zip(self.entries()).find(|(spread, _)| unusable(**spread)) {
            Some((&spread, entry)) => Err(SpreadError { path: entry.path.clone(), shape: entry.shape.clone(), spread }),
            None => Ok(visitor.found),
        }
    }
}

struct Spreads<'a> {
    table: &'a ParameterTable,
    found: Vec<f64>,
}

impl PathVisitor for Spreads<'_> {
    fn visit_float<const D: usize>(&mut self, _path: &ModulePath, param: &Param<Tensor<D>>) {
        let Some(position) = self.table.position(param.id) else {
            return;
        };
        if self.table.entries()[position].is_trained_as(ParameterKind::Float) {
            self.found[position] = deviation(param.val().into_data());
        }
    }
}

/// Standard deviation of a tensor's values, in f64.
fn deviation(data: TensorData) -> f64 {
    match data.dtype() {
        DType::F32 => deviation_of(data.as_slice::<f32>().expect("f32"), |value| f64::from(*value)),
        _ => deviation_of(data.convert::<f64>().as_slice::<f64>().expect("f64"), |value| *value),
    }
}

fn deviation_of<T: Sync + PartialEq>(values: &[T], number: impl Fn(&T) -> f64 + Sync) -> f64 {
    // The mean of equal values may be rounded.
    if values.iter().all(|value| *value == values[0]) {
        return 0.0;
    }
    let center = mean(values, &number);
    mean(values, &|value: &T| (number(value) - center) * (number(value) - center)).sqrt()
}

fn mean<T: Sync>(values: &[T], term: &(impl Fn(&T) -> f64 + Sync)) -> f64 {
    let parts: Vec<f64> = values.par_chunks(PART).map(|part| sum(part, term)).collect();
    parts.into_iter().sum::<f64>() / values.len() as f64
}

/// In lanes, so that additions do not wait for each other.
fn sum<T>(values: &[T], term: &impl Fn(&T) -> f64) -> f64 {
    let (rows, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for row in rows {
        lanes.iter_mut().zip(row).for_each(|(lane, value)| *lane += term(value));
    }
    lanes.iter().sum::<f64>() + rest.iter().map(term).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn deviations_by_hand() {
        assert_eq!(deviation(TensorData::from([2.0f32, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])), 2.0);
        assert_eq!(deviation(TensorData::from([1.0f64, 1.0])), 0.0);
        assert!(deviation(TensorData::from([1.0f32, f32::INFINITY])).is_nan());
        // Far from 0: the mean is subtracted before squaring.
        assert_eq!(deviation(TensorData::from([16_777_214.0f32, 16_777_216.0])), 1.0);
    }

    /// More values than one task sums up, of half precision too, on one thread and on three.
    #[test]
    fn deviations_do_not_depend_on_threads() {
        let values: Vec<f32> = (0..3 * PART + 17).map(|i| (i as f32 * 0.37).sin()).collect();
        let data = TensorData::new(values.clone(), [values.len()]);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| deviation(data.clone()))
        };
        assert_eq!(on(1).to_bits(), on(3).to_bits());
        let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>();
        assert!((on(1) - (squares / values.len() as f64).sqrt()).abs() < 1e-12);
        let half = Tensor::<1>::from_floats([0.5, -0.5, 0.5, -0.5], &Device::flex()).cast(DType::BF16);
        assert_eq!(deviation(half.into_data()), 0.5);
    }
}
