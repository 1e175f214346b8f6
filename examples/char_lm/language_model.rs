//! What the run needs of a model in addition to its predictions.

use super::args::{CharLmSettings, ModelSettings};
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use eggroll::nn::integer::transformer::{Transformer, TransformerState};
use eggroll::nn::integer::{EggModel, EggState, SavedState};
use eggroll::prelude::*;
use eggroll::run::diagnostics::{ActivationStatistics, IntegerStatistics, changed_share, integer_statistics};
use eggroll::run::text::{ByteModel, ByteStreams};

/// A model that `char_lm` can train.
pub trait LanguageModel: ByteModel + Sync {
    /// What `--model` calls it.
    const NAME: &'static str;
    /// The members' state as checkpoints save it.
    type Saved: Module + From<Self::State> + Into<Self::State>;
    /// If members keep their state from one generation to the next. Otherwise each reads its bytes from the initial state.
    const KEEPS_STATE: bool = true;
    /// If [activations](Self::activations) are known.
    const SHOWS_ACTIVATIONS: bool = false;

    /// A model of `vocab` tokens with random weights.
    fn new(settings: &CharLmSettings, own: &ModelSettings, vocab: usize, device: &Device) -> Self;

    /// How it is trained, on a CPU or another device.
    fn strategy(settings: &CharLmSettings, own: &ModelSettings, cpu: bool) -> EvolutionStrategyConfig;

    /// The scores of a generation. Each group of members reads a stream; without groups, all members read the same streams. `state` is of
    /// all members, or of the streams.
    fn evaluate(
        &self,
        population: &Population,
        streams: &ByteStreams,
        group_size: Option<usize>,
        state: &mut Self::State,
    ) -> Fitness {
        let Some(group_size) = group_size else { return self.evaluate_by_token(population, streams, state) };
        let batch = streams.batch(population.generation(), group_size, &self.device());
        let score = |members: &MemberChunk, state: Self::State| {
            let (logits, state) = self.forward(members.rows(batch.inputs.clone()), state); // [members, steps, vocab]
            let targets = members.rows(batch.targets.clone()).flatten::<1>(0, 1); // [members · steps]
            (Self::log_likelihood(logits.flatten::<2>(0, 1), targets, members.count()), state)
        };
        if !Self::KEEPS_STATE {
            return population.evaluate(|members| score(members, self.initial_state(members.count())).0);
        }
        let (fitness, kept) = population.evaluate_with_state(state.clone(), score);
        *state = kept;
        fitness
    }

    /// The scores of every token of streams that all members read.
    fn evaluate_by_token(&self, population: &Population, streams: &ByteStreams, state: &mut Self::State) -> Fitness;

    /// Share of weights that differ, where weights move by whole steps.
    fn changed_share(before: &Self, after: &Self) -> Option<f64>;

    /// What is to be watched in its integer parameters.
    fn statistics(&self) -> Vec<IntegerStatistics>;

    /// What is to be watched in its activations on a text, if they are known.
    fn activations(&self, _text: &[u8]) -> Option<ActivationStatistics> {
        None
    }
}

/// A score for every token of sequences that all members have read: `[members, sequences, steps]` of targets `[sequences, steps]`.
fn token_scores<M: ByteModel<Kind = Int, LogLikelihood = Tensor<1, Int>>>(
    members: &MemberChunk,
    logits: Tensor<3, Int>,
    targets: Tensor<2, Int>,
) -> Tensor<3, Int> {
    let [sequences, steps] = targets.dims();
    let targets = members.repeat(targets).flatten::<1>(0, 1);
    let [rows] = targets.dims();
    M::log_likelihood(logits.flatten::<2>(0, 1), targets, rows).reshape([members.count(), sequences, steps])
}

impl LanguageModel for EggModel {
    const NAME: &'static str = "integer";
    type Saved = SavedState;

    fn new(settings: &CharLmSettings, _own: &ModelSettings, vocab: usize, device: &Device) -> Self {
        settings.integer_model(vocab).init(device)
    }

    fn strategy(settings: &CharLmSettings, own: &ModelSettings, cpu: bool) -> EvolutionStrategyConfig {
        settings.integer_strategy(own, cpu)
    }

    fn evaluate_by_token(&self, population: &Population, streams: &ByteStreams, state: &mut EggState) -> Fitness {
        let batch = streams.batch(population.generation(), 1, &self.device());
        let fitness = population.evaluate(|members| {
            let layers = state.layers.iter().map(|layer| members.repeat(layer.clone())).collect();
            let (logits, _) = EggModel::forward(self, members.repeat(batch.inputs.clone()), EggState { layers });
            token_scores::<Self>(members, logits, batch.targets.clone())
        });
        *state = EggModel::forward(self, batch.inputs, state.clone()).1;
        fitness
    }

    fn changed_share(before: &Self, after: &Self) -> Option<f64> {
        Some(changed_share(before, after))
    }

    fn statistics(&self) -> Vec<IntegerStatistics> {
        integer_statistics(self)
    }
}

impl LanguageModel for Transformer {
    const NAME: &'static str = "transformer";
    type Saved = Nothing;
    const KEEPS_STATE: bool = false;
    const SHOWS_ACTIVATIONS: bool = true;

    fn new(settings: &CharLmSettings, own: &ModelSettings, vocab: usize, device: &Device) -> Self {
        settings.transformer(own, vocab).init(device)
    }

    fn strategy(settings: &CharLmSettings, own: &ModelSettings, cpu: bool) -> EvolutionStrategyConfig {
        settings.integer_strategy(own, cpu)
    }

    fn evaluate_by_token(&self, population: &Population, streams: &ByteStreams, _: &mut TransformerState) -> Fitness {
        let batch = streams.batch(population.generation(), 1, &self.device());
        population.evaluate(|members| {
            let tokens = members.repeat(batch.inputs.clone());
            let [rows, _] = tokens.dims();
            let (logits, _) = ByteModel::forward(self, tokens, ByteModel::initial_state(self, rows));
            token_scores::<Self>(members, logits, batch.targets.clone())
        })
    }

    fn changed_share(before: &Self, after: &Self) -> Option<f64> {
        Some(changed_share(before, after))
    }

    fn statistics(&self) -> Vec<IntegerStatistics> {
        integer_statistics(self)
    }

    fn activations(&self, text: &[u8]) -> Option<ActivationStatistics> {
        Some(ActivationStatistics::new(self, text))
    }
}

/// What is saved of a state that is not kept.
#[derive(Module, Debug)]
pub struct Nothing {
    nothing: Vec<Param<Tensor<1, Int>>>,
}

impl From<TransformerState> for Nothing {
    fn from(_: TransformerState) -> Self {
        Self { nothing: Vec::new() }
    }
}

impl From<Nothing> for TransformerState {
    fn from(_: Nothing) -> Self {
        Self::default()
    }
}
