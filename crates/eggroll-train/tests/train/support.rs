//! What the tests share.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Int, Tensor};

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
