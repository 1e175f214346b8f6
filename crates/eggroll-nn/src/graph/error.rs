//! Reasons for refusing a graph.

use eggroll_core::TableError;
use eggroll_core::messages::listed;
use std::fmt;

/// A forward that cannot become a [`PopulationGraph`](super::PopulationGraph).
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum GraphError {
    /// A parameter is used in an operation that has no perturbed form.
    UnsupportedUse {
        /// The operation.
        operation: String,
        /// Path of the parameter, or of one that the operand was computed from.
        parameter: String,
    },
    /// A parameter meets rows whose members are not on the leading axis.
    BatchAxis {
        /// The operation.
        operation: String,
        /// Path of the parameter, or of one that the operand was computed from.
        parameter: String,
        /// Shape of the tensor.
        shape: Vec<usize>,
    },
    /// An operation joins rows of different members.
    MixesRows {
        /// The operation.
        operation: String,
        /// Shape of its result.
        shape: Vec<usize>,
    },
    /// An output has no rows.
    Output {
        /// Position among the outputs.
        output: usize,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// The forward does other things for another batch size.
    ShapeDependent {
        /// Position of the first operation that differs.
        position: usize,
    },
    /// The inputs have no rows, or lie where graphs do not run.
    Input {
        /// Their shapes.
        shapes: Vec<Vec<usize>>,
        /// The reason.
        reason: &'static str,
    },
    /// The model has no parameter of floating point.
    NoParameter,
    /// The parameter is quantized: Burn's capture does not record quantized tensors.
    Quantized(String),
    /// The model's parameters.
    Table(TableError),
    /// Burn could not record the forward.
    Capture(String),
    /// The batched forward of a small population differs from that of its members one by one.
    Differs {
        /// Position among the outputs.
        output: usize,
        /// Largest difference.
        difference: f64,
        /// Largest effect of the noise on the output.
        effect: f64,
    },
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedUse { operation, parameter } => {
                write!(f, "the parameter \"{parameter}\" is used by {operation}, which has no perturbed form")
            }
            Self::BatchAxis { operation, parameter, shape } => write!(
                f,
                "the parameter \"{parameter}\" meets a tensor {shape:?} in {operation}: the batch must be its leading axis, \
                 and no other"
            ),
            Self::MixesRows { operation, shape } => write!(
                f,
                "{operation} joins rows of the batch into a tensor {shape:?}: members of a population would mix"
            ),
            Self::Output { output, shape } => {
                write!(f, "output {output} of the forward, {shape:?}, has no batch on its leading axis")
            }
            Self::ShapeDependent { position } => {
                write!(f, "the forward depends on the batch size, from its operation {position} on")
            }
            Self::Input { shapes, reason } => {
                write!(f, "inputs {} cannot be run as a graph: {reason}", listed(shapes))
            }
            Self::Quantized(path) => write!(
                f,
                "the parameter \"{path}\" is quantized, which Burn's capture does not record. Use eggroll_nn::Linear \
                 or Embedding, which take quantized weights with adapters, or dequantize it"
            ),
            Self::NoParameter => write!(f, "the model has no parameter of floating point"),
            Self::Table(error) => write!(f, "{error}"),
            Self::Capture(error) => write!(f, "the forward cannot be recorded: {error}"),
            Self::Differs { output, difference, effect } => write!(
                f,
                "output {output} of the batched forward differs by {difference:e} from the forward of one member, \
                 where the noise has an effect of {effect:e}. Rows of the batch depend on each other: compute each \
                 row from its own input, or use evaluate_each"
            ),
        }
    }
}

eggroll_core::debug_is_message!(GraphError);

impl std::error::Error for GraphError {}
