//! What operations cost on GPUs that are not here: launches and bytes as a recording device saw them, normals, and the least time that the
//! GPU's peaks allow. Nothing is timed.
//!
//! ```sh
//! cargo bench --workspace --features kernel-sources --bench cost_model
//! ```

use burn::tensor::DType;
use eggroll_kernels::costs::{Cost, CostLayer, CostModel, GPUS, NoiseOrigin};
use eggroll_kernels::language_models::{MODELS, ModelPass, ModelSizes};

const PAPER: CostLayer = CostLayer { pairs: 512, rows: 1, rank: 1, shape: [8192, 8192], dtype: DType::BF16 };
const PERCEPTRON: CostLayer = CostLayer { pairs: 1024, rows: 1, rank: 1, shape: [256, 2048], dtype: DType::BF16 };
const SQUARE: CostLayer = CostLayer { pairs: 1024, rows: 1, rank: 4, shape: [2048, 2048], dtype: DType::BF16 };

fn main() {
    println!("least times by the GPUs' peaks; share: of plain inference\n");
    for (index, gpu) in (0..).zip(GPUS) {
        let model = CostModel::new(gpu, index);
        let dtype = if model.supports(DType::BF16) { DType::BF16 } else { DType::F16 };
        println!("{}, {dtype:?}: {:.3} TB/s, {:.0} TFLOP/s", gpu.name, gpu.memory / 1e12, gpu.products / 1e12);
        println!("  operation                     launches      MB   GFLOP  normals/M       ms   share");
        for layer in [PAPER, SQUARE, PERCEPTRON] {
            layer_costs(&model, CostLayer { dtype, ..layer });
        }
        let (launches, steps) = model.cart_pole();
        println!("  CartPole, {steps} steps            {launches:>8}\n");
        MODELS.iter().for_each(|sizes| language_model(&model, sizes, dtype));
    }
}

/// A step of 1,024 members, of rank 1, on one GPU and on eight, each of which has a replica of the model and an eighth of the members: scores of 256 tokens of each
/// member, 32 of them predicted; and one more token of a sequence of each member that has 256. Replicas exchange scores, and all make the whole update.
fn language_model(model: &CostModel, sizes: &ModelSizes, dtype: DType) {
    println!("  {}, 1,024 members            launches      GB   TFLOP          s   share", sizes.name);
    for replicas in [1, 8] {
        let members = 1024 / replicas;
        let row = |name: &str, cost: Cost, plain: Option<Cost>| {
            let share = plain.map_or(String::new(), |plain| format!("{:>6.1} %", plain.seconds / cost.seconds * 100.0));
            let (gigabytes, tera) = (cost.bytes as f64 / 1e9, cost.flops / 1e12);
            let name = format!("    {name}, {replicas} GPU");
            println!("{name:<34} {:>8} {gigabytes:>7.1} {tera:>7.2} {:>10.4} {share}", cost.launches, cost.seconds);
        };
        for (name, pass) in [
            ("scores", ModelPass { members, rows: 256, predicted: 32, seen: 128, keeps: false, dtype }),
            ("a token", ModelPass { members, rows: 1, predicted: 1, seen: 256, keeps: true, dtype }),
        ] {
            row(name, model.pass(sizes, pass, true), Some(model.pass(sizes, pass, false)));
        }
        row("update", model.update(sizes, 512, dtype), None);
    }
    println!();
}

fn layer_costs(model: &CostModel, layer: CostLayer) {
    let ([d_input, d_output], members) = (layer.shape, 2 * layer.pairs);
    println!("  {d_input} to {d_output}, {members} members, rank {}", layer.rank);
    let plain = model.inference(layer);
    let row = |name: &str, cost: Cost| {
        let Cost { launches, bytes, flops, normals, seconds } = cost;
        let (megabytes, normals, ms) = (bytes as f64 / 1e6, normals as f64 / 1e6, seconds * 1e3);
        let share = plain.seconds / seconds * 100.0;
        let name = format!("    {name:<27}");
        println!("{name} {launches:>8} {megabytes:>7.1} {:>7.1} {normals:>10.2} {ms:>8.4} {share:>6.1} %", flops / 1e9);
    };
    row("plain inference", plain);
    row("forward, on the fly", model.forward(layer, NoiseOrigin::OnTheFly));
    row("forward, held", model.forward(layer, NoiseOrigin::Held));
    row("estimate, on the fly", model.estimate(layer, NoiseOrigin::OnTheFly));
    row("estimate, held", model.estimate(layer, NoiseOrigin::Held));
}
