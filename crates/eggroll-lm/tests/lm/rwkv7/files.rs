//! Weights by the names that files have for them.

use super::*;
use burn::module::{Module, ModuleVisitor, Param};
use eggroll_lm::rwkv7::Stored;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// The parameters of a model by path, with their shapes.
fn parameters(model: &Rwkv7) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    #[derive(Default)]
    struct FloatReader(Vec<String>, BTreeMap<String, (Vec<usize>, Vec<f32>)>);

    impl ModuleVisitor for FloatReader {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.0.push(name.to_owned());
        }

        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.0.pop();
        }

        fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
            self.1.insert(self.0.join("."), (parameter.dims().to_vec(), values(parameter.val())));
        }
    }

    let mut reader = FloatReader::default();
    model.visit(&mut reader);
    reader.1
}

/// The tensors of a file with the weights of a model.
fn file(model: &Rwkv7, fused_mixes: bool) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let parameters = parameters(model);
    let mut file = BTreeMap::new();
    for tensor in model.files(fused_mixes) {
        let (shape, values) = &parameters[&tensor.parameter];
        let values = match tensor.stored {
            Stored::Transposed => {
                let [rows, columns] = shape[..] else { panic!("{shape:?}") };
                (0..columns).flat_map(|c| (0..rows).map(move |r| values[r * columns + c])).collect()
            }
            _ => values.clone(),
        };
        match tensor.stored {
            Stored::Row(_) => {
                file.entry(tensor.name).or_insert((tensor.shape, Vec::new())).1.extend(values);
            }
            _ => assert!(file.insert(tensor.name, (tensor.shape, values)).is_none(), "two tensors of one name"),
        }
    }
    for (name, (shape, values)) in &file {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "{name}");
    }
    file
}

#[test]
fn weights_come_back() {
    for tied_head in [false, true] {
        let config = Rwkv7Config { tied_head, ..config() };
        let source = model(&config);
        let text = tensor(&tokens(1, 8), 1);
        let expected = values(source.forward(text.clone()));
        for fused_mixes in [false, true] {
            let file = file(&source, fused_mixes);
            let read = |name: &str, shape: &[usize]| {
                let (found, values) = &file[name];
                assert_eq!(found, shape, "{name}");
                Ok::<_, Infallible>(values.clone())
            };
            let other = Rwkv7::new(&config, &Device::flex());
            assert!(distance(&values(other.forward(text.clone())), &expected) > 1e-2, "canary: other weights");
            let Ok(loaded) = other.with_files(fused_mixes, read);
            assert_eq!(values(loaded.forward(text.clone())), expected);
        }
    }
}

/// Names and shapes of flash-linear-attention, written out.
#[test]
fn names_and_shapes() {
    let model = model(&config());
    let names = file(&model, false);
    let expected: [(&str, &[usize]); 19] = [
        ("model.embeddings.weight", &[50, 36]),
        ("model.layers.0.pre_norm.bias", &[36]),
        ("model.layers.2.attn_norm.weight", &[36]),
        ("model.layers.2.ffn_norm.weight", &[36]),
        ("model.layers.0.attn.x_r", &[1, 1, 36]),
        ("model.layers.0.attn.r_k", &[3, 12]),
        ("model.layers.0.attn.k_k", &[36]),
        ("model.layers.0.attn.r_proj.weight", &[36, 36]),
        ("model.layers.0.attn.o_proj.weight", &[36, 36]),
        ("model.layers.0.attn.w_lora.lora.0.weight", &[6, 36]),
        ("model.layers.0.attn.w_lora.lora.2.weight", &[36, 6]),
        ("model.layers.0.attn.w_lora.lora.2.bias", &[36]),
        ("model.layers.1.attn.v_lora.lora.0.weight", &[4, 36]),
        ("model.layers.1.attn.g_lora.lora.2.weight", &[36, 7]),
        ("model.layers.1.attn.g_norm.bias", &[36]),
        ("model.layers.1.ffn.x_k", &[36]),
        ("model.layers.1.ffn.key.weight", &[80, 36]),
        ("model.norm.weight", &[36]),
        ("lm_head.weight", &[50, 36]),
    ];
    for (name, shape) in expected {
        assert_eq!(names.get(name).map(|(shape, _)| shape.as_slice()), Some(shape), "{name}");
    }
    assert!(!names.contains_key("model.layers.0.attn.v_lora.lora.0.weight"), "not in the first layer");
    assert!(!names.contains_key("model.layers.1.attn.g_lora.lora.2.bias"), "the gate has no bias");
    // Of a layer: four of norms and two of the heads' norm, six mixes, three vectors, four matrices, 3 + 3 + 3 + 2 of low rank, three of
    // channel mixing; the first has one norm more, and no v.
    assert_eq!(names.len(), 3 * (4 + 2 + 6 + 3 + 4 + 11 + 3) + 2 - 3 + 2 + 2);
    assert_eq!(names.len(), parameters(&model).len(), "every parameter");
    assert_eq!(file(&model, true)["model.layers.1.attn.x_x"].0, [6, 36]);
}
