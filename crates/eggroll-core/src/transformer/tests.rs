//! Products, attention and rows against plain loops.
