//! The job that this process was started in.

use eggroll_train::{Alone, Communicator, DistributionError};

/// The ranks of the job that started this process, `mpirun` or `srun` with several of them; otherwise [`Alone`].
///
/// # Errors
///
/// [`DistributionError::Transport`] if this process cannot join, also if it is built without feature `mpi`: unconnected ranks would
/// write the same files.
pub fn detect() -> Result<Box<dyn Communicator>, DistributionError> {
    match job_size(|name| std::env::var(name).ok()?.parse().ok()) {
        None | Some(0 | 1) => Ok(Box::new(Alone)),
        Some(size) => join(size),
    }
}

/// The number of ranks of the job, from the variables of Open MPI, MPICH and Slurm.
fn job_size(variable: impl Fn(&str) -> Option<usize>) -> Option<usize> {
    let slurm = variable("PMIX_RANK").and_then(|_| variable("SLURM_NTASKS"));
    variable("OMPI_COMM_WORLD_SIZE").or_else(|| variable("PMI_SIZE")).or(slurm)
}

#[cfg(feature = "mpi")]
fn join(_size: usize) -> Result<Box<dyn Communicator>, DistributionError> {
    Ok(Box::new(super::Mpi::initialize()?))
}

#[cfg(not(feature = "mpi"))]
fn join(size: usize) -> Result<Box<dyn Communicator>, DistributionError> {
    let reason = format!("this process is one of {size} ranks, but the program was built without the feature mpi");
    Err(DistributionError::Transport { engine: "MPI", reason })
}

#[cfg(test)]
mod tests {
    use super::job_size;

    #[test]
    fn launchers() {
        let with =
            |set: &[(&str, usize)]| job_size(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| *value));
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("OMPI_COMM_WORLD_SIZE", 4)]), Some(4));
        assert_eq!(with(&[("PMI_SIZE", 3)]), Some(3));
        assert_eq!(with(&[("PMIX_RANK", 0), ("SLURM_NTASKS", 2)]), Some(2));
        assert_eq!(with(&[("SLURM_NTASKS", 8)]), None, "no step of srun with MPI");
    }
}
