//! Curves as SVG: the library's, under the names that the examples use.

pub use eggroll::run::report::{Color, Corner, LineChart, Picture, Scale, Series, grid};
