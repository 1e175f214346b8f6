//! What an evaluation may return: float scores, or integer ones, which no operation rounds; of a member that is evaluated alone
//! also a number on the host.

use super::Fitness;
use burn::tensor::{DType, Int, Tensor};
use eggroll_core::{counters, profile};

/// Scores of members, one for each or several, higher is better.
pub trait Scores: Send + Sized {
    /// The shape: `[members]`, or `[members, questions]`.
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

/// Scores of several questions for each member, `[members, questions]`: shaped question by question
/// ([`FitnessShaping::shape_questions`](crate::FitnessShaping::shape_questions)).
impl Scores for Tensor<2> {
    fn shape(&self) -> Vec<usize> {
        self.dims().to_vec()
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        let questions_first = Tensor::cat(chunks, 0).transpose(); // [questions, members]
        let count = questions_first.shape().num_elements();
        Fitness::read(questions_first.reshape([count]))
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
