//! Results of an evaluation: float scores, or exact integer scores, on a device or on the host.

use super::Fitness;
use burn::tensor::{DType, Int, Tensor};
use eggroll_core::{counters, profile};

/// Scores of members, one for each or several, higher is better.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a score of members",
    note = "return a Tensor<1>, a Tensor<1, Int>, a Tensor<2> of [members, tasks], a Vec<f32> or a Vec<i32>; convert f64 by `as f32`",
    note = "a closure that returns a Result goes to try_evaluate, or try_evaluate_each"
)]
pub trait Scores: Send + Sized {
    /// The shape: `[members]`, or `[members, tasks]`.
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

/// Scores of several tasks for each member, `[members, tasks]`: shaped task by task
/// ([`FitnessShaping::shape_tasks`](crate::FitnessShaping::shape_tasks)).
impl Scores for Tensor<2> {
    fn shape(&self) -> Vec<usize> {
        self.dims().to_vec()
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        let tasks_first = Tensor::cat(chunks, 0).transpose(); // [tasks, members]
        let ([tasks, _], count) = (tasks_first.dims(), tasks_first.shape().num_elements());
        Fitness::read(tasks_first.reshape([count])).with_tasks(tasks)
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

/// Scores that were computed on the host, one for each member of the chunk.
impl Scores for Vec<f32> {
    fn shape(&self) -> Vec<usize> {
        vec![self.len()]
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        Fitness::from(chunks.concat())
    }
}

/// Exact scores that were computed on the host, one for each member of the chunk.
impl Scores for Vec<i32> {
    fn shape(&self) -> Vec<usize> {
        vec![self.len()]
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        Fitness::from(chunks.concat())
    }
}

/// The score of one member: for [`evaluate_each`](crate::Population::evaluate_each).
impl Scores for f32 {
    fn shape(&self) -> Vec<usize> {
        vec![1]
    }

    fn read(members: Vec<Self>) -> Fitness {
        Fitness::from(members)
    }
}

/// The exact score of one member: for [`evaluate_each`](crate::Population::evaluate_each).
impl Scores for i32 {
    fn shape(&self) -> Vec<usize> {
        vec![1]
    }

    fn read(members: Vec<Self>) -> Fitness {
        Fitness::from(members)
    }
}
