//! A parameter under a perturbation.

use super::{CloneError, FRAMES, Frame, ParameterUse, suspended};
use crate::arithmetic::integer::INT8_LIMIT;
use crate::model::identity::ParameterTensor;
use crate::noise::role::{ParameterNoise, Role};
use crate::ops::integer::IntegerNoise;
use crate::ops::{Input, InputRows, LinearMembers};
use crate::rng::key::PairRange;
use burn::module::Param;
use burn::tensor::kind::Basic;
use burn::tensor::{DType, Int, Tensor};
use std::rc::Rc;

/// The current perturbation of `param` on this thread, if any. A module asks with its own field, not with a clone of it: clones with
/// `no_grad()` have none.
///
/// # Panics
///
/// Panics with the [`CloneError`] where [`try_active`] returns it.
#[track_caller]
pub fn active<T: ParameterTensor>(param: &Param<T>) -> Option<ActiveParameter> {
    match try_active(param) {
        Ok(active) => active,
        Err(error) => panic!("{error}"),
    }
}

/// [`active`], or an error if the field cannot be told from a clone.
///
/// # Errors
///
/// [`CloneError`] if the scope has already met all fields of this identifier that the model has, or one with other
/// values.
pub fn try_active<T: ParameterTensor>(param: &Param<T>) -> Result<Option<ActiveParameter>, CloneError> {
    let active = FRAMES.with_borrow(|frames| {
        frames.iter().rev().find_map(|frame| {
            let position = frame.perturbation.table.position(param.id)?;
            Some(ActiveParameter { frame: frame.clone(), position })
        })
    });
    let Some(active) = active else { return Ok(None) };
    let ActiveParameter { frame, position } = &active;
    let table = &frame.perturbation.table;
    let is_own = frame.fields.borrow_mut()[*position].admit(param, table, *position)?;
    Ok(is_own.then_some(active))
}

/// The bias of a linear layer: the values, and the parameter if it is perturbed.
pub type Bias = (Tensor<1>, Option<ActiveParameter>);

/// The input of an integer operation for a parameter.
#[derive(Debug)]
pub enum IntegerInput {
    /// Rows that multiply it: `[rows, d_input]`.
    Rows(Tensor<2, Int>),
    /// Rows that multiply its transpose: `[rows, d_output]`.
    Transposed(Tensor<2, Int>),
    /// Rows of it that are looked up.
    Indices(Tensor<1, Int>),
    /// An input that no estimate can be projected onto.
    Other,
}

/// A parameter inside a scope of its model.
#[derive(Clone, Debug)]
pub struct ActiveParameter {
    frame: Rc<Frame>,
    position: usize,
}

impl ActiveParameter {
    /// The number of its scope, which no other scope of this process has.
    pub fn scope_number(&self) -> u64 {
        self.frame.number
    }

    /// Whether the parameter has `no_grad()`, in the model and in clones: it has no noise, and the rows may belong to a teacher.
    pub fn is_inactive(&self) -> bool {
        self.frame.perturbation.table.is_inactive(self.position)
    }

    /// Whether the parameter is not perturbed, by `no_grad()` or by its role.
    pub fn is_frozen(&self) -> bool {
        self.frame.perturbation.table.entries()[self.position].role == Role::Frozen
    }

    /// The parameter's noise; notes how it is used.
    pub fn noise(&self, how: ParameterUse) -> ParameterNoise {
        self.frame.uses.borrow_mut()[self.position].add(how);
        self.frame.perturbation.parameter(self.position)
    }

    /// The parameter's noise for an integer operation; notes that it is used. `None` if it is frozen, or members have no noise.
    pub fn integer_noise(&self) -> Option<IntegerNoise> {
        self.frame.uses.borrow_mut()[self.position].add(ParameterUse::Other);
        // Held noise has no scale that could be 0.
        let has_noise = self.frame.inputs.is_none() && self.frame.moves.is_none();
        has_noise.then(|| self.frame.perturbation.integer(self.position, self.frame.pairs)).flatten()
    }

    /// Checks that `rows`, which an operation is about to distribute over all members, were made as rows of members.
    ///
    /// # Panics
    ///
    /// Panics if there are none, or if no rows noted in the scope by [`note_rows`](super::note_rows) can be their source.
    #[track_caller]
    pub fn check_rows(&self, rows: usize) {
        self.refuse_empty(&[rows]);
        if self.is_inactive() {
            return;
        }
        let Some(noted) = self.frame.noted.take() else { return };
        // Only the first rows come from the program; rows of later operations derive from them.
        assert!(
            noted.iter().any(|noted| *noted > 0 && rows.is_multiple_of(*noted)),
            "forward was given {rows} rows for \"{}\" that were never repeated for the {} members of the chunk{}. In \
             evaluate it takes [members · rows, ...]: give it members.repeat(x), or call forward_shared(x) on a \
             first layer. For rows that already belong to the members, use members.assume_repeated(x)",
            self.frame.perturbation.table.entries()[self.position].path,
            self.frame.pairs.members(),
            if noted.is_empty() { String::new() } else { format!(" (others were: {noted:?} rows)") },
        );
    }

    /// [`check_rows`](Self::check_rows) for rows that are not shared; shared rows are expanded to rows of members.
    #[track_caller]
    pub fn check_input(&self, input: InputRows, rows: usize) {
        match input {
            InputRows::Shared => {
                self.refuse_empty(&[rows]);
                drop(self.frame.noted.take());
            }
            InputRows::PerMember => self.check_rows(rows),
        }
    }

    /// Refuses an input of this shape if it has no values, since no member could be scored by it.
    ///
    /// # Panics
    ///
    /// Panics if an axis has the length 0, with the shape.
    #[track_caller]
    pub fn refuse_empty(&self, dims: &[usize]) {
        assert!(
            !dims.contains(&0),
            "the input of shape {dims:?} that forward was given for \"{}\" has no values: inside evaluate, a layer \
             takes one row or more",
            self.frame.perturbation.table.entries()[self.position].path
        );
    }

    /// Refuses shared rows that already belong to the members, by their number: every member would get all members' rows.
    #[track_caller]
    fn check_shared(&self, rows: usize) {
        let members = self.frame.pairs.members();
        assert!(
            !self.frame.checks || !self.frame.returned.get().contains(&rows) || rows == 0,
            "forward_shared was given {rows} rows for \"{}\", as many as a layer has returned for the {members} \
             members of the chunk. Use forward for rows of members. If all members share these rows, apply this \
             layer before layers that return rows of members",
            self.frame.perturbation.table.entries()[self.position].path,
        );
    }

    fn note_returned(&self, rows: usize) {
        let [a, b, c, d] = self.frame.returned.get();
        if ![a, b, c, d].contains(&rows) {
            self.frame.returned.set([rows, a, b, c]);
        }
    }

    /// The members of the scope.
    pub fn pairs(&self) -> PairRange {
        self.frame.pairs
    }

    /// A linear layer with this parameter as its weight; see [`ParameterNoise::linear`].
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit.
    #[track_caller]
    pub fn linear(
        &self,
        x: Tensor<2>,
        weight: Tensor<2>,
        bias: Option<&Param<Tensor<1>>>,
        input: InputRows,
    ) -> Tensor<2> {
        self.linear_with(x, weight, bias.map(|bias| (bias.val(), active(bias))), input)
    }

    /// [`linear`](Self::linear) with the values of a bias.
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit.
    #[track_caller]
    pub fn linear_with(&self, x: Tensor<2>, weight: Tensor<2>, bias: Option<Bias>, input: InputRows) -> Tensor<2> {
        let rows = x.dims()[0];
        self.check_input(input, rows);
        if input == InputRows::Shared {
            self.check_shared(rows);
        }
        self.note_input(input, &x, Input::Rows);
        let weight_noise = self.noise(match input {
            InputRows::Shared => ParameterUse::Shared(Box::new(x.clone())),
            InputRows::PerMember => ParameterUse::Other,
        });
        let bias = bias.map(|(values, bias)| {
            // A bias that is not of this model has no noise here: it stays plain.
            let plain = ParameterNoise { role: Role::Frozen, ..weight_noise.clone() };
            (values, bias.map_or(plain, |bias| bias.noise(ParameterUse::Other)))
        });
        let members = LinearMembers { pairs: self.frame.pairs, input };
        let y = self.moved(suspended(|| weight_noise.linear(x, weight, bias, members)));
        self.note_returned(y.dims()[0]);
        self.count_output(y.shape().num_elements() * y.dtype().size());
        y
    }

    /// `x·Wᵀ` with this parameter as the weight `[d_output, d_input]`; see [`ParameterNoise::linear_transposed`].
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit.
    #[track_caller]
    pub fn linear_transposed(&self, x: Tensor<2>, weight: Tensor<2>, input: InputRows) -> Tensor<2> {
        self.check_input(input, x.dims()[0]);
        self.note_input(input, &x, Input::Transposed);
        let members = LinearMembers { pairs: self.frame.pairs, input };
        let noise = self.noise(ParameterUse::Other);
        let y = self.moved(suspended(|| noise.linear_transposed(x, weight, members)));
        self.count_output(y.shape().num_elements() * y.dtype().size());
        y
    }

    /// Rows of this parameter as a weight; see [`ParameterNoise::embedding`].
    ///
    /// # Panics
    ///
    /// Panics if shapes do not fit.
    #[track_caller]
    pub fn embedding(&self, indices: Tensor<1, Int>, weight: Tensor<2>, input: InputRows) -> Tensor<2> {
        self.check_input(input, indices.dims()[0]);
        self.note_input(input, &indices, Input::Indices);
        self.moved(self.rows(indices, weight, input))
    }

    /// This parameter as a weight under every member's noise, for uses that need its values: `[d_input, d_output]` to
    /// `[members · d_input, d_output]`.
    #[track_caller]
    pub fn matrix(&self, weight: Tensor<2>) -> Tensor<2> {
        let all = Tensor::<1, Int>::arange(0..weight.dims()[0] as i64, &weight.device());
        self.check_input(InputRows::Shared, all.dims()[0]);
        self.note_other();
        self.rows(all, weight, InputRows::Shared)
    }

    #[track_caller]
    fn rows(&self, indices: Tensor<1, Int>, weight: Tensor<2>, input: InputRows) -> Tensor<2> {
        let members = LinearMembers { pairs: self.frame.pairs, input };
        let noise = self.noise(ParameterUse::Other);
        let y = suspended(|| noise.embedding(indices, weight, members));
        self.count_output(y.shape().num_elements() * y.dtype().size());
        y
    }

    /// This parameter, `vector`, under every member's noise: `[n]` to `[members, n]`; see [`ParameterNoise::vector`].
    pub fn vector(&self, vector: &Param<Tensor<1>>) -> Tensor<2> {
        self.vector_of(vector.val())
    }

    /// [`vector`](Self::vector) of its values.
    pub fn vector_of(&self, vector: Tensor<1>) -> Tensor<2> {
        self.note_other();
        let noise = self.noise(ParameterUse::Other);
        let values = suspended(|| noise.vector(vector, self.frame.pairs));
        self.count_output(values.shape().num_elements() * values.dtype().size());
        values
    }

    /// If inputs are noted, notes the first member's input of the parameter, and whether the other member's differs.
    fn note_input<const D: usize, K: Basic>(
        &self,
        input: InputRows,
        x: &Tensor<D, K>,
        noted: impl FnOnce(Tensor<D, K>) -> Input,
    ) {
        let Some(inputs) = &self.frame.inputs else { return };
        let rows = x.dims()[0];
        let member = |number: usize| x.clone().slice_dim(0, number * (rows / 2)..(number + 1) * (rows / 2));
        let (one, differ) = match input {
            InputRows::Shared => (x.clone(), false),
            InputRows::PerMember => (member(0), member(0).to_data() != member(1).to_data()),
        };
        let inputs = &mut inputs.borrow_mut()[self.position];
        inputs.uses.push(noted(one));
        inputs.differ |= differ;
        inputs.acts_later |= self.frame.acts_later.get();
    }

    /// Notes the input of an integer operation for the parameter, if inputs are noted; otherwise `given` is not called.
    pub fn note_integers(&self, given: impl FnOnce() -> IntegerInput) {
        if self.frame.inputs.is_none() {
            return;
        }
        let member = InputRows::PerMember;
        match given() {
            IntegerInput::Rows(x) => self.note_input(member, &x.float().cast(DType::F32), Input::Rows),
            IntegerInput::Transposed(x) => self.note_input(member, &x.float().cast(DType::F32), Input::Transposed),
            IntegerInput::Indices(indices) => self.note_input(member, &indices, Input::Indices),
            IntegerInput::Other => self.note_other(),
        }
    }

    /// The output of an integer operation with this parameter, with the rows that the scope [moves](super::MovedRows).
    pub fn moved_integers(&self, y: Tensor<2, Int>) -> Tensor<2, Int> {
        if self.frame.moves.is_none() {
            return y;
        }
        let dtype = y.dtype();
        self.moved(y.float().cast(DType::F32)).round().clamp(-INT8_LIMIT, INT8_LIMIT).int().cast(dtype)
    }

    /// The output of a use of the parameter, with the rows that the scope [moves](super::MovedRows).
    fn moved(&self, y: Tensor<2>) -> Tensor<2> {
        match &self.frame.moves {
            Some(moves) => moves.apply(self.position, self.frame.pairs.members(), y),
            None => y,
        }
    }

    /// Notes a use without rows to project onto.
    fn note_other(&self) {
        if let Some(inputs) = &self.frame.inputs {
            inputs.borrow_mut()[self.position].uses.push(Input::Other);
        }
    }

    fn count_output(&self, bytes: usize) {
        self.frame.output_bytes.set(self.frame.output_bytes.get() + bytes as u64);
    }
}
