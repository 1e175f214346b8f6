//! What every parameter learns from: the score of each part, or the mean.

use crate::fitness::Fitness;
use crate::population::{Population, RowCheck};
use burn::tensor::{Int, Tensor, TensorData};
use eggroll_core::messages::listed;
use eggroll_core::ops::{Input, orthonormal_rows};
use eggroll_core::scope::Inputs;
use eggroll_core::sync::locked;
use eggroll_core::{MatrixView, NoiseOnRows, ParameterEntry, ParameterKind, Role};
use std::collections::HashSet;
use std::fmt;

/// What a parameter learns from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterCredit {
    /// The score of every part, whose estimate is projected onto the part's own row.
    Parts {
        /// Whether the scores of later steps count too.
        acts_later: bool,
    },
    /// The score of every part, whose estimate is projected onto the span of the part's rows.
    Span {
        /// Rows of a part.
        rows: usize,
    },
    /// The mean score.
    Mean {
        /// Why.
        because: String,
    },
}

impl fmt::Display for ParameterCredit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts { acts_later: false } => f.write_str("by part"),
            Self::Parts { acts_later: true } => f.write_str("by part, with later steps"),
            Self::Span { rows } => write!(f, "by part, onto the span of its {rows} rows"),
            Self::Mean { because } => write!(f, "from the mean ({because})"),
        }
    }
}

/// What every trained parameter learns from. Its [`Display`](fmt::Display) is a line for each kind, with the paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credits {
    /// Paths, in the order of the model.
    pub parameters: Vec<(String, ParameterCredit)>,
}

impl Credits {
    pub(crate) fn new(population: &Population, fitness: &Fitness) -> Self {
        let of = |(entry, plan): (&ParameterEntry, EstimatePlan)| (entry.path.clone(), plan.credit());
        let entries = population.perturbation.table.entries();
        let trained = entries.iter().zip(plans(population, fitness)).filter(|(entry, _)| entry.role != Role::Frozen);
        Self { parameters: trained.map(of).collect() }
    }
}

impl Credits {
    fn kinds(&self) -> Vec<(&ParameterCredit, Vec<&str>)> {
        let mut kinds: Vec<(&ParameterCredit, Vec<&str>)> = Vec::new();
        for (path, credit) in &self.parameters {
            match kinds.iter_mut().find(|(kind, _)| *kind == credit) {
                Some((_, paths)) => paths.push(path),
                None => kinds.push((credit, vec![path])),
            }
        }
        kinds
    }

    /// How many parameters learn by part, and a line for each reason why others do not; `None` if none does.
    pub fn summary(&self) -> Option<String> {
        let by_part = |credit: &ParameterCredit| !matches!(credit, ParameterCredit::Mean { .. });
        let count = self.parameters.iter().filter(|(_, credit)| by_part(credit)).count();
        let rest = self.kinds().into_iter().filter(|(kind, _)| !by_part(kind));
        let rest: String = rest.map(|(kind, paths)| format!("\n  {kind}: {}", listed(&paths))).collect();
        (count > 0).then(|| format!("{count} of {} parameters learn by part{rest}", self.parameters.len()))
    }
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> =
            self.kinds().iter().map(|(kind, paths)| format!("{kind}: {}", listed(paths))).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// How the estimate of a parameter is made.
pub(crate) enum EstimatePlan {
    /// From the score of every part.
    Parts {
        /// Uses of the parameter, each with one row for each weight.
        uses: Vec<Input>,
        /// Rows of each part: its weights count for each of them.
        rows: usize,
        /// 0 for rows that add nothing to other rows of their part, else 1; `None` if all count.
        counted: Option<Vec<f32>>,
        acts_later: bool,
    },
    /// From the mean weights, projected onto the span of these rows.
    Projected(Tensor<2>),
    /// From the mean weights.
    Mean(String),
}

impl EstimatePlan {
    pub fn is_by_part(&self) -> bool {
        !matches!(self, Self::Mean(_))
    }

    /// Whether it takes the score of every part itself.
    pub fn has_parts(&self) -> bool {
        matches!(self, Self::Parts { .. })
    }

    pub fn credit(&self) -> ParameterCredit {
        match self {
            Self::Parts { rows: 1, acts_later, .. } => ParameterCredit::Parts { acts_later: *acts_later },
            Self::Parts { rows, .. } => ParameterCredit::Span { rows: *rows },
            Self::Projected(x) => ParameterCredit::Span { rows: x.dims()[0] },
            Self::Mean(because) => ParameterCredit::Mean { because: because.clone() },
        }
    }
}

/// How the estimate of each parameter is made, by position in the table.
pub(crate) fn plans(population: &Population, fitness: &Fitness) -> Vec<EstimatePlan> {
    let entries = population.perturbation.table.entries();
    let noted = locked(&population.inputs);
    let (parts, steps) = (fitness.tasks(), fitness.steps());
    let projects = population.credit.projects(parts);
    let Some(inputs) = noted.as_deref().filter(|_| projects) else {
        let because = match (projects, population.credit) {
            (true, _) => "nothing noted what layers were given",
            (false, crate::config::Credit::Mean) => "credit is mean",
            (false, _) => "every member has one score",
        };
        return entries.iter().map(|_| EstimatePlan::Mean(because.to_owned())).collect();
    };
    let checks = population.row_checks();
    let check = |at: usize| checks.as_ref().map_or(RowCheck::Unknown, |checks| checks[at]);
    let each = entries.iter().zip(inputs).enumerate();
    each.map(|(at, (entry, inputs))| population.plan(entry, inputs, check(at), [parts, steps])).collect()
}

impl Population {
    /// Plans the estimate of a parameter that was given `inputs`, from scores of sequences of parts.
    pub(super) fn plan(
        &self,
        entry: &ParameterEntry,
        inputs: &Inputs,
        check: RowCheck,
        [parts, steps]: [usize; 2],
    ) -> EstimatePlan {
        let mean = |because: &str| EstimatePlan::Mean(because.to_owned());
        let plan = || plan(entry, inputs, check, parts, steps);
        match entry.kind {
            _ if entry.role == Role::Frozen => mean("frozen"),
            ParameterKind::Float => plan(),
            _ if !self.moves_integers => mean("integers learn from all parts' votes where a threshold moves them"),
            _ => match plan() {
                plan @ (EstimatePlan::Parts { rows: 1, counted: None, .. } | EstimatePlan::Mean(_)) => plan,
                _ => mean("integers learn by part from one row of each"),
            },
        }
    }
}

fn plan(entry: &ParameterEntry, inputs: &Inputs, check: RowCheck, parts: usize, steps: usize) -> EstimatePlan {
    let mean = |because: &str| EstimatePlan::Mean(because.to_owned());
    let Some(view) = MatrixView::of(&entry.shape) else {
        return mean("a vector: by part the same");
    };
    // A generation may have two evaluations: the first may have noted its inputs before this was known.
    let check = if inputs.differ && check.allows_parts() { RowCheck::ByMember } else { check };
    if !check.allows_parts() {
        return mean(&check.to_string());
    }
    let by_row = |uses: Vec<Input>| EstimatePlan::Parts { uses, rows: 1, counted: None, acts_later: inputs.acts_later };
    let uses = &inputs.uses;
    if parts > 1 && NoiseOnRows::projects(uses) && uses.iter().all(|used| used.rows() == parts) {
        return by_row(uses.clone());
    }
    if let Some(x) = (steps > 1 && inputs.acts_later).then(|| of_recurrence(uses, parts / steps, steps)).flatten() {
        return by_row(vec![Input::Rows(x)]);
    }
    match uses.as_slice() {
        [] => mean("not used"),
        [Input::Indices(indices)] if indices.dims()[0].is_multiple_of(parts) => lookups(indices.clone(), parts),
        [Input::Rows(first), ..] if uses.iter().all(|used| matches!(used, Input::Rows(_))) => {
            let all: usize = uses.iter().map(Input::rows).sum();
            if uses.iter().any(|used| used.rows() == 0 || !used.rows().is_multiple_of(parts)) {
                let uses = if uses.len() == 1 { String::new() } else { format!(" in {} uses", uses.len()) };
                return mean(&format!("it was given {all} rows{uses} for {parts} parts"));
            }
            if all / parts >= view.d_input {
                return mean(&format!("{} rows of a part span all {} inputs", all / parts, view.d_input));
            }
            match (parts, uses.len()) {
                (1, 1) => EstimatePlan::Projected(first.clone()),
                _ => span(inputs, parts, view.d_input),
            }
        }
        [Input::Rows(_) | Input::Transposed(_) | Input::Indices(_)] => {
            mean(&format!("it was given {} rows for {parts} parts", uses[0].rows()))
        }
        [Input::Other] => mean("its use has no rows"),
        _ => mean("it is used several times"),
    }
}

/// The rows `[sequences · steps, d_input]` that a recurrence gave a layer, one for each sequence at every step, in the order of the scores.
fn of_recurrence(uses: &[Input], sequences: usize, steps: usize) -> Option<Tensor<2>> {
    let row = |used: &Input| match used {
        Input::Rows(x) if x.dims()[0] == sequences => Some(x.clone()),
        _ => None,
    };
    let rows: Vec<Tensor<2>> =
        uses.iter().map(row).collect::<Option<_>>().filter(|rows: &Vec<_>| rows.len() == steps)?;
    let [_, width] = rows[0].dims();
    Some(Tensor::stack::<3>(rows, 1).reshape([sequences * steps, width])) // [sequences, steps, width]
}

/// The span of several rows of each part.
fn span(inputs: &Inputs, parts: usize, width: usize) -> EstimatePlan {
    let rows = inputs.uses.iter().filter_map(|used| match used {
        Input::Rows(x) => Some(x.clone().reshape([parts, used.rows() / parts, width])),
        _ => None,
    });
    let basis = orthonormal_rows(Tensor::cat(rows.collect(), 1)); // [parts, rows, width]
    let [_, rows, _] = basis.dims();
    let uses = vec![Input::Rows(basis.reshape([parts * rows, width]))];
    EstimatePlan::Parts { uses, rows, counted: None, acts_later: inputs.acts_later }
}

/// The rows that each part has looked up, each once.
fn lookups(indices: Tensor<1, Int>, parts: usize) -> EstimatePlan {
    let rows = indices.dims()[0] / parts;
    let read: Vec<i64> = indices.to_data().iter::<i64>().collect();
    let counted = read.chunks(rows).flat_map(|of_part| {
        let mut seen = HashSet::new();
        of_part.iter().map(|index| f32::from(u8::from(seen.insert(*index)))).collect::<Vec<_>>()
    });
    let counted = counted.collect();
    EstimatePlan::Parts { uses: vec![Input::Indices(indices)], rows, counted: Some(counted), acts_later: false }
}

/// The weights `[parts · rows, pairs]` of the rows that parts gave a parameter, from the weights of the parts.
pub(crate) fn weights_of_rows(weights: &[f32], pairs: usize, rows: usize, counted: Option<&[f32]>) -> TensorData {
    if rows == 1 && counted.is_none() {
        return TensorData::new(weights.to_vec(), [weights.len() / pairs, pairs]);
    }
    // Convolutions have millions: whole rows at a time.
    let mut values = Vec::with_capacity(weights.len() * rows);
    for (part, of_part) in weights.chunks(pairs).enumerate() {
        for row in part * rows..(part + 1) * rows {
            match counted {
                None => values.extend_from_slice(of_part),
                Some(counted) => values.extend(of_part.iter().map(|weight| weight * counted[row])),
            }
        }
    }
    let rows = values.len() / pairs;
    TensorData::new(values, [rows, pairs])
}
