//! Parameters from files and back.

use super::model::Rwkv7;
use crate::load::config::{FileTensor, Stored};
use crate::values::floats;
use crate::values::transposed;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};
use std::collections::BTreeMap;

impl Stored {
    /// The parameter's values, of the file's tensor.
    fn values(self, mut values: Vec<f32>, shape: &[usize]) -> Vec<f32> {
        match (self, shape) {
            (Self::Row(row), [_, width]) => values.drain(row * width..(row + 1) * width).collect(),
            (Self::Transposed, [d_output, d_input]) => transposed(&values, [*d_output, *d_input]),
            _ => values,
        }
    }
}

impl Rwkv7 {
    /// Every tensor of a file in the format of flash-linear-attention for Hugging Face (`model_type` `rwkv7`), with its parameter.
    ///
    /// `fused_mixes` is for files of the first version of the format: the six mixes of time mixing are the rows of one tensor
    /// `attn.x_x`. Files of the second version have `attn.x_r` and so on, `[1, 1, hidden_size]`.
    ///
    /// Names, shapes and the order of `x_x` follow flash-linear-attention's source (its model, its layer and its converter of the
    /// reference code's weights, as of 2025). **They were not checked against a file of real weights.** That format has no tensors
    /// `v_lora` in the first layer. For the normalization of heads it uses `head_dim · norm_eps`, as [`Rwkv7::new`] does: with heads
    /// of 64, the `64e-5` of the reference code.
    pub fn files(&self, fused_mixes: bool) -> Vec<FileTensor> {
        self.config().files(fused_mixes).collect()
    }

    /// The model with the weights of a file, of which `read` gives a tensor's values by name and shape; see [`files`](Self::files).
    ///
    /// # Errors
    ///
    /// The error of `read`.
    ///
    /// # Panics
    ///
    /// Panics if `read` returns another number of values than the shape has.
    pub fn with_files<E>(
        self,
        fused_mixes: bool,
        mut read: impl FnMut(&str, &[usize]) -> Result<Vec<f32>, E>,
    ) -> Result<Self, E> {
        let mut values = BTreeMap::new();
        for FileTensor { name, shape, parameter, stored } in self.files(fused_mixes) {
            let tensor = read(&name, &shape)?;
            let expected = shape.iter().product::<usize>();
            assert!(tensor.len() == expected, "\"{name}\" has {} values, which do not fit {shape:?}", tensor.len());
            values.insert(parameter, stored.values(tensor, &shape));
        }
        let mut placing = Placing { path: Vec::new(), values };
        let model = self.map(&mut placing);
        let left: Vec<_> = placing.values.into_keys().collect();
        assert!(left.is_empty(), "no parameters {left:?}");
        Ok(model)
    }
}

impl Rwkv7 {
    /// The tensors of a file of the format's second version, with their values.
    pub(crate) fn file_tensors(&self) -> impl Iterator<Item = (String, Vec<usize>, Vec<f32>)> {
        let mut taking = Taking::default();
        self.visit(&mut taking);
        let mut parameters = taking.tensors;
        self.files(false).into_iter().map(move |FileTensor { name, shape, parameter, stored }| {
            let values = parameters.remove(&parameter).unwrap_or_else(|| panic!("no parameter \"{parameter}\""))();
            let values = match (stored, shape.as_slice()) {
                (Stored::Transposed, [d_output, d_input]) => transposed(&values, [*d_input, *d_output]),
                _ => values,
            };
            (name, shape, values)
        })
    }
}

/// Collects parameters by path, to be read when needed.
#[derive(Default)]
struct Taking {
    path: Vec<String>,
    tensors: BTreeMap<String, Box<dyn FnOnce() -> Vec<f32>>>,
}

impl ModuleVisitor for Taking {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        let tensor = parameter.val();
        self.tensors.insert(self.path.join("."), Box::new(move || floats(tensor)));
    }
}

/// Puts values into parameters by path.
struct Placing {
    path: Vec<String>,
    values: BTreeMap<String, Vec<f32>>,
}

impl ModuleMapper for Placing {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let path = self.path.join(".");
        let values = self.values.remove(&path).unwrap_or_else(|| panic!("no weights for \"{path}\""));
        parameter.map(|tensor| {
            let data = TensorData::new(values, tensor.dims());
            Tensor::from_data(data, (&tensor.device(), tensor.dtype()))
        })
    }
}
