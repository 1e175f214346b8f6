//! Names, shapes and layouts of the weights of RWKV-7 in files.

use super::rwkv7::Rwkv7Config;

/// A tensor of a file and its parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTensor {
    /// The tensor's name in the file.
    pub name: String,
    /// Its shape in the file.
    pub shape: Vec<usize>,
    /// The parameter's path in `Rwkv7`.
    pub parameter: String,
    /// How the file stores the parameter.
    pub stored: Stored,
}

/// How a file stores a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// In the same order, with any shape.
    AsIs,
    /// A matrix `[d_input, d_output]` as `[d_output, d_input]`.
    Transposed,
    /// As a row of a matrix.
    Row(usize),
}

impl Rwkv7Config {
    /// Every tensor of a file, with its parameter; see [`Rwkv7::files`](crate::Rwkv7::files).
    pub(crate) fn files(&self, fused_mixes: bool) -> impl Iterator<Item = FileTensor> {
        let (vocabulary, hidden) = (self.vocab_size, self.hidden_size);
        let file = |name: &str, shape: &[usize], parameter: &str, stored| FileTensor {
            name: name.into(),
            shape: shape.into(),
            parameter: parameter.into(),
            stored,
        };
        let mut around = vec![file("model.embeddings.weight", &[vocabulary, hidden], "emb.weight", Stored::AsIs)];
        for (name, parameter) in [("model.layers.0.pre_norm", "ln0"), ("model.norm", "ln_out")] {
            around.push(file(&format!("{name}.weight"), &[hidden], &format!("{parameter}.gamma"), Stored::AsIs));
            around.push(file(&format!("{name}.bias"), &[hidden], &format!("{parameter}.beta"), Stored::AsIs));
        }
        if !self.tied_head {
            around.push(file("lm_head.weight", &[vocabulary, hidden], "head.weight", Stored::Transposed));
        }
        around.into_iter().chain((0..self.layers).flat_map(move |layer| self.layer_files(layer, fused_mixes)))
    }

    fn layer_files(&self, layer: usize, fused_mixes: bool) -> Vec<FileTensor> {
        let (hidden, intermediate) = (self.hidden_size, self.intermediate_size);
        let mut tensors = Vec::new();
        let mut add = |name: &str, shape: &[usize], parameter: &str, stored| {
            let (name, parameter) = (format!("model.layers.{layer}.{name}"), format!("blocks.{layer}.{parameter}"));
            tensors.push(FileTensor { name, shape: shape.to_vec(), parameter, stored });
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
        let heads = hidden.checked_div(self.head_dim).unwrap_or(0);
        add("attn.r_k", &[heads, self.head_dim], "att.r_k", Stored::AsIs);
        for (name, parameter) in [("r", "receptance"), ("k", "key"), ("v", "value"), ("o", "output")] {
            let (name, parameter) = (format!("attn.{name}_proj.weight"), format!("att.{parameter}.weight"));
            add(&name, &[hidden, hidden], &parameter, Stored::Transposed);
        }
        let ranks = [("w", self.decay_rank), ("a", self.a_rank), ("v", self.v_rank), ("g", self.gate_rank)];
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
        tensors
    }
}
