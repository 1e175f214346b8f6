//! The oracle: a small transformer from the tokens of a world to the value of each domino of the mover.

use burn::module::Module;
use burn::store::{ModuleSnapshot, SafetensorsStore};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use eggroll::nn;
use eggroll::nn::attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig};
use eggroll::nn::transformer::{
    PositionWiseFeedForward, PositionWiseFeedForwardConfig, TransformerEncoder, TransformerEncoderConfig,
    TransformerEncoderInput,
};
use eggroll_examples::Failure;
use eggroll_examples::texas42::columns::LEADS;
use eggroll_examples::texas42::{DOMINOES, HAND, HAND_POINTS, RELATIONS, ROLES, TOKEN_FEATURES, token_features};
use std::path::Path;

/// Trained by `--train backpropagation`.
const TRAINED: &[u8] = include_bytes!("oracle.safetensors");
/// Numbers of a token.
const TOKEN: usize = TOKEN_FEATURES + ROLES + RELATIONS;
/// Width of tokens, and of the feed-forward parts.
const WIDTH: usize = 32;
const FEED_FORWARD: usize = 64;

/// Tokens are the dominoes that are not in earlier tricks. All attend to all; then those in the mover's hand attend to
/// all again.
#[derive(Module, Debug)]
pub struct Oracle {
    token: nn::Linear,
    encoder: TransformerEncoder,
    norm: nn::LayerNorm,
    attention: MultiHeadAttention,
    feed_forward_norm: nn::LayerNorm,
    feed_forward: PositionWiseFeedForward,
    value_norm: nn::LayerNorm,
    value: nn::Linear,
}

/// Positions as tokens.
#[derive(Clone)]
pub struct Tokens {
    /// `[rows, tokens, TOKEN]`
    numbers: Tensor<3>,
    /// Where there is none: `[rows, tokens]`
    none: Tensor<2, Bool>,
}

/// What tokens are made from, on a device: no parameters.
#[derive(Clone, Debug)]
pub struct TokenTables {
    /// `[9 · 9 · 28, TOKEN_FEATURES]`
    features: Tensor<2>,
    /// `[ROLES, ROLES]`
    roles: Tensor<2>,
    /// `[2^RELATIONS, RELATIONS]`
    relations: Tensor<2>,
}

impl TokenTables {
    pub fn new(device: &Device) -> Self {
        let features = token_features();
        let count = features.len() / TOKEN_FEATURES;
        let bits = (0..1 << RELATIONS).flat_map(|bits: u32| (0..RELATIONS).map(move |bit| (bits >> bit & 1) as f32));
        let bits = TensorData::new(bits.collect::<Vec<_>>(), [1 << RELATIONS, RELATIONS]);
        Self {
            features: Tensor::from_data(TensorData::new(features, [count, TOKEN_FEATURES]), device),
            roles: Tensor::eye(ROLES, device),
            relations: Tensor::from_data(bits, device),
        }
    }

    /// `[rows, longest]` to tokens.
    pub fn tokens(&self, positions: Tensor<2, Int>) -> Tokens {
        let [rows, longest] = positions.dims();
        let column = |at: usize| positions.clone().narrow(1, at, 1); // [rows, 1]
        let (dominoes, roles) = (DOMINOES as i32, ROLES as i32);
        let tokens = positions.clone().narrow(1, 2, longest - 2); // [rows, tokens]
        let held = tokens.clone().div_scalar(dominoes);
        let kind = (column(0) * LEADS as i32 + column(1)) * dominoes + tokens.clone().remainder_scalar(dominoes);
        let rows_of = |table: &Tensor<2>, numbers: Tensor<2, Int>| table.clone().select(0, numbers.flatten::<1>(0, 1));
        let features = rows_of(&self.features, kind);
        let role = rows_of(&self.roles, held.clone().remainder_scalar(roles));
        let relations = rows_of(&self.relations, held.div_scalar(roles));
        let numbers = Tensor::cat(vec![features, role, relations], 1).reshape([rows, longest - 2, TOKEN]);
        Tokens { numbers, none: tokens.equal_elem(0) }
    }
}

impl Oracle {
    pub fn new(device: &Device) -> Self {
        let norm = || nn::LayerNormConfig::new(WIDTH).init(device);
        let encoder = TransformerEncoderConfig::new(WIDTH, FEED_FORWARD, 1, 1).with_norm_first(true).with_dropout(0.0);
        Self {
            token: nn::LinearConfig::new(TOKEN, WIDTH).init(device),
            encoder: encoder.init(device),
            norm: norm(),
            attention: MultiHeadAttentionConfig::new(WIDTH, 1).with_dropout(0.0).init(device),
            feed_forward_norm: norm(),
            feed_forward: PositionWiseFeedForwardConfig::new(WIDTH, FEED_FORWARD).with_dropout(0.0).init(device),
            value_norm: norm(),
            value: nn::LinearConfig::new(WIDTH, 1).init(device),
        }
    }

    /// Points that the side of the mover gets from here on after each domino of its hand, over all points: `[rows, 7]`,
    /// for every member.
    pub fn forward(&self, tokens: Tokens) -> Tensor<2> {
        let Tokens { numbers, none } = tokens;
        let x = self.token.forward_shared(numbers); // [rows, tokens, WIDTH]
        let x = self.encoder.forward(TransformerEncoderInput::new(x).mask_pad(none.clone()));
        let (hand, all) = (x.clone().narrow(1, 0, HAND), self.norm.forward(x));
        let query = all.clone().narrow(1, 0, HAND); // [rows, 7, WIDTH]
        let attended = self.attention.forward(MhaInput::new(query, all.clone(), all).mask_pad(none)).context;
        let hand = hand + attended;
        let hand = hand.clone() + self.feed_forward.forward(self.feed_forward_norm.forward(hand));
        self.value.forward(self.value_norm.forward(hand)).squeeze_dim(2)
    }

    /// The same in points: `[rows, longest]` to `[rows, 7]`.
    pub fn points(&self, tables: &TokenTables, positions: Tensor<2, Int>) -> Tensor<2> {
        self.forward(tables.tokens(positions)) * f32::from(HAND_POINTS)
    }

    /// The weights of a file, or the weights that come with the example.
    pub fn read(file: Option<&Path>, device: &Device) -> Result<Self, Failure> {
        let mut oracle = Self::new(device);
        let (mut store, name) = match file {
            Some(file) => (SafetensorsStore::from_file(file), file.display().to_string()),
            None => (SafetensorsStore::from_bytes(Some(TRAINED.to_vec())), "the weights of the example".to_owned()),
        };
        let loaded =
            oracle.load_from(&mut store).map_err(|error| format!("{name} cannot be read as an oracle: {error}"))?;
        match loaded.errors.is_empty() && loaded.missing.is_empty() {
            true => Ok(oracle),
            false => Err(format!("{name} holds another network than this oracle's: train one with --train").into()),
        }
    }

    /// Writes the weights.
    pub fn write(&self, file: &Path) -> Result<(), Failure> {
        let saved = self.save_into(&mut SafetensorsStore::from_file(file).overwrite(true));
        saved.map_err(|error| format!("{}: {error}", file.display()).into())
    }
}
