//! Golden files as tensors: the only place that knows their layout and turns it into Burn's.

use burn::tensor::{Device, Tensor, TensorData};
use eggroll::core::ops::explicit::Factors;
use npyz::npz::NpzArchive;
use npyz::{NpyFile, Order};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where the golden files are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
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
            (name, Array::read(array))
        };
        Self { file, arrays: names.into_iter().map(read).collect() }
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
    fn read<R: Read>(file: NpyFile<R>) -> Self {
        assert!(file.order() == Order::C, "not row-major");
        let shape = file.shape().iter().map(|extent| *extent as usize).collect();
        let file = match file.try_data::<f32>() {
            Ok(data) => return Self { shape, values: data.map(|value| f64::from(value.expect("f32"))).collect() },
            Err(file) => file,
        };
        let file = match file.try_data::<f64>() {
            Ok(data) => return Self { shape, values: data.map(|value| value.expect("f64")).collect() },
            Err(file) => file,
        };
        let data = file.data::<i32>().expect("f32, f64 or i32");
        Self { shape, values: data.map(|value| f64::from(value.expect("i32"))).collect() }
    }

    /// The array as a tensor of the same shape.
    pub fn tensor<const D: usize>(&self, device: &Device) -> Tensor<D> {
        let values: Vec<f32> = self.values.iter().map(|value| *value as f32).collect();
        Tensor::from_data(TensorData::new(values, self.shape.clone()), device)
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

#[test]
fn flipping_swaps_the_last_axes() {
    let array = Array { shape: vec![2, 2, 3], values: (0..12).map(f64::from).collect() };
    let flipped = array.flipped();
    assert_eq!(flipped.shape, [2, 3, 2]);
    assert_eq!(flipped.values, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0, 6.0, 9.0, 7.0, 10.0, 8.0, 11.0]);
    assert_eq!(flipped.flipped().values, array.values);
}
