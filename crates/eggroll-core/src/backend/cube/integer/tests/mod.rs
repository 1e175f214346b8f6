//! Words and rows with gaps, on a device that may have neither tensors of int8 nor padded rows: kernels are given both by hand, and equal the
//! oracle.

mod gru;
mod product;
mod rows;
mod update;

use super::operands::{LaunchNoise, Operand};
use super::packed_int8::{Form, Packing};
use crate::backend::cube::device::tested;
use crate::ops::integer::IntegerMembers;
use crate::rng::key::PairRange;
use crate::rng::philox::philox4x32;
use crate::testing::reference::integer::MemberNoise;
use burn::backend::ops::IntTensorOps;
use burn::tensor::{TensorData, try_read_sync};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug)]
struct Layout {
    form: Form,
    /// Values between rows, in addition to values that fill a word.
    gap: usize,
}

const VALUES: Layout = Layout { form: Form::Value, gap: 0 };
const WORDS: Layout = Layout { form: Form::Word, gap: 0 };
const LAYOUTS: [Layout; 4] = [VALUES, Layout { form: Form::Value, gap: 3 }, WORDS, Layout { form: Form::Word, gap: 8 }];
/// Packings of words of four values.
const PACKED: [Packing; 2] = [Packing::Dot, Packing::Apart];

/// All values of int8, ±127 and −128 among them.
fn int8(len: usize, salt: u32) -> Vec<i8> {
    (0..len as u32).map(|i| philox4x32([i, salt, 2, u32::MAX], [0; 2])[0] as i8).collect()
}

/// As noise is: saturated.
fn saturated(len: usize, salt: u32) -> Vec<i8> {
    int8(len, salt).into_iter().map(|value| value.max(-127)).collect()
}

fn upload(values: Vec<i32>) -> CubeTensor {
    let len = values.len();
    CubeBackend::int_from_data(TensorData::new(values, [len]), &tested())
}

fn download(tensor: CubeTensor) -> Vec<i32> {
    let data = try_read_sync(CubeBackend::int_into_data(tensor)).expect("a device that is read at once");
    data.expect("the kernel runs").try_to_vec().expect("an I32 tensor")
}

/// Values of type I32 as int8.
fn read(tensor: CubeTensor) -> Vec<i8> {
    download(tensor).into_iter().map(|value| i8::try_from(value).expect("an int8 value")).collect()
}

/// Values that a kernel has written as words, to the first quarter of a tensor of type I32.
fn read_words(tensor: CubeTensor) -> Vec<i8> {
    let words = download(tensor);
    words[..words.len() / 4].iter().flat_map(|word| word.to_le_bytes().map(|byte| byte as i8)).collect()
}

/// Indices or flags.
fn indices(values: &[usize]) -> CubeTensor {
    upload(values.iter().map(|value| *value as i32).collect())
}

/// A matrix in memory, with other values in its gaps.
fn operand(values: &[i8], shape: [usize; 2], layout: Layout) -> Operand {
    let [rows, columns] = shape;
    let stride = match layout.form {
        Form::Value => columns + layout.gap,
        Form::Word => columns.next_multiple_of(4) + layout.gap,
    };
    let mut all = vec![77i8; rows * stride];
    for (row, values) in all.chunks_mut(stride).zip(values.chunks(columns)) {
        row[..columns].copy_from_slice(values);
    }
    let all = match layout.form {
        Form::Value => all.into_iter().map(i32::from).collect(),
        Form::Word => all.chunks(4).map(|four| i32::from_le_bytes(std::array::from_fn(|i| four[i] as u8))).collect(),
    };
    Operand { tensor: upload(all), shape, stride, form: layout.form }
}

/// Noise of one parameter: held from one pair before the first on.
struct KernelNoise {
    values: Vec<i8>,
    elements: usize,
    members: IntegerMembers,
}

impl KernelNoise {
    fn new(elements: usize, rank: usize, pairs: u32, salt: u32) -> Self {
        let members = IntegerMembers { skip: 1, rank, shift: 5, pairs: PairRange::new(3, pairs) };
        Self { values: saturated((pairs as usize + 2) * elements, salt), elements, members }
    }

    fn on(&self, layout: Layout) -> LaunchNoise {
        let shape = [self.values.len() / self.elements, self.elements];
        LaunchNoise { noise: Some((operand(&self.values, shape, layout), self.members)) }
    }

    fn member(&self, m: usize) -> MemberNoise<'_> {
        let row = self.members.skip + m / 2;
        MemberNoise {
            values: &self.values[row * self.elements..(row + 1) * self.elements],
            rank: self.members.rank,
            shift: self.members.shift,
            sign: if m.is_multiple_of(2) { 1 } else { -1 },
        }
    }
}
