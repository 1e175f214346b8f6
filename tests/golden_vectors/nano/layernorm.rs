//! Layer norm by the mean magnitude: `nano_layernorm.npz`.

use super::{assert_differs, assert_equal, integers};
use crate::devices;
use crate::loader::Golden;
use burn::module::{Param, ParamId};
use eggroll::nn::integer::LayerNorm;

#[test]
fn layer_norm() {
    let golden = Golden::open("nano_layernorm.npz");
    for n in [16, 24, 64] {
        for name in ["unit", "rand"] {
            let expected = golden.values(&format!("n{n}_{name}_y"));
            for device in devices() {
                let weight = golden.array(&format!("n{n}_{name}_w")).integers::<1>(&device);
                let layer = LayerNorm { weight: Param::initialized(ParamId::new(), weight) };
                let x = golden.array(&format!("n{n}_x")).integers::<2>(&device);
                assert_equal(&format!("{n}, {name}"), &integers(layer.forward(x.clone())), expected);
                assert_differs(&format!("{n}, {name}, negated"), &integers(layer.forward(-x)), expected);
            }
        }
    }
}
