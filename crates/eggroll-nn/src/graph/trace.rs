//! Recording a forward pass on Burn's capture device, without any computation.

use super::error::GraphError;
use super::tensors::GraphTensors;
use burn::backend::ir::{BaseOperationIr, IrVisitorMut, OperationIr, TensorIr};
use burn::backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
use burn::backend::{BackendTensor, Capture, Dispatch, DispatchKindConversion, DispatchTensor, TensorMetadata};
use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::tensor::kind::Basic;
use burn::tensor::{Bool, DType, Device, DeviceConfig, DeviceSettings, Int, Shape, Tensor, TensorData, TensorId};
use eggroll_core::paths::{ModulePath, PathVisitor, visit_with_paths};
use eggroll_core::scope::{self, ActiveParameter, CloneError};
use std::collections::HashMap;

/// One parameter of the current model.
#[derive(Clone)]
pub(super) struct Parameter {
    /// Names of fields from the model down, joined by dots.
    pub path: String,
    pub value: DispatchTensor,
    /// Whether scopes perturb it: floats, but no running statistics, and in a scope nothing that has `no_grad()`.
    pub is_perturbed: bool,
    /// The parameter in the scope of this thread, if it is perturbed there.
    pub active: Option<ActiveParameter>,
}

impl Parameter {
    pub fn shape(&self) -> Vec<usize> {
        self.value.shape().to_vec()
    }
}

/// The parameters of `model` in traversal order; a tied one as often as it is visited.
///
/// # Panics
///
/// Panics if a scope of this thread cannot tell `model`, a clone, from the model that it perturbs.
#[track_caller]
pub(super) fn parameters<M: Module>(model: &M) -> Vec<Parameter> {
    let mut collector = CloneCollector { found: Vec::new(), refused: None };
    visit_with_paths(model, &mut collector);
    match collector.refused {
        None => collector.found,
        Some(error) => panic!("graph: {error}"),
    }
}

struct CloneCollector {
    found: Vec<Parameter>,
    refused: Option<CloneError>,
}

impl CloneCollector {
    fn add<const D: usize, K: Basic>(
        &mut self,
        path: &ModulePath,
        value: Tensor<D, K>,
        (is_perturbed, active): (bool, Option<ActiveParameter>),
    ) {
        self.found.push(Parameter { path: path.to_string(), value: value.into_dispatch(), is_perturbed, active });
    }
}

impl PathVisitor for CloneCollector {
    fn visit_float<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D>>) {
        let is_state = path.is_state();
        let active = if is_state { Ok(None) } else { scope::try_active(param) };
        let active = active.unwrap_or_else(|error| {
            self.refused.get_or_insert(error);
            None
        });
        let is_perturbed = !is_state && active.as_ref().is_none_or(|active| !active.is_inactive());
        self.add(path, param.val(), (is_perturbed, active));
    }

    fn visit_int<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D, Int>>) {
        self.add(path, param.val(), (false, None));
    }

    fn visit_bool<const D: usize>(&mut self, path: &ModulePath, param: &Param<Tensor<D, Bool>>) {
        self.add(path, param.val(), (false, None));
    }
}

/// A recorded forward.
pub(super) struct Trace {
    /// What is computed, in order.
    pub operations: Vec<OperationIr>,
    /// Tensors made from data of the host, in order.
    pub constants: Vec<(TensorId, TensorData)>,
    /// The inputs.
    pub inputs: Vec<TensorIr>,
    /// The parameters, by position.
    pub parameters: Vec<TensorId>,
    /// The outputs.
    pub outputs: Vec<TensorId>,
}

/// What a recording computes, without the identifiers of tensors, which every recording has anew.
#[derive(PartialEq)]
pub(super) struct TraceForm {
    /// Tensors are numbered in order.
    operations: Vec<OperationIr>,
    constants: Vec<TensorData>,
    outputs: Vec<TensorId>,
}

impl Trace {
    /// The same for two recordings that compute the same from the same constants, for inputs of the same forms.
    pub fn form(&self) -> TraceForm {
        struct Numbers(HashMap<TensorId, TensorId>);
        impl Numbers {
            fn of(&mut self, id: TensorId) -> TensorId {
                let next = TensorId::new(self.0.len() as u64);
                *self.0.entry(id).or_insert(next)
            }
        }
        impl IrVisitorMut for Numbers {
            fn visit_tensor_mut(&mut self, tensor: &mut TensorIr) {
                tensor.id = self.of(tensor.id);
            }
        }
        let mut numbers = Numbers(HashMap::new());
        let inputs = self.inputs.iter().map(|input| input.id);
        let constants = self.constants.iter().map(|(id, _)| *id);
        inputs.chain(self.parameters.iter().copied()).chain(constants).for_each(|id| {
            numbers.of(id);
        });
        let mut operations = self.operations.clone();
        operations.iter_mut().for_each(|operation| operation.visit_mut(&mut numbers));
        TraceForm {
            operations,
            constants: self.constants.iter().map(|(_, data)| data.clone()).collect(),
            outputs: self.outputs.iter().map(|id| numbers.of(*id)).collect(),
        }
    }
}

/// Shape and type of an input.
pub(super) type InputForm = (Vec<usize>, DType);

/// Records `forward` for inputs of these forms, on `device`, which is a capture device; operations that create tensors choose
/// types as `settings` says.
pub(super) fn trace<M: Module, X: GraphTensors, Y: GraphTensors>(
    device: &Device,
    settings: DeviceSettings,
    model: &M,
    forms: &[InputForm],
    forward: &dyn Fn(&M, X) -> Y,
) -> Result<Trace, GraphError> {
    let (mut inputs, mut parameters) = (Vec::new(), Vec::new());
    let captured = device.capture_scope(|scope| {
        configure(device, settings);
        // `valid` makes its own running states: `to_device` would move the states of the user's model.
        let mut placeholders = Placeholders { device, ids: Vec::new() };
        let model = model.valid().map(&mut placeholders).to_device(device);
        parameters = placeholders.ids;
        let tensors: Vec<DispatchTensor> =
            forms.iter().map(|(shape, dtype)| placeholder(device, shape, *dtype)).collect();
        let names = tensors.iter().cloned().map(id).zip(forms);
        inputs = names.map(|(id, (shape, dtype))| TensorIr::uninit(id, Shape::from(shape.clone()), *dtype)).collect();
        let outputs: Vec<TensorId> =
            forward(&model, X::rebuild(&mut tensors.into_iter())).parts().into_iter().map(id).collect();
        scope.complete([], outputs)
    });
    let captured = captured.map_err(|error| GraphError::Capture(error.to_string()))?;
    let given: Vec<TensorId> =
        inputs.iter().map(|input: &TensorIr| input.id).chain(parameters.iter().copied()).collect();
    let mut operations = captured.graph.operations;
    operations.retain(|operation| !is_placeholder(operation, &given));
    let constants = captured.values.into_iter().collect();
    Ok(Trace { operations, constants, inputs, parameters, outputs: captured.graph.outputs })
}

/// Gives the capture device the default types of the device that will run the graph.
fn configure(device: &Device, settings: DeviceSettings) {
    let config = DeviceConfig::new(Some(settings.float_dtype), Some(settings.int_dtype), Some(settings.bool_dtype));
    // Refused from the second scope on, when it has these settings already.
    let _ = device.clone().configure(config);
}

/// A tensor without values on the capture device.
fn placeholder(device: &Device, shape: &[usize], dtype: DType) -> DispatchTensor {
    let (shape, device) = (Shape::from(shape.to_vec()), device.as_dispatch());
    if dtype.is_float() {
        Dispatch::float_empty(shape, device, dtype.into())
    } else if dtype.is_bool() {
        Dispatch::bool_empty(shape, device, dtype.into())
    } else {
        Dispatch::int_empty(shape, device, dtype.into())
    }
}

fn is_placeholder(operation: &OperationIr, given: &[TensorId]) -> bool {
    match operation {
        OperationIr::BaseFloat(BaseOperationIr::Empty(op))
        | OperationIr::BaseInt(BaseOperationIr::Empty(op))
        | OperationIr::BaseBool(BaseOperationIr::Empty(op)) => given.contains(&op.out.id),
        _ => false,
    }
}

/// The name of a tensor in the graph.
fn id(tensor: DispatchTensor) -> TensorId {
    match <DispatchTensor as DispatchKindConversion<Capture>>::try_into_backend(tensor) {
        Ok(BackendTensor::Float(tensor) | BackendTensor::Int(tensor) | BackendTensor::Bool(tensor)) => tensor.id(),
        Ok(_) => panic!("graph: quantized tensors cannot be recorded"),
        Err(found) => panic!(
            "graph: the forward returns a tensor that it did not compute from its inputs or the model ({found}). \
             Give such tensors as inputs or fields of the model, or make them on the device of an input"
        ),
    }
}

/// Replaces parameters by tensors without values, under new identifiers: perturbed modules stay plain while they are recorded.
struct Placeholders<'a> {
    device: &'a Device,
    ids: Vec<TensorId>,
}

impl Placeholders<'_> {
    fn replace<const D: usize, K: Basic>(&mut self, value: &Tensor<D, K>) -> Tensor<D, K> {
        let tensor = placeholder(self.device, &value.dims(), value.dtype());
        self.ids.push(id(tensor.clone()));
        Tensor::from_dispatch(tensor)
    }
}

impl ModuleMapper for Placeholders<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        Param::initialized(ParamId::new(), self.replace(&param.val()))
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        Param::initialized(ParamId::new(), self.replace(&param.val()))
    }

    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        Param::initialized(ParamId::new(), self.replace(&param.val()))
    }
}
