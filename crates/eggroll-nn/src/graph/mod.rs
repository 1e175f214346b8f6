//! Unmodified models for a whole population at once: Burn records the forward as a graph, and every use of a parameter in it
//! becomes its perturbed operation.

mod convolution;
mod error;
mod execute;
mod fuse;
mod interpreter;
mod lift;
mod modules;
mod operation;
mod program;
mod rewrite;
mod rows;
mod tensors;
mod trace;
mod values;
mod verify;

pub use error::GraphError;
pub use tensors::GraphTensors;

use burn::backend::{DispatchTensor, TensorMetadata};
use burn::module::Module;
use burn::tensor::{DType, Device};
use eggroll_core::ops::InputRows;
use eggroll_core::scope::ActiveParameter;
use eggroll_core::sync::locked;
use interpreter::interpreter;
use program::GraphProgram;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};
use trace::{InputForm, Parameter, TraceForm, parameters, trace};

/// Scopes that are remembered: more than run at a time.
const SCOPES: usize = 256;

type Forward<M, X, Y> = dyn Fn(&M, X) -> Y + Send + Sync;

/// The forward of a model that is built of `burn::nn` or anything else, to be run for all members of a population at once.
///
/// Inside `evaluate`, [`forward`](Self::forward) takes rows of all members, as the forward of a perturbed module does; outside it is the
/// model's own, bit for bit. The model keeps its type: nothing of it is replaced. Draws and estimates are the same as with perturbed
/// modules, because a parameter's address is its position in the model in both cases.
///
/// The forward is recorded by Burn's capture device, which computes nothing, for every shape of input and choice of `no_grad()`. It is recorded again
/// in every chunk of members, which takes a tenth of a millisecond or two. What is no parameter (tensors in fields, numbers, what the closure holds) is a constant
/// of the chunk. Rows of members stand on the leading axis, so Burn's operations are right as they are. Operations that use a parameter become
///
/// | use | becomes |
/// |---|---|
/// | linear, product with a matrix, convolution of one group over one or two axes | the perturbed linear operation: no weight is formed |
/// | embedding | rows with their noise |
/// | layer and batch norm; sums, products and other operations element by element; reductions along an axis | the operation under every member's vector |
/// | other convolutions; products with a transpose or with what was computed from parameters | a batched operation under every member's weight, which is formed |
///
/// A parameter that is used in any other way is refused when the forward is recorded, unless it has `no_grad()`. So is a forward in
/// which members would mix. To detect that, axes of the batch are followed through the graph. Then a population of four is compared with its members one
/// by one; each has the rows in another order.
///
/// # Example
///
/// ```
/// use burn::module::Module;
/// use burn::nn::{Linear, LinearConfig};
/// use burn::tensor::{Device, Distribution, Tensor, activation};
/// use eggroll_nn::graph::PopulationGraph;
///
/// #[derive(Module, Debug)]
/// struct Mlp {
///     first: Linear,
///     second: Linear,
/// }
///
/// let device = Device::flex();
/// let model = Mlp { first: LinearConfig::new(3, 8).init(&device), second: LinearConfig::new(8, 2).init(&device) };
/// let x = Tensor::<2>::random([5, 3], Distribution::Default, &device);
/// let net = PopulationGraph::trace(&model, x.clone(), |model: &Mlp, x: Tensor<2>| {
///     model.second.forward(activation::relu(model.first.forward(x)))
/// })?;
/// // Inside evaluate: `net.forward(&model, members.repeat(x))`, `[members · rows, 2]`.
/// assert_eq!(net.forward(&model, x).dims(), [5, 2]);
/// # Ok::<(), eggroll_nn::graph::GraphError>(())
/// ```
pub struct PopulationGraph<M, X, Y> {
    forward: Arc<Forward<M, X, Y>>,
    /// Recordings by shape: one at a time on the capture device.
    recorder: Mutex<GraphRecorder>,
}

struct GraphRecorder {
    device: Device,
    programs: HashMap<Shapes, Recorded>,
}

/// A program, and what it was made of.
struct Recorded {
    program: Arc<GraphProgram>,
    form: TraceForm,
    /// Scopes in which a recording was the same. In the next one, tensors and numbers outside of parameters may be others.
    scopes: VecDeque<u64>,
}

/// What a program was made for.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Shapes {
    inputs: Vec<InputForm>,
    /// Which parameters are perturbed.
    perturbed: Vec<bool>,
    members: usize,
    /// Whether the inputs have the rows of one member, for all.
    shared: bool,
}

impl<M: Module, X: GraphTensors, Y: GraphTensors> PopulationGraph<M, X, Y> {
    /// Records `forward` of `model`, and checks it on a population of four with the rows of `example`.
    ///
    /// `forward` may be any code that does not read values and treats its rows independently: no
    /// statistics over the batch. Its tensors are the inputs, fields of the model, and tensors that it creates on the device of an input.
    /// Models must not be on an autodiff device.
    ///
    /// # Shapes
    ///
    /// - example: `[rows, ...]`, every tensor with the rows of one member on its leading axis
    ///
    /// # Errors
    ///
    /// [`GraphError`] with the operation and the parameter that have no perturbed form, or how the forward mixes rows.
    ///
    /// # Panics
    ///
    /// Panics if `forward` reads values or uses tensors from elsewhere, and as `forward` does. A panic breaks nothing: the next recording,
    /// of this graph too, begins anew.
    pub fn trace(
        model: &M,
        example: X,
        forward: impl Fn(&M, X) -> Y + Send + Sync + 'static,
    ) -> Result<Self, GraphError> {
        let graph = Self {
            forward: Arc::new(forward),
            recorder: Mutex::new(GraphRecorder { device: Device::capture(), programs: HashMap::new() }),
        };
        let of_model = parameters(model);
        if let Some(quantized) = of_model.iter().find(|parameter| matches!(parameter.value.dtype(), DType::QFloat(_))) {
            return Err(GraphError::Quantized(quantized.path.clone()));
        }
        if !of_model.iter().any(|parameter| parameter.is_perturbed) {
            return Err(GraphError::NoParameter);
        }
        let batched = |model: &M, members: X| {
            let (parameters, parts) = (parameters(model), members.parts());
            let program = graph.program(model, &parameters, &parts, rows::MEMBERS, false)?;
            Ok(execute::run(&program, &parameters, parts))
        };
        verify::verify(model, example, &*graph.forward, batched)?;
        locked(&graph.recorder).programs.clear();
        Ok(graph)
    }

    /// Applies the model: to rows of all members inside `evaluate`, to any batch outside.
    ///
    /// # Shapes
    ///
    /// - input: `[members · rows, ...]` inside `evaluate`, member-major, every tensor; `[rows, ...]` outside
    /// - output: the same leading axis, every tensor
    ///
    /// # Panics
    ///
    /// Panics if `input` differs from the example and cannot be recorded, with the [`GraphError`]; if its rows are not a multiple of
    /// the members; and as the forward does.
    #[track_caller]
    pub fn forward(&self, model: &M, input: X) -> Y {
        self.apply(model, input, false)
    }

    /// Applies the model to rows that all members share: the product of a first layer with them, and everything that depends only on
    /// them, is computed once. Results equal [`forward`](Self::forward) on the rows repeated for every member.
    ///
    /// # Shapes
    ///
    /// - input: `[rows, ...]`, every tensor
    /// - output: `[members · rows, ...]` inside `evaluate`, member-major, every tensor; `[rows, ...]` outside
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    #[track_caller]
    pub fn forward_shared(&self, model: &M, input: X) -> Y {
        self.apply(model, input, true)
    }

    #[track_caller]
    fn apply(&self, model: &M, input: X, shared: bool) -> Y {
        let parameters = parameters(model);
        // What has `no_grad()` in the model has it in clones too.
        let mut perturbed = parameters.iter().filter_map(|parameter| parameter.active.as_ref());
        let Some(active) = perturbed.find(|active| !active.is_inactive()) else {
            return (self.forward)(model, input);
        };
        let parts = input.parts();
        if let Some(rows) = parts.first().and_then(|part| part.shape().to_vec().first().copied()) {
            active.check_input(if shared { InputRows::Shared } else { InputRows::PerMember }, rows);
        }
        let program = self.program(model, &parameters, &parts, active.pairs().members(), shared);
        let program = program.unwrap_or_else(|error| panic!("graph: {error}"));
        Y::rebuild(&mut execute::run(&program, &parameters, parts).into_iter())
    }

    /// The program for inputs of this form, recorded if there is none of this scope yet.
    fn program(
        &self,
        model: &M,
        parameters: &[Parameter],
        inputs: &[DispatchTensor],
        members: usize,
        shared: bool,
    ) -> Result<Arc<GraphProgram>, GraphError> {
        let times = if shared { members } else { 1 };
        let forms = inputs.iter().map(|input| multiplied((input.shape().to_vec(), input.dtype()), times));
        let forms: Vec<InputForm> = forms.collect();
        let perturbed = parameters.iter().map(|parameter| parameter.is_perturbed).collect();
        let shapes = Shapes { inputs: forms.clone(), perturbed, members, shared };
        let scope =
            parameters.iter().find_map(|parameter| parameter.active.as_ref()).map(ActiveParameter::scope_number);
        // A forward that panicked has left no program, and Burn has closed its recording.
        let mut recorder = locked(&self.recorder);
        if let Some(known) =
            recorder.programs.get(&shapes).filter(|known| scope.is_none_or(|it| known.scopes.contains(&it)))
        {
            return Ok(known.program.clone());
        }
        let refused =
            |reason| GraphError::Input { shapes: forms.iter().map(|(shape, _)| shape.clone()).collect(), reason };
        let Some(first) = inputs.first() else {
            return Err(refused("there are none"));
        };
        if forms.iter().any(|(shape, _)| shape.first().is_none_or(|rows| *rows == 0 || !rows.is_multiple_of(members))) {
            return Err(refused("every leading axis must be a multiple of the members"));
        }
        let Some(mut on) = interpreter(first) else {
            return Err(refused("no backend that is built in runs graphs there"));
        };
        let settings = Device::new(first.device()).settings();
        let doubled: Vec<InputForm> = forms.iter().map(|form| multiplied(form.clone(), 2)).collect();
        let device = recorder.device.clone();
        let record = |forms: &[InputForm]| trace(&device, settings, model, forms, &*self.forward);
        let trace = record(&forms)?;
        let form = trace.form();
        if let Some(known) = recorder.programs.get_mut(&shapes).filter(|known| known.form == form) {
            known.scopes.extend(scope);
            while known.scopes.len() > SCOPES {
                known.scopes.pop_front();
            }
            return Ok(known.program.clone());
        }
        let other = record(&doubled)?;
        let program = rewrite::rewrite(trace, &other, parameters, members, shared, on.as_mut())?;
        let program = Arc::new(program);
        recorder
            .programs
            .insert(shapes, Recorded { program: program.clone(), form, scopes: scope.into_iter().collect() });
        Ok(program)
    }
}

/// The form of `times` as many rows.
fn multiplied((mut shape, dtype): InputForm, times: usize) -> InputForm {
    if let Some(rows) = shape.first_mut() {
        *rows *= times;
    }
    (shape, dtype)
}

impl<M, X, Y> fmt::Debug for PopulationGraph<M, X, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PopulationGraph").finish_non_exhaustive()
    }
}
