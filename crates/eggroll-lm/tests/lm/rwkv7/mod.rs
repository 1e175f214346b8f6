//! RWKV-7. That it computes what the reference code does is tested by the golden vectors of the workspace.

mod files;
mod forward;
mod population;

use burn::tensor::{Device, Int, Tensor, TensorData};
use eggroll_core::transformer::{MemberRow, Precision};
use eggroll_lm::host::{Rwkv7State, Sequence};
use eggroll_lm::load::Rwkv7Config;
use eggroll_lm::rwkv7::Rwkv7;
use eggroll_lm::{Decoder, HostRwkv7};

fn config() -> Rwkv7Config {
    Rwkv7Config {
        vocab_size: 50,
        hidden_size: 36,
        intermediate_size: 80,
        layers: 3,
        head_dim: 12,
        decay_rank: 6,
        a_rank: 5,
        v_rank: 4,
        gate_rank: 7,
        norm_eps: 1e-5,
        tied_head: false,
    }
}

fn model(config: &Rwkv7Config) -> Rwkv7 {
    let device = Device::flex();
    device.seed(7);
    Rwkv7::new(config, &device)
}

/// Tokens that look random.
fn tokens(seed: u32, len: usize) -> Vec<u32> {
    (1..=len as u32).map(|k| (k * k * 7919 + seed * 104_729 + k * 31) % 50).collect()
}

fn tensor(tokens: &[u32], rows: usize) -> Tensor<2, Int> {
    let values: Vec<i32> = tokens.iter().map(|token| *token as i32).collect();
    Tensor::from_data(TensorData::new(values, [rows, tokens.len() / rows]), &Device::flex())
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

/// Runs each sequence's next tokens, all together; logits at all of them, sequence by sequence.
fn run(host: &HostRwkv7, sequences: &mut [(&[u32], &mut Rwkv7State)]) -> Vec<f32> {
    let member = MemberRow { slot: 0, minus: false };
    let rows = sequences.iter().map(|(tokens, _)| tokens.len()).sum();
    let mut sequences: Vec<_> = sequences
        .iter_mut()
        .map(|(tokens, state)| Sequence { member, tokens, wanted: 0..tokens.len(), state: &mut **state })
        .collect();
    let (mut buffers, mut hidden, mut logits) = (host.buffers(), Vec::new(), Vec::new());
    host.forward(None, &mut sequences, &mut buffers, &mut hidden);
    host.logits(None, &vec![member; rows], &hidden, &mut buffers, &mut logits);
    logits
}

fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let worst =
        |worst: f32, (a, b): (&f32, &f32)| if (a - b).is_nan() { f32::INFINITY } else { worst.max((a - b).abs()) };
    found.iter().zip(expected).fold(0.0, worst)
}
