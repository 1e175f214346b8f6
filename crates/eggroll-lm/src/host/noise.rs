//! The noise of some pairs for all matrices of a model.

use burn::module::ParamId;
use eggroll_core::scope::Perturbation;
use eggroll_core::transformer::Factors;

/// Factors of some pairs' low-rank noise, for every matrix of a model; a slot for each pair.
#[derive(Debug, Default)]
pub struct Noise(Vec<Option<Factors>>);

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
        Self(matrices.iter().map(factors).collect())
    }

    /// The factors of a matrix, if it is perturbed.
    pub fn of(&self, matrix: usize) -> Option<&Factors> {
        self.0.get(matrix)?.as_ref()
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
