//! Names, shapes and layouts of weights in files.

use super::model::Rwkv7;
use crate::host::floats;
use crate::transposed::transposed;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};
use std::collections::BTreeMap;

/// A tensor of a file and the parameter that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTensor {
    /// The tensor's name in the file.
    pub name: String,
    /// Its shape in the file.
    pub shape: Vec<usize>,
    /// The parameter's path in [`Rwkv7`].
    pub parameter: String,
    /// How the file stores the parameter.
    pub stored: Stored,
}

/// How a file stores a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// In the same order, whatever the shape.
    AsIs,
    /// A matrix `[d_input, d_output]` as `[d_output, d_input]`.
    Transposed,
    /// As a row of a matrix.
    Row(usize),
}

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
    /// Every tensor of a file in the format of flash-linear-attention for Hugging Face (`model_type` `rwkv7`), with the parameter that it is.
    ///
    /// `fused_mixes` is for files of the first version of the format, which have the six mixes of time mixing as the rows of one tensor
    /// `attn.x_x`; those of the second version have `attn.x_r` and so on, `[1, 1, hidden_size]`.
    ///
    /// Names, shapes and the order of `x_x` are those of flash-linear-attention's source (its model, its layer and its converter of
    /// the reference code's weights, as of 2025). **They were not checked against a file of real weights.** That format has no
    /// tensors `v_lora` in the first layer, and takes `head_dim · norm_eps` for the normalization of heads, as [`Rwkv7::new`] does: with
    /// heads of 64 the `64e-5` of the reference code.
    pub fn files(&self, fused_mixes: bool) -> Vec<FileTensor> {
        let c = self.config();
        let (hidden, intermediate, heads) = (c.hidden_size, c.intermediate_size, c.hidden_size / c.head_dim);
        let mut tensors = Vec::new();
        let mut add = |name: String, shape: &[usize], parameter: String, stored| {
            tensors.push(FileTensor { name, shape: shape.to_vec(), parameter, stored });
        };
        add("model.embeddings.weight".into(), &[c.vocab_size, hidden], "emb.weight".into(), Stored::AsIs);
        let norms = [("model.layers.0.pre_norm", "ln0"), ("model.norm", "ln_out")];
        for (name, parameter) in norms.map(|(name, parameter)| (name.to_owned(), parameter.to_owned())) {
            add(format!("{name}.weight"), &[hidden], format!("{parameter}.gamma"), Stored::AsIs);
            add(format!("{name}.bias"), &[hidden], format!("{parameter}.beta"), Stored::AsIs);
        }
        if !c.tied_head {
            add("lm_head.weight".into(), &[c.vocab_size, hidden], "head.weight".into(), Stored::Transposed);
        }
        for layer in 0..c.layers {
            let mut add = |name: &str, shape: &[usize], parameter: &str, stored| {
                add(format!("model.layers.{layer}.{name}"), shape, format!("blocks.{layer}.{parameter}"), stored);
            };
            for (name, parameter) in [("attn_norm", "ln1"), ("ffn_norm", "ln2"), ("attn.g_norm", "att.ln_x")] {
                add(&format!("{name}.weight"), &[hidden], &format!("{parameter}.gamma"), Stored::AsIs);
                add(&format!("{name}.bias"), &[hidden], &format!("{parameter}.beta"), Stored::AsIs);
            }
            for (row, mix) in ["r", "w", "k", "v", "a", "g"].into_iter().enumerate() {
                let parameter = format!("att.x_{mix}");
                match fused_mixes {
                    true => add("attn.x_x", &[6, hidden], &parameter, Stored::Row(row)),
                    false => add(&format!("attn.x_{mix}"), &[1, 1, hidden], &parameter, Stored::AsIs),
                }
            }
            add("attn.k_k", &[hidden], "att.k_k", Stored::AsIs);
            add("attn.k_a", &[hidden], "att.k_a", Stored::AsIs);
            add("attn.r_k", &[heads, c.head_dim], "att.r_k", Stored::AsIs);
            let square = [("r", "receptance"), ("k", "key"), ("v", "value"), ("o", "output")];
            for (name, parameter) in square {
                let (name, parameter) = (format!("attn.{name}_proj.weight"), format!("att.{parameter}.weight"));
                add(&name, &[hidden, hidden], &parameter, Stored::Transposed);
            }
            let ranks = [("w", c.decay_rank), ("a", c.a_rank), ("v", c.v_rank), ("g", c.gate_rank)];
            for (pair, rank) in ranks.into_iter().filter(|(pair, _)| *pair != "v" || layer > 0) {
                let name = |part: &str| format!("attn.{pair}_lora.lora.{part}");
                add(&name("0.weight"), &[rank, hidden], &format!("att.{pair}1.weight"), Stored::Transposed);
                add(&name("2.weight"), &[hidden, rank], &format!("att.{pair}2.weight"), Stored::Transposed);
                if pair != "g" {
                    add(&name("2.bias"), &[hidden], &format!("att.{pair}0"), Stored::AsIs);
                }
            }
            add("ffn.x_k", &[hidden], "ffn.x_k", Stored::AsIs);
            add("ffn.key.weight", &[intermediate, hidden], "ffn.key.weight", Stored::Transposed);
            add("ffn.value.weight", &[hidden, intermediate], "ffn.value.weight", Stored::Transposed);
        }
        tensors
    }

    /// The model with the weights of a file, of which `read` gives a tensor's values by name and shape; see [`files`](Self::files).
    ///
    /// # Errors
    ///
    /// What `read` returns.
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
            assert!(tensor.len() == expected, "\"{name}\" has {} values, not those of {shape:?}", tensor.len());
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

/// Takes parameters by path, to be read when they are needed.
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
