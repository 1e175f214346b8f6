//! Burn's former CPU backend: the portable defaults.

#![expect(deprecated, reason = "Burn deprecates the backend; users still ask for it")]

use crate::ops::PerturbedOps;
use burn::backend::NdArray;

impl PerturbedOps for NdArray {}
