//! Recurrent modules, attention and transformers against `burn::nn` and against explicit perturbed weights.

mod attention;
mod both_directions;
mod gru;
mod launches;
mod lstm;
mod minimal_gru;
mod oracle;
mod transformer;
