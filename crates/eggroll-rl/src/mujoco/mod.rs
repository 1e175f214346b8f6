//! Gymnasium's environments of the MuJoCo physics engine (feature `mujoco`).
//!
//! [`HalfCheetah`], [`Hopper`], [`Walker2d`] and [`Humanoid`] are environments of [burn-rl](burn_rl::Environment): a policy plays them on the host, a
//! population of policies through [`HostRollouts`](crate::HostRollouts). The library is linked; Gymnasium's files that describe the bodies are read at run
//! time. `scripts/mujoco-library` of the repository fetches both from PyPI; `docs/mujoco.md` says how to use them.

mod error;
mod half_cheetah;
mod hopper;
mod humanoid;
mod locomotion;
mod simulation;
mod walker2d;

pub use error::{ASSETS, MujocoError};
pub use half_cheetah::HalfCheetah;
pub use hopper::Hopper;
pub use humanoid::Humanoid;
pub use locomotion::Locomotion;
pub use walker2d::Walker2d;

use std::env;
use std::path::{Path, PathBuf};

/// The file that describes a body: the one given, or `file` of the folder that [`ASSETS`] names.
fn description(given: Option<&Path>, file: &'static str) -> Result<PathBuf, MujocoError> {
    let folder = || env::var_os(ASSETS).map(|folder| Path::new(&folder).join(file));
    let Some(path) = given.map(Path::to_owned).or_else(folder) else {
        return Err(MujocoError::Unnamed { file });
    };
    if path.is_file() { Ok(path) } else { Err(MujocoError::Missing { path }) }
}
