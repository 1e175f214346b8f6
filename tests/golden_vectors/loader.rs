//! Golden files as tensors: the only place that knows their layout and turns it into Burn's.

use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll::core::ops::explicit::{Entries, Factors};
use eggroll::core::ops::integer::integer_type;
use npyz::npz::NpzArchive;
use npyz::{Deserialize, NpyFile, Order};
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where the golden files are.
pub fn folder() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join("tests/golden")
}

/// The arrays of one file.
pub struct Golden {
    file: &'static str,
    arrays: BTreeMap<String, Array>,
}

impl Golden {
    /// Reads a file.
    #[track_caller]
    pub fn open(file: &'static str) -> Self {
        let mut archive = NpzArchive::open(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let names: Vec<String> = archive.array_names().map(str::to_owned).collect();
        let read = |name: String| {
            let array = archive.by_name(&name).expect("readable").expect("listed");
            Some((name, Array::read(array)?))
        };
        Self { file, arrays: names.into_iter().filter_map(read).collect() }
    }

    /// An array, if the file has it.
    pub fn get(&self, name: &str) -> Option<&Array> {
        self.arrays.get(name)
    }

    /// An array that the file must have.
    #[track_caller]
    pub fn array(&self, name: &str) -> &Array {
        self.get(name).unwrap_or_else(|| panic!("{} has no array \"{name}\"", self.file))
    }

    /// The values of an array.
    #[track_caller]
    pub fn values(&self, name: &str) -> &[f64] {
        &self.array(name).values
    }

    /// The only value of an array.
    #[track_caller]
    pub fn scalar(&self, name: &str) -> f64 {
        let values = self.values(name);
        assert_eq!(values.len(), 1, "{name} is not one value");
        values[0]
    }
}

/// One array: every type that the files hold is exact in f64.
#[derive(Clone, Debug)]
pub struct Array {
    /// Shape as in the file.
    pub shape: Vec<usize>,
    /// Values, row-major.
    pub values: Vec<f64>,
}

impl Array {
    /// `None` for text.
    fn read<R: Read>(file: NpyFile<R>) -> Option<Self> {
        fn values<T: Deserialize + Into<f64>, R: Read>(file: NpyFile<R>) -> Vec<f64> {
            file.data::<T>().expect("the type asked for").map(|value| value.expect("readable").into()).collect()
        }
        fn long<R: Read>(file: NpyFile<R>) -> Vec<f64> {
            let exact = |value: i64| {
                assert!(value.unsigned_abs() <= 1 << 53, "{value} is not exact in f64");
                value as f64
            };
            file.data().expect("the type asked for").map(|value| exact(value.expect("readable"))).collect()
        }
        assert!(file.order() == Order::C, "not row-major");
        let shape = file.shape().iter().map(|extent| *extent as usize).collect();
        let values = match file.dtype().descr().trim_matches('\'') {
            "<f4" => values::<f32, R>(file),
            "<f8" => values::<f64, R>(file),
            "|b1" => values::<bool, R>(file),
            "|i1" => values::<i8, R>(file),
            "|u1" => values::<u8, R>(file),
            "<i4" => values::<i32, R>(file),
            "<u4" => values::<u32, R>(file),
            "<i8" => long(file),
            text if text.starts_with("<U") => return None,
            other => panic!("arrays of {other} are not known"),
        };
        Some(Self { shape, values })
    }

    /// The array as a tensor of the same shape.
    pub fn tensor<const D: usize>(&self, device: &Device) -> Tensor<D> {
        let values: Vec<f32> = self.values.iter().map(|value| *value as f32).collect();
        Tensor::from_data(TensorData::new(values, self.shape.clone()), device)
    }

    /// The int8 values as a tensor of the same shape and of the device's type for them.
    pub fn integers<const D: usize>(&self, device: &Device) -> Tensor<D, Int> {
        let int8 = |value: &f64| {
            assert!(*value == f64::from(*value as i8), "{value} is no int8");
            *value as i8
        };
        let values: Vec<i8> = self.values.iter().map(int8).collect();
        Tensor::from_data(TensorData::new(values, self.shape.clone()), (device, integer_type(device)))
    }

    /// Tokens, or other indices, as a tensor of the same shape and of the device's ordinary integers.
    pub fn tokens<const D: usize>(&self, device: &Device) -> Tensor<D, Int> {
        Tensor::from_data(TensorData::new(self.indices(), self.shape.clone()), device)
    }

    /// Values that are whole numbers.
    pub fn indices(&self) -> Vec<i32> {
        self.values.iter().map(|value| *value as i32).collect()
    }

    /// The entries `indices` of the first axis, in that order.
    pub fn select(&self, indices: &[usize]) -> Self {
        let each = self.values.len() / self.shape[0];
        let entry = |index: &usize| self.values[index * each..(index + 1) * each].iter().copied();
        let mut shape = self.shape.clone();
        shape[0] = indices.len();
        Self { shape, values: indices.iter().flat_map(entry).collect() }
    }

    /// Entry `index` of the first axis, without that axis.
    pub fn at(&self, index: usize) -> Self {
        let Self { shape, values } = self.select(&[index]);
        Self { shape: shape[1..].to_vec(), values }
    }

    /// Entry `index` of the second axis, without that axis.
    pub fn at_second(&self, index: usize) -> Self {
        let [first, second, rest @ ..] = &self.shape[..] else {
            panic!("{:?} has no second axis", self.shape);
        };
        let flat = Self { shape: [&[first * second], rest].concat(), values: self.values.clone() };
        flat.select(&(0..*first).map(|i| i * second + index).collect::<Vec<_>>())
    }

    /// The last two axes swapped: weights `(out, in)` become Burn's `[d_input, d_output]`.
    pub fn flipped(&self) -> Self {
        let [outer @ .., rows, columns] = &self.shape[..] else {
            panic!("{:?} is no matrix", self.shape);
        };
        let element = |matrix: usize, row: usize, column: usize| self.values[(matrix * rows + row) * columns + column];
        let matrices = 0..outer.iter().product();
        let elements = matrices.flat_map(|m| (0..*columns).flat_map(move |c| (0..*rows).map(move |r| (m, r, c))));
        let values = elements.map(|(m, r, c)| element(m, r, c)).collect();
        Self { shape: [outer, &[*columns, *rows]].concat(), values }
    }

    /// Low-rank noise `(pairs, in + out, rank)`, the rows of `B` before those of `A`.
    pub fn factors(&self, d_input: usize, device: &Device) -> Factors {
        let both = self.flipped().tensor::<3>(device); // [pairs, rank, d_input + d_output]
        let d_output = both.dims()[2] - d_input;
        Factors { b: both.clone().narrow(2, 0, d_input), a: both.narrow(2, d_input, d_output) }
    }

    /// Dense noise of a vector `(pairs, n)`, or of a matrix `(pairs, out, in)` in the order of Burn's weight:
    /// `[pairs, elements]`.
    pub fn dense(&self, device: &Device) -> Tensor<2> {
        let noise = if self.shape.len() == 3 { self.flipped() } else { self.clone() };
        let pairs = noise.shape[0];
        let shape = vec![pairs, noise.values.len() / pairs];
        Self { shape, ..noise }.tensor(device)
    }
}

/// The entries of sparse noise of some members, in Burn's layout: rows are those of the input.
pub fn sparse_entries(golden: &Golden, members: &[usize], device: &Device) -> Entries {
    let of_members = |name| golden.array(name).select(members);
    Entries {
        rows: of_members("sparse_ib").indices(),
        columns: of_members("sparse_ia").indices(),
        values: of_members("sparse_vals").tensor(device),
    }
}

/// Noise of integer parameters, as operations hold it: `[pairs, elements]`.
impl Array {
    /// Low-rank noise `(pairs, in + out, rank)` of a weight: `B` as `[rank, d_input]`, then `A` as `[rank, d_output]`. Noise of
    /// rank 1 may come as `(pairs, in + out)`.
    pub fn integer_factors(&self, d_input: usize) -> Self {
        self.rows_of_factors([0..d_input, d_input..self.shape[1]])
    }

    /// Low-rank noise `(pairs, width + vocab, rank)` of an embedding, whose first rows are those of the width: here those of
    /// the vocabulary come first.
    pub fn integer_embedding_factors(&self, width: usize) -> Self {
        self.rows_of_factors([width..self.shape[1], 0..width])
    }

    /// Two parts of the rows of factors, each as `[rank, rows]`.
    fn rows_of_factors(&self, parts: [Range<usize>; 2]) -> Self {
        let (pairs, rows) = (self.shape[0], self.shape[1]);
        let rank = self.values.len() / (pairs * rows);
        let element = |pair: usize, row: usize, k: usize| self.values[(pair * rows + row) * rank + k];
        let mut values = Vec::with_capacity(self.values.len());
        for pair in 0..pairs {
            for part in parts.clone() {
                values.extend(
                    (0..rank).flat_map(|k| part.clone().map(move |row| (row, k))).map(|(r, k)| element(pair, r, k)),
                );
            }
        }
        Self { shape: vec![pairs, rank * rows], values }
    }

    /// Noise of a vector, `(pairs, n, 2)` or `(pairs, 2·n)` interleaved: two factors `[2, n]`.
    pub fn integer_vector(&self) -> Self {
        let (pairs, elements) = (self.shape[0], self.values.len() / self.shape[0]);
        let interleaved = Self { shape: vec![pairs, elements / 2, 2], values: self.values.clone() };
        Self { shape: vec![pairs, elements], values: interleaved.flipped().values }
    }
}

#[test]
fn noise_of_integers_is_reordered() {
    let array = |shape: &[usize]| {
        let len = shape.iter().product::<usize>() as u32;
        Array { shape: shape.to_vec(), values: (0..len).map(f64::from).collect() }
    };
    let factors = array(&[1, 3, 2]).integer_factors(1);
    assert_eq!((&factors.shape[..], &factors.values[..]), (&[1, 6][..], &[0.0, 1.0, 2.0, 4.0, 3.0, 5.0][..]));
    assert_eq!(array(&[1, 3]).integer_embedding_factors(1).values, [1.0, 2.0, 0.0]);
    assert_eq!(array(&[1, 3, 2]).integer_vector().values, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    assert_eq!(array(&[2, 2, 1]).at_second(1).values, [1.0, 3.0]);
}

#[test]
fn flipping_swaps_the_last_axes() {
    let array = Array { shape: vec![2, 2, 3], values: (0..12).map(f64::from).collect() };
    let flipped = array.flipped();
    assert_eq!(flipped.shape, [2, 3, 2]);
    assert_eq!(flipped.values, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0, 6.0, 9.0, 7.0, 10.0, 8.0, 11.0]);
    assert_eq!(flipped.flipped().values, array.values);
}
