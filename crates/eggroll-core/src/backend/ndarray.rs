//! Burn's former CPU backend: the portable defaults.

use crate::ops::PerturbedOps;
use burn::backend::NdArray;

impl PerturbedOps for NdArray {}
