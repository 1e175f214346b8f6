//! Runs operations on the device of the model, on any backend.

use burn::backend::ir::{BackendIr, HandleKind, OperationIr, TensorIr};
use burn::backend::{BackendTensor, DispatchKindConversion, DispatchTensor, TensorMetadata};
use burn::tensor::{TensorData, TensorId};
use burn_router::TensorInterpreter;

/// Burn's interpreter of operations, without its backend.
pub(super) trait Interpreter {
    /// Executes an operation.
    fn run(&mut self, operation: OperationIr);
    /// Takes in a tensor under a name.
    fn put(&mut self, id: TensorId, tensor: DispatchTensor);
    /// Takes in values under a name.
    fn put_data(&mut self, id: TensorId, data: TensorData);
    /// Hands out a tensor, for good if `tensor` may be written.
    fn take(&mut self, tensor: &TensorIr) -> DispatchTensor;
}

struct On<B: BackendIr>(TensorInterpreter<B>);

impl<B: BackendIr> Interpreter for On<B>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    fn run(&mut self, operation: OperationIr) {
        self.0.register_op(operation);
    }

    fn put(&mut self, id: TensorId, tensor: DispatchTensor) {
        let tensor = match <DispatchTensor as DispatchKindConversion<B>>::try_into_backend(tensor) {
            Ok(BackendTensor::Float(tensor)) => HandleKind::Float(tensor),
            Ok(BackendTensor::Int(tensor)) => HandleKind::Int(tensor),
            Ok(BackendTensor::Bool(tensor)) => HandleKind::Bool(tensor),
            Ok(_) => panic!("graph: only tensors of floats, integers and truth values can be run"),
            Err(found) => panic!("graph: a tensor lies on another backend than the first input: {found}"),
        };
        self.0.register_tensor_to_device(id, tensor);
    }

    fn put_data(&mut self, id: TensorId, data: TensorData) {
        self.0.register_tensor_data_id(id, data);
    }

    fn take(&mut self, tensor: &TensorIr) -> DispatchTensor {
        let tensor = match self.0.get_tensor(tensor) {
            HandleKind::Float(tensor) => BackendTensor::Float(tensor),
            HandleKind::Int(tensor) => BackendTensor::Int(tensor),
            HandleKind::Bool(tensor) => BackendTensor::Bool(tensor),
            HandleKind::Quantized(tensor) => BackendTensor::Quantized(tensor),
        };
        <DispatchTensor as DispatchKindConversion<B>>::from_backend(tensor)
    }
}

fn on<B: BackendIr + 'static>(tensor: &DispatchTensor) -> Option<Box<dyn Interpreter>>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    let device = match <DispatchTensor as DispatchKindConversion<B>>::try_into_backend(tensor.clone()).ok()? {
        BackendTensor::Float(tensor) => tensor.device(),
        BackendTensor::Int(tensor) => tensor.device(),
        BackendTensor::Bool(tensor) => tensor.device(),
        _ => return None,
    };
    Some(Box::new(On::<B>(TensorInterpreter::new(device))))
}

/// An interpreter on the device of `tensor`; `None` if no backend that is built in runs graphs there.
pub(super) fn interpreter(tensor: &DispatchTensor) -> Option<Box<dyn Interpreter>> {
    let mut found: Option<Box<dyn Interpreter>> = None;
    eggroll_core::for_each_backend! { B => found = found.or_else(|| on::<B>(tensor)); }
    found
}
