//! Results of an evaluation: float scores, or exact integer scores, on a device or on the host.

use super::{Fitness, to_host};
use burn::tensor::kind::Basic;
use burn::tensor::{DType, Int, Tensor};
use std::fmt::Display;

/// Scores of members, one or several for each; higher is better.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a score of members",
    note = "return one score for each member: a Tensor<1>, a Tensor<1, Int>, a Vec<f32> or a Vec<i32>; convert f64 by `as f32`",
    note = "or return scores of parts: a Tensor<2> of [members, parts], or a Tensor<3> of [members, sequences, steps]",
    note = "a closure that returns a Result goes to try_evaluate, or try_evaluate_each"
)]
pub trait Scores: Send + Sized {
    /// The shape: `[members]`, `[members, tasks]` or `[members, sequences, steps]`.
    fn shape(&self) -> Vec<usize>;

    /// Reads the scores of all chunks to the host at once.
    ///
    /// # Panics
    ///
    /// Panics if a score does not fit [`Fitness`]: an integer of more than 32 bits, or a finite number outside f32.
    #[track_caller]
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

/// Scores of several tasks, or [parts](crate::Credit#parts), for each member, `[members, tasks]`.
impl Scores for Tensor<2> {
    fn shape(&self) -> Vec<usize> {
        self.dims().to_vec()
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        let (scores, tasks) = tasks_first(chunks);
        Fitness::read(scores).with_tasks(tasks)
    }
}

/// Scores of every step of sequences for each member, `[members, sequences, steps]`, as
/// [`token_cross_entropy`](crate::MemberChunk::token_cross_entropy) makes them: parts in order of time.
impl Scores for Tensor<3> {
    fn shape(&self) -> Vec<usize> {
        self.dims().to_vec()
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        let (parts, steps) = steps_as_parts(chunks);
        Tensor::<2>::read(parts).with_steps(steps)
    }
}

/// Exact scores of any integer type; their values must fit 32 bits.
impl Scores for Tensor<1, Int> {
    fn shape(&self) -> Vec<usize> {
        self.dims().to_vec()
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        let data = to_host(Tensor::cat(chunks, 0));
        // The values of all other types fit signed 64 bits.
        let scores: Vec<i32> = match data.dtype() {
            DType::U64 => data.iter::<u64>().enumerate().map(exact).collect(),
            _ => data.iter::<i64>().enumerate().map(exact).collect(),
        };
        Fitness::from(scores)
    }
}

/// Exact scores of several tasks, or parts, for each member, `[members, tasks]`.
impl Scores for Tensor<2, Int> {
    fn shape(&self) -> Vec<usize> {
        self.dims().to_vec()
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        let (scores, tasks) = tasks_first(chunks);
        Tensor::<1, Int>::read(vec![scores]).with_tasks(tasks)
    }
}

/// Exact scores of every step of sequences for each member, `[members, sequences, steps]`: parts in order of time.
impl Scores for Tensor<3, Int> {
    fn shape(&self) -> Vec<usize> {
        self.dims().to_vec()
    }

    fn read(chunks: Vec<Self>) -> Fitness {
        let (parts, steps) = steps_as_parts(chunks);
        Tensor::<2, Int>::read(parts).with_steps(steps)
    }
}

/// The scores `[tasks · members]` of chunks `[members, tasks]`, and the tasks.
fn tasks_first<K: Basic>(chunks: Vec<Tensor<2, K>>) -> (Tensor<1, K>, usize) {
    let scores = Tensor::cat(chunks, 0).transpose(); // [tasks, members]
    let ([tasks, _], count) = (scores.dims(), scores.shape().num_elements());
    (scores.reshape([count]), tasks)
}

/// The chunks `[members, sequences, steps]` as `[members, sequences · steps]`, and the steps.
fn steps_as_parts<K: Basic>(chunks: Vec<Tensor<3, K>>) -> (Vec<Tensor<2, K>>, usize) {
    let [_, sequences, steps] = chunks[0].dims();
    let parts = chunks.into_iter().map(|chunk| {
        let [members, ..] = chunk.dims();
        chunk.reshape([members, sequences * steps])
    });
    (parts.collect(), steps)
}

/// A score as an integer of 32 bits.
fn exact<T: TryInto<i32> + Copy + Display>((number, score): (usize, T)) -> i32 {
    score.try_into().unwrap_or_else(|_| {
        panic!(
            "score {number} is {score}: integer scores are from {} to {}; subtract what all members have in common, or return floats",
            i32::MIN,
            i32::MAX
        )
    })
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
