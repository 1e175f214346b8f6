//! Perturbed modules and graphs: outside `evaluate` against `burn::nn`, inside against models with the weights of one member,
//! which the f64 oracle forms.

mod adapters;
mod attention;
mod both_directions;
mod convolution;
mod defaults;
mod embedding;
mod graph;
mod gru;
mod launches;
mod linear;
mod lstm;
mod minimal_gru;
mod mlp;
mod norm;
mod support;
mod table;
mod transformer;
mod weights;
