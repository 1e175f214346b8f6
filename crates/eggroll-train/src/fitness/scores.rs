//! What an evaluation may return: float scores, or integer ones, which no operation rounds; of a member that is evaluated alone
//! also a number on the host.

use super::Fitness;
use burn::tensor::{DType, Int, Tensor};
use eggroll_core::{counters, profile};

/// Scores of members, one for each, higher is better.
pub trait Scores: Send + Sized {
    /// The shape: `[members]`.
    fn shape(&self) -> Vec<usize>;

    /// Reads the scores of all chunks to the host at once.
    fn read(chunks: Vec<Self>) -> Fitness;
}

impl Scores for Tensor<1> {
    fn shape(&self) -> Vec<usize> {
        self.dims().to_vec()
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        Fitness::read(Tensor::cat(chunks, 0))
    }
}

impl Scores for Tensor<1, Int> {
    fn shape(&self) -> Vec<usize> {
        self.dims().to_vec()
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        counters::add_host_read();
        let scores = Tensor::cat(chunks, 0).cast(DType::I32);
        let waiting = profile::waiting();
        let data = scores.into_data();
        drop(waiting);
        Fitness::from(data.try_to_vec::<i32>().expect("cast to i32"))
    }
}

/// The score of one member: for [`evaluate_members`](crate::Population::evaluate_members).
impl Scores for f32 {
    fn shape(&self) -> Vec<usize> {
        vec![1]
    }

    fn read(members: Vec<Self>) -> Fitness {
        Fitness::from(members)
    }
}

/// The exact score of one member: for [`evaluate_members`](crate::Population::evaluate_members).
impl Scores for i32 {
    fn shape(&self) -> Vec<usize> {
        vec![1]
    }

    fn read(members: Vec<Self>) -> Fitness {
        Fitness::from(members)
    }
}
