//! What the tests share.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::activation::tanh;
use burn::tensor::{DType, Device, Int, Tensor};
use eggroll_nn::Linear;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Two layers.
#[derive(Module, Debug)]
pub struct Net {
    pub first: Linear,
    pub second: Linear,
}

impl Net {
    pub fn new() -> Self {
        Self::on(&Device::flex())
    }

    /// From 4 numbers to 2.
    pub fn on(device: &Device) -> Self {
        Self { first: layer_on(4, 6, device), second: layer_on(6, 2, device) }
    }

    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(tanh(self.first.forward_shared(x)))
    }
}

/// Rows for [`Net`].
pub fn input() -> Tensor<2> {
    sines(20).reshape([5, 4])
}

pub fn layer(d_input: usize, d_output: usize) -> Linear {
    layer_on(d_input, d_output, &Device::flex())
}

/// A layer whose weights are not from Burn's generator, which is global: tests run side by side.
pub fn layer_on(d_input: usize, d_output: usize, device: &Device) -> Linear {
    let weight = sines_on(d_input * d_output, device).reshape([d_input, d_output]) * 0.4;
    Linear { weight: Param::from_tensor(weight), bias: Some(Param::from_tensor(sines_on(d_output, device) * 0.1)) }
}

pub fn sines(count: usize) -> Tensor<1> {
    sines_on(count, &Device::flex())
}

/// `sin(0.7·i)`
pub fn sines_on(count: usize, device: &Device) -> Tensor<1> {
    let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
    Tensor::from_floats(&values[..], device)
}

/// Gives all float parameters another type.
pub struct Cast(pub DType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value.cast(self.0))
    }
}

/// The bytes of all parameters: equal for models that are equal bit for bit.
pub fn bytes<M: Module>(model: &M) -> Vec<u8> {
    #[derive(Default)]
    struct Bytes(Vec<u8>);
    impl ModuleVisitor for Bytes {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend_from_slice(param.val().into_data().as_bytes());
        }
        fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
            self.0.extend_from_slice(param.val().into_data().as_bytes());
        }
    }
    let mut bytes = Bytes::default();
    model.visit(&mut bytes);
    bytes.0
}

/// What `f` panics with: a text that was formatted.
pub fn message(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("a panic");
    panic.downcast_ref::<String>().expect("a text with values").clone()
}
