//! Perturbed modules launch no more operations than Burn's modules, and a constant: for few members and many, for short
//! sequences and long ones.

use crate::support::{every_device, noisers, perturbation, uniform};
use burn::backend::Capture;
use burn::backend::ir::{FloatOperationIr, ModuleOperationIr, OperationIr};
use burn::module::Module;
use burn::nn;
use burn::nn::attention as plain_attention;
use burn::nn::transformer as plain_transformer;
use burn::tensor::{Device, Tensor};
use eggroll_core::{PairRange, counters};
use eggroll_nn::attention::{MhaInput, MultiHeadAttentionConfig};
use eggroll_nn::transformer::{TransformerEncoderConfig, TransformerEncoderInput};
use eggroll_nn::{GruConfig, LstmConfig, MinimalGruConfig};

const D: usize = 4;

/// Products that Burn's module takes: matrix multiplications, linear operations, normalizations.
fn plain_products(forward: impl FnOnce(&Device) -> Tensor<3>) -> u64 {
    let device = Device::capture();
    let captured = device.capture_scope(|scope| {
        let output = forward(&device).try_into_primitive::<Capture>().expect("a captured tensor");
        scope.complete([], [output.id()])
    });
    let product = |operation: &&OperationIr| {
        matches!(
            operation,
            OperationIr::Float(_, FloatOperationIr::Matmul(_))
                | OperationIr::Module(ModuleOperationIr::Linear(_) | ModuleOperationIr::LayerNorm(_))
        )
    };
    captured.expect("a graph").graph.operations.iter().filter(product).count() as u64
}

/// Operations launched by `forward` inside a scope with `pairs` pairs; no noise may be written to memory on a CPU.
fn launches<M: Module>(model: &M, pairs: u32, steps: usize, forward: impl Fn(&M, Tensor<3>)) -> u64 {
    let found = every_device().into_iter().map(|device| {
        let model = model.clone().to_device(&device);
        let scope = perturbation(&model, &noisers()[0], &[]);
        let x = uniform([2 * pairs as usize, steps, D], 0, &device);
        let before = counters::snapshot();
        scope.run(PairRange::new(1, pairs), || forward(&model, x));
        let work = counters::snapshot() - before;
        assert_eq!((work.host_reads, work.noise_bytes), (0, 0));
        work.launches
    });
    let found: Vec<u64> = found.collect();
    assert!(found.iter().all(|launches| *launches == found[0]), "{found:?}");
    found[0]
}

/// The launches of 2 and of 300 pairs at both lengths, which must be equal: as `[short, long]`.
fn by_length<M: Module>(model: &M, forward: impl Fn(&M, Tensor<3>)) -> [u64; 2] {
    LENGTHS.map(|steps| {
        let few = launches(model, 2, steps, &forward);
        assert_eq!(launches(model, 300, steps, &forward), few);
        few
    })
}

const LENGTHS: [usize; 2] = [3, 11];

#[test]
fn recurrent_modules() {
    let device = Device::flex();
    let gru = by_length(&GruConfig::new(D, 5, true).init(&device), |gru, x| drop(gru.forward(x, None)));
    // One product of each gate for the inputs of all steps, one for the state at each step: half of Burn's.
    assert_eq!(gru, LENGTHS.map(|steps| 3 + 3 * steps as u64));
    let plain = LENGTHS.map(|steps| {
        let forward = |device: &Device| {
            nn::GruConfig::new(D, 5, true).init(device).forward(Tensor::zeros([4, steps, D], device), None)
        };
        plain_products(forward)
    });
    assert_eq!(plain, LENGTHS.map(|steps| 6 * steps as u64));
    let lstm = by_length(&LstmConfig::new(D, 5, true).init(&device), |lstm, x| drop(lstm.forward(x, None)));
    assert_eq!(lstm, LENGTHS.map(|steps| 4 + 4 * steps as u64));
    let plain = LENGTHS.map(|steps| {
        let forward = |device: &Device| {
            nn::LstmConfig::new(D, 5, true).init(device).forward(Tensor::zeros([4, steps, D], device), None).0
        };
        plain_products(forward)
    });
    assert_eq!(plain, LENGTHS.map(|steps| 8 * steps as u64));
    let minimal = by_length(&MinimalGruConfig::new(D, 5).init(&device), |gru, x| drop(gru.forward(x, None, None)));
    assert_eq!(minimal, LENGTHS.map(|steps| 2 + 2 * steps as u64));
}

#[test]
fn attention_and_transformers() {
    let device = Device::flex();
    let config = MultiHeadAttentionConfig::new(D, 2);
    let found = by_length(&config.init(&device), |mha, x| drop(mha.forward(MhaInput::self_attn(x))));
    let products = |steps: usize| {
        plain_products(|device| {
            let module = plain_attention::MultiHeadAttentionConfig::new(D, 2).init(device);
            module.forward(plain_attention::MhaInput::self_attn(Tensor::zeros([4, steps, D], device))).context
        })
    };
    // Queries, keys, values and the output; Burn's two products between positions are also ours.
    assert_eq!((found, LENGTHS.map(products)), ([4, 4], [6, 6]));
    let config = TransformerEncoderConfig::new(D, 6, 2, 3);
    let found = by_length(&config.init(&device), |model, x| drop(model.forward(TransformerEncoderInput::new(x))));
    let products = |steps: usize| {
        plain_products(|device| {
            let module = plain_transformer::TransformerEncoderConfig::new(D, 6, 2, 3).init(device);
            module.forward(plain_transformer::TransformerEncoderInput::new(Tensor::zeros([4, steps, D], device)))
        })
    };
    // In each of three layers six linear layers and the gain and the shift of two norms; Burn's operations are six linear
    // layers, two products between positions and two norms.
    assert_eq!((found, LENGTHS.map(products)), ([3 * 10; 2], [3 * 10; 2]));
}
