//! The noise of some pairs for all matrices of a model.

use burn::module::ParamId;
use eggroll_core::ParameterTable;
use eggroll_core::scope::Perturbation;
use eggroll_core::sync::locked;
use eggroll_core::transformer::Factors;
use std::sync::Mutex;

/// Factors of some pairs' low-rank noise, for every matrix of a model; a slot for each pair. Or no noise, and a record of the inputs of
/// matrices.
#[derive(Debug, Default)]
pub struct Noise {
    factors: Vec<Option<Factors>>,
    /// By matrix, for recorded ones.
    given: Vec<Option<Mutex<Vec<f32>>>>,
}

impl Noise {
    /// Draws it.
    ///
    /// # Panics
    ///
    /// Panics if a matrix has noise that is not of low rank, or from a table.
    #[track_caller]
    pub fn draw(perturbation: &Perturbation, matrices: &[(ParamId, [usize; 2])], pairs: &[u32]) -> Self {
        let factors = |(id, shape): &(ParamId, [usize; 2])| {
            let position = perturbation.table.position(*id)?;
            let noise = perturbation.parameter(position);
            if noise.role == eggroll_core::Role::Frozen {
                return None;
            }
            let drawn = Factors::draw(&noise, *shape, pairs.iter().copied());
            let path = || &perturbation.table.entries()[position].path;
            Some(drawn.unwrap_or_else(|| {
                let (path, role, source) = (path(), noise.role, &noise.source);
                panic!("\"{path}\" has noise {role:?} from {source:?}, which is not drawn on the host")
            }))
        };
        Self { factors: matrices.iter().map(factors).collect(), given: Vec::new() }
    }

    /// No noise: records the inputs of trained matrices.
    pub fn record(table: &ParameterTable, matrices: &[(ParamId, [usize; 2])]) -> Self {
        let of = |(id, _): &(ParamId, [usize; 2])| table.is_trained(*id).then(Mutex::default);
        Self { factors: Vec::new(), given: matrices.iter().map(of).collect() }
    }

    /// Notes the input rows of a matrix.
    pub fn note_rows(&self, matrix: usize, rows: &[f32]) {
        if let Some(Some(given)) = self.given.get(matrix) {
            locked(given).extend_from_slice(rows);
        }
    }

    /// Whether a recorded matrix has no rows yet.
    pub fn lacks_rows(&self) -> bool {
        self.given.iter().flatten().any(|given| locked(given).is_empty())
    }

    /// The input rows of each matrix since the last call; empty for matrices that are not recorded.
    pub fn take_rows(&self) -> Vec<Vec<f32>> {
        let take = |given: &Mutex<Vec<f32>>| std::mem::take(&mut *locked(given));
        self.given.iter().map(|given| given.as_ref().map(take).unwrap_or_default()).collect()
    }

    /// The factors of a matrix, if it is perturbed.
    pub fn of(&self, matrix: usize) -> Option<&Factors> {
        self.factors.get(matrix)?.as_ref()
    }

    /// Bytes of one pair's noise.
    pub fn pair_bytes(perturbation: &Perturbation, matrices: &[(ParamId, [usize; 2])]) -> usize {
        let elements = |(id, shape): &(ParamId, [usize; 2])| {
            let position = perturbation.table.position(*id)?;
            Some(perturbation.parameter(position).role.noise_elements(shape))
        };
        4 * matrices.iter().filter_map(elements).sum::<usize>()
    }
}
