//! Language models on tensors and on the host, for populations and for single members.

mod rwkv7;
