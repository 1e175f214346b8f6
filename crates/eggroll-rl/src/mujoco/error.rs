//! Errors before a simulation runs.

use std::path::PathBuf;

/// Environment variable that names the folder of Gymnasium's descriptions: `gymnasium/envs/mujoco/assets` of its wheel.
pub const ASSETS: &str = "EGGROLL_MUJOCO_ASSETS";

/// Errors of MuJoCo's environments.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MujocoError {
    /// Nothing says where a description is.
    #[error(
        "where is {file}? Give its path, or the folder that holds it as {ASSETS}: it is part of Gymnasium's wheel, which \
         scripts/mujoco-library fetches"
    )]
    Unnamed {
        /// The file's usual name.
        file: &'static str,
    },
    /// A description that is not there.
    #[error("{path}: no such file. It is part of Gymnasium's wheel, which scripts/mujoco-library fetches")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A description that MuJoCo refuses.
    #[error("{path}: {reason}")]
    Description {
        /// The file.
        path: PathBuf,
        /// MuJoCo's message.
        reason: String,
    },
    /// A description of another body.
    #[error(
        "{path} has {found:?} positions, velocities and actuators, but {environment} has {expected:?}: it describes another body"
    )]
    OtherBody {
        /// The file.
        path: PathBuf,
        /// The environment that was to use it.
        environment: &'static str,
        /// Positions, velocities and actuators of the environment.
        expected: [usize; 3],
        /// Positions, velocities and actuators of the file.
        found: [usize; 3],
    },
}

eggroll_core::debug_is_message!(MujocoError);
