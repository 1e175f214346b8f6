//! A scalar forward pass in f64 of what is loaded, against logits that an implementation in JAX computed from the same file.

use crate::smollm2::{expected_config, golden, open};
use eggroll_lm::load::{LlamaConfig, Weights};

/// Largest difference of a logit: the other side computes in f32.
const TOLERANCE: f64 = 2e-3;

type Rows = Vec<Vec<f64>>;

fn read(weights: &Weights, name: &str, shape: &[usize]) -> Vec<f32> {
    weights.read(name, shape).expect("values")
}

/// `x Wᵀ` of every row.
fn linear(x: &Rows, weights: &Weights, name: &str, outputs: usize) -> Rows {
    let inputs = x[0].len();
    let matrix = read(weights, name, &[outputs, inputs]);
    x.iter().map(|x| matrix.chunks_exact(inputs).map(|row| dot(row, x)).collect()).collect()
}

fn dot(row: &[f32], x: &[f64]) -> f64 {
    row.iter().zip(x).map(|(&weight, x)| f64::from(weight) * x).sum()
}

fn rms_norm(x: &Rows, weights: &Weights, name: &str, epsilon: f64) -> Rows {
    let gain = read(weights, name, &[x[0].len()]);
    let norm = |x: &Vec<f64>| {
        let scale = (x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64 + epsilon).sqrt();
        x.iter().zip(&gain).map(|(x, &gain)| x / scale * f64::from(gain)).collect()
    };
    x.iter().map(norm).collect()
}

/// Turns the pairs `(i, i + head_dim / 2)` of every head.
fn rotate(x: &mut Rows, config: &LlamaConfig) {
    let half = config.head_dim / 2;
    for (position, x) in x.iter_mut().enumerate() {
        for head in x.chunks_exact_mut(config.head_dim) {
            for i in 0..half {
                let angle = position as f64 * config.rope_theta.powf(-(2.0 * i as f64) / config.head_dim as f64);
                let (first, second) = (head[i], head[i + half]);
                head[i] = first * angle.cos() - second * angle.sin();
                head[i + half] = second * angle.cos() + first * angle.sin();
            }
        }
    }
}

fn attention(q: &Rows, k: &Rows, v: &Rows, config: &LlamaConfig) -> Rows {
    let (size, shared) = (config.head_dim, config.heads / config.kv_heads);
    let one = |position: usize, head: usize| {
        let (query, keys) = (head * size..(head + 1) * size, head / shared * size..(head / shared + 1) * size);
        let score = |k: &Vec<f64>| {
            let products = q[position][query.clone()].iter().zip(&k[keys.clone()]).map(|(q, k)| q * k);
            products.sum::<f64>() / (size as f64).sqrt()
        };
        let weights: Vec<f64> = k[..=position].iter().map(|k| score(k).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mean = |i: usize| weights.iter().zip(v).map(|(weight, v)| weight * v[keys.start + i]).sum::<f64>() / total;
        (0..size).map(mean).collect::<Vec<_>>()
    };
    (0..q.len()).map(|position| (0..config.heads).flat_map(|head| one(position, head)).collect()).collect()
}

fn add(x: &mut Rows, y: &Rows) {
    x.iter_mut().flatten().zip(y.iter().flatten()).for_each(|(x, y)| *x += y);
}

/// Logits after the last token.
fn logits(ids: &[u32], weights: &Weights, config: &LlamaConfig) -> Vec<f64> {
    let (hidden, epsilon) = (config.hidden_size, config.rms_norm_eps);
    let embedding = read(weights, "model.embed_tokens.weight", &[config.vocab_size, hidden]);
    let row = |&id: &u32| embedding[id as usize * hidden..][..hidden].iter().copied().map(f64::from).collect();
    // [tokens, hidden]
    let mut x: Rows = ids.iter().map(row).collect();
    for layer in 0..config.layers {
        let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
        let project = |x: &Rows, part: &str, outputs: usize| linear(x, weights, &name(part), outputs);
        let normed = rms_norm(&x, weights, &name("input_layernorm"), epsilon);
        let mut q = project(&normed, "self_attn.q_proj", config.heads * config.head_dim);
        let mut k = project(&normed, "self_attn.k_proj", config.kv_heads * config.head_dim);
        let v = project(&normed, "self_attn.v_proj", config.kv_heads * config.head_dim);
        rotate(&mut q, config);
        rotate(&mut k, config);
        add(&mut x, &project(&attention(&q, &k, &v, config), "self_attn.o_proj", hidden));

        let normed = rms_norm(&x, weights, &name("post_attention_layernorm"), epsilon);
        let mut inner = project(&normed, "mlp.gate_proj", config.intermediate_size);
        let up = project(&normed, "mlp.up_proj", config.intermediate_size);
        let silu = |x: f64| x / (1.0 + (-x).exp());
        inner.iter_mut().flatten().zip(up.iter().flatten()).for_each(|(gate, up)| *gate = silu(*gate) * up);
        add(&mut x, &project(&inner, "mlp.down_proj", hidden));
    }
    let normed = rms_norm(&x, weights, "model.norm.weight", epsilon);
    let last = normed.last().expect("a token");
    embedding.chunks_exact(hidden).map(|row| dot(row, last)).collect()
}

#[test]
fn logits_are_those_of_another_implementation() {
    let Some(model) = open() else { return };
    for text in golden().iter().take(3) {
        let logits = logits(&text.ids, &model.weights, &expected_config());
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        assert_eq!(order[..5], text.top, "{}", text.text);
        for (&id, expected) in text.top.iter().zip(&text.logits) {
            assert!((logits[id] - expected).abs() < TOLERANCE, "{}: {} {expected}", text.text, logits[id]);
        }
    }
}
