//! The perturbed twins against `burn::nn` outside `evaluate`, and against Burn's own modules with explicit perturbed weights inside.

mod convolution;
mod embedding;
mod norm;
mod support;
