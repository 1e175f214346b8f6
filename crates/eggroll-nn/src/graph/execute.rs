//! Running a program for the members of the scope.

use super::interpreter::{Interpreter, interpreter};
use super::program::{GraphProgram, ProgramStep};
use super::trace::Parameter;
use super::values::{matrix, values};
use burn::backend::ir::TensorIr;
use burn::backend::ops::FloatTensorOps;
use burn::backend::{Dispatch, DispatchTensor, TensorMetadata};
use burn::tensor::{Int, Shape, Tensor};
use eggroll_core::ops::InputRows;
use eggroll_core::scope::{ActiveParameter, ParameterUse};

/// Runs `program` on `inputs` under the perturbed parameters of the current model.
///
/// # Panics
///
/// Panics if no backend that is built in runs graphs where the first input lies.
#[track_caller]
pub(super) fn run(
    program: &GraphProgram,
    parameters: &[Parameter],
    inputs: Vec<DispatchTensor>,
) -> Vec<DispatchTensor> {
    let Some(mut on) = inputs.first().and_then(interpreter) else {
        panic!("graph: graphs do not run where the input lies");
    };
    for (id, tensor) in &program.constants {
        on.put(*id, tensor.clone());
    }
    for (position, id) in &program.plain_parameters {
        let parameter = &parameters[*position];
        if let Some(active) = &parameter.active {
            active.noise(ParameterUse::Other); // it has none: notes the use
        }
        on.put(*id, parameter.value.clone());
    }
    for (id, tensor) in program.inputs.iter().zip(inputs) {
        on.put(*id, tensor);
    }
    for step in &program.steps {
        perform(on.as_mut(), step, parameters);
    }
    program.outputs.iter().map(|output| on.take(output)).collect()
}

fn perform(on: &mut dyn Interpreter, step: &ProgramStep, parameters: &[Parameter]) {
    let (result, out) = match step {
        ProgramStep::Run(operation) => return on.run(operation.as_ref().clone()),
        ProgramStep::Linear { x, input, weight, bias, out } => {
            let x = on.take(x);
            (linear(x, *input, &parameters[*weight], bias.map(|bias| &parameters[bias])), out)
        }
        ProgramStep::Embedding { indices, input, weight, out } => {
            let indices = Tensor::<1, Int>::from_dispatch(on.take(indices));
            let count = indices.shape().num_elements();
            let parameter = &parameters[*weight];
            (active(parameter).embedding(indices.reshape([count]), matrix(parameter), *input), out)
        }
        ProgramStep::Values { parameter, out } => {
            let parameter = &parameters[*parameter];
            let active = active(parameter);
            let values = match parameter.shape().len() {
                1 => active.vector_of(vector(parameter)),
                _ => values(active, parameter),
            };
            (values, out)
        }
    };
    on.put(out.id, shaped(result, out));
}

/// A linear operation on the last axis of `x`, of any rank, with the parameter as a matrix.
fn linear(x: DispatchTensor, input: InputRows, weight: &Parameter, bias: Option<&Parameter>) -> Tensor<2> {
    let matrix = matrix(weight);
    let [d_input, _] = matrix.dims();
    let rows = x.shape().num_elements() / d_input;
    let x = Tensor::<2>::from_dispatch(Dispatch::float_reshape(x, Shape::new([rows, d_input])));
    let bias = bias.map(|bias| (vector(bias), bias.active.clone()));
    active(weight).linear_with(x, matrix, bias, input)
}

fn vector(parameter: &Parameter) -> Tensor<1> {
    Tensor::from_dispatch(parameter.value.clone())
}

/// The parameter in the scope.
#[track_caller]
fn active(parameter: &Parameter) -> &ActiveParameter {
    let active = parameter.active.as_ref();
    active.unwrap_or_else(|| panic!("graph: \"{}\" is not of the model in evaluation", parameter.path))
}

fn shaped(tensor: Tensor<2>, out: &TensorIr) -> DispatchTensor {
    Dispatch::float_reshape(tensor.into_dispatch(), out.shape.clone())
}
