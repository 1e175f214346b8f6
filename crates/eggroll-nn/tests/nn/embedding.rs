//! Embeddings and the output layers tied to them.

use crate::support::{
    LAYER, MEMBERS, PAIRS, assert_members, assert_records_move, devices, held, noisers, perturbation, rows_of, uniform,
    values,
};
use burn::module::Module;
use burn::nn;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::{EggrollConfig, NoiseSourceConfig};
use eggroll_nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};

const VOCABULARY: usize = 11;
const WIDTH: usize = 7;

fn tokens(rows: usize, length: usize, device: &Device) -> Tensor<2, Int> {
    let tokens: Vec<i32> = (0..rows * length).map(|i| (i * i * 7 % 13 % VOCABULARY) as i32).collect();
    Tensor::from_data(TensorData::new(tokens, [rows, length]), device)
}

/// `x·Wᵀ` by Burn's embedding.
fn tied<const D: usize>(embedding: nn::Embedding, x: Tensor<D>) -> Tensor<D> {
    burn::tensor::module::linear(x, embedding.weight.val().transpose(), None)
}

#[test]
fn outside_evaluate_equals_burn_bit_for_bit() {
    let device = Device::flex();
    let layer = EmbeddingConfig::new(VOCABULARY, WIDTH).init(&device);
    let burn = nn::Embedding::from(layer.clone());
    let tokens = tokens(3, 4, &device);
    let expected = values(burn.forward(tokens.clone()));
    assert_eq!(values(layer.forward(tokens.clone())), expected);
    assert_eq!(values(layer.forward_shared(tokens.clone())), expected);
    assert_eq!(values(Embedding::from(burn.clone()).forward(tokens)), expected);
    let x = uniform([2, 3, WIDTH], 0, &device);
    assert_eq!(values(layer.forward_transposed(x.clone())), values(tied(burn.clone(), x)));
    assert_eq!(format!("{layer}"), format!("{burn}"));
}

#[test]
fn inside_evaluate_equals_explicit_weights() {
    for device in devices() {
        let layer = EmbeddingConfig::new(VOCABULARY, WIDTH).init(&device);
        let all = tokens(MEMBERS * 2, 5, &device);
        let shared = rows_of(&all, 1);
        let x = uniform([MEMBERS * 2, 3, WIDTH], 0, &device);
        for noiser in noisers() {
            let drawn = perturbation(&layer, &noiser, &[]);
            for scope in
                [held(&drawn, NoiseSourceConfig::Cached), held(&drawn, NoiseSourceConfig::Table { len: 3000 }), drawn]
            {
                let what = format!("{device:?}, {noiser:?}, {:?}", scope.parameter(0).source);
                let alone = |member, model: Embedding| nn::Embedding::from(model).forward(rows_of(&all, member));
                assert_members((&what, LAYER), &layer, &scope, || layer.forward(all.clone()), alone);
                let alone = |_, model: Embedding| nn::Embedding::from(model).forward(shared.clone());
                assert_members((&what, LAYER), &layer, &scope, || layer.forward_shared(shared.clone()), alone);
                let alone = |member, model: Embedding| tied(model.into(), rows_of(&x, member));
                assert_members((&what, LAYER), &layer, &scope, || layer.forward_transposed(x.clone()), alone);
            }
        }
    }
}

/// A language model without a past: its output layer is its embedding.
#[derive(Module, Debug)]
struct TiedLanguageModel {
    embedding: Embedding,
    hidden: Linear,
}

impl TiedLanguageModel {
    fn new(device: &Device) -> Self {
        Self {
            embedding: EmbeddingConfig::new(VOCABULARY, WIDTH).init(device),
            hidden: LinearConfig::new(WIDTH, WIDTH).init(device),
        }
    }

    fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let x = relu(self.hidden.forward(self.embedding.forward(tokens)));
        self.embedding.forward_transposed(x)
    }

    /// The same by Burn's modules.
    fn plain(self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let embedding = nn::Embedding::from(self.embedding);
        let x = relu(nn::Linear::from(self.hidden).forward(embedding.forward(tokens)));
        tied(embedding, x)
    }
}

#[test]
fn tied_parameters_have_one_noise() {
    for device in devices() {
        let model = TiedLanguageModel::new(&device);
        let all = tokens(MEMBERS, 5, &device);
        for noiser in noisers() {
            let scope = perturbation(&model, &noiser, &[]);
            assert_eq!(scope.table.entries().len(), 3, "{}", scope.table);
            let what = format!("{device:?}, {noiser:?}");
            let alone = |member, model: TiedLanguageModel| model.plain(rows_of(&all, member));
            assert_members((&what, LAYER), &model, &scope, || model.forward(all.clone()), alone);
        }
    }
}

#[test]
fn a_frozen_embedding_stays_plain() {
    for device in devices() {
        let model = TiedLanguageModel::new(&device);
        let scope = perturbation(&model, &EggrollConfig::new().into(), &["embedding"]);
        let (all, shared) = (tokens(MEMBERS, 2, &device), tokens(2, 2, &device));
        let (rows, _) = scope.run(PAIRS, || model.embedding.forward(all.clone()));
        assert_eq!(values(rows), values(model.embedding.forward(all.clone())));
        let (rows, _) = scope.run(PAIRS, || model.embedding.forward_shared(shared.clone()));
        assert_eq!(values(rows), values(model.embedding.forward(shared).repeat_dim(0, MEMBERS)));
        let alone = |member, model: TiedLanguageModel| model.plain(rows_of(&all, member));
        assert_members((&format!("{device:?}"), LAYER), &model, &scope, || model.forward(all.clone()), alone);
    }
}

#[test]
fn records_move_both_ways() {
    let device = Device::flex();
    assert_records_move::<_, Embedding>(|| nn::EmbeddingConfig::new(VOCABULARY, WIDTH).init(&device));
}

#[test]
#[should_panic(expected = "the input [2, 4] does not fit the transpose of [11, 7]")]
fn refuses_other_width() {
    let device = Device::flex();
    EmbeddingConfig::new(VOCABULARY, WIDTH).init(&device).forward_transposed(Tensor::<2>::ones([2, 4], &device));
}

#[test]
#[should_panic(expected = "the first axis of the input [4, 3] is not a multiple of 6 members")]
fn refuses_uneven_rows() {
    let device = Device::flex();
    let layer = EmbeddingConfig::new(VOCABULARY, WIDTH).init(&device);
    let scope = perturbation(&layer, &EggrollConfig::new().into(), &[]);
    scope.run(PAIRS, || layer.forward(tokens(4, 3, &device)));
}
