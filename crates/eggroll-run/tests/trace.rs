//! Traces of short trainings: every component, spans that nest, times that fit, and the same results as without.

#![cfg(feature = "flex")]

use burn::module::{Module, Param};
use burn::optim::SgdConfig;
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Tensor};
use eggroll_core::profile::{self, Component};
use eggroll_core::{EggrollConfig, NoiseSourceConfig, NoiserConfig, OpenEsConfig};
use eggroll_nn::Linear;
use eggroll_run::profile::{Section, Summary, TraceConfig, section};
use eggroll_run::{Error, TraceError};
use eggroll_train::{Credit, EvolutionStrategyConfig, MemberChunk, Population};
use serde_json::Value;
use std::fs;
use std::sync::{Mutex, PoisonError};

const GENERATIONS: u64 = 3;

/// A process has one trace at a time.
static ONE: Mutex<()> = Mutex::new(());

#[derive(Module, Debug)]
struct TracedNet {
    first: Linear,
    second: Linear,
}

fn sines(count: usize, device: &Device) -> Tensor<1> {
    let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
    Tensor::from_floats(&values[..], device)
}

fn layer(d_input: usize, d_output: usize, device: &Device) -> Linear {
    let weight = sines(d_input * d_output, device).reshape([d_input, d_output]) * 0.4;
    Linear { weight: Param::from_tensor(weight), bias: Some(Param::from_tensor(sines(d_output, device) * 0.1)) }
}

/// One way to train.
#[derive(Clone)]
struct TracedRun {
    noiser: NoiserConfig,
    source: NoiseSourceConfig,
    parallel: bool,
    seed: u64,
    device: Device,
}

impl TracedRun {
    fn eggroll() -> Self {
        Self {
            noiser: EggrollConfig::new().with_rank(2).into(),
            source: NoiseSourceConfig::OnTheFly,
            parallel: false,
            seed: 0,
            device: Device::flex(),
        }
    }

    /// Parameters after a few generations.
    fn train(&self) -> Vec<f32> {
        let mut net = TracedNet { first: layer(40, 24, &self.device), second: layer(24, 3, &self.device) };
        let x = sines(5 * 40, &self.device).reshape([5, 40]);
        let mut strategy = EvolutionStrategyConfig::new(self.noiser.clone(), SgdConfig::new())
            .with_population_size(96)
            .with_learning_rate(0.5)
            .with_seed(self.seed)
            .with_credit(Credit::Parts)
            .with_noise_source(self.source)
            .init(&net);
        for _ in 0..GENERATIONS {
            let population = strategy.ask();
            let score = |members: &MemberChunk| {
                let y = net.second.forward(tanh(net.first.forward_shared(x.clone())));
                -members.mean((y - 0.5).square())
            };
            let fitness = match self.parallel {
                true => Population::evaluate(&population, score),
                false => population.evaluate(score),
            };
            strategy.tell(&mut net, population, fitness).expect("a generation");
        }
        let values = |layer: Linear| {
            let bias = layer.bias.expect("a bias").val();
            Tensor::cat(vec![layer.weight.val().flatten(0, 1), bias], 0).into_data().try_to_vec::<f32>().expect("f32")
        };
        [values(net.first), values(net.second)].concat()
    }

    /// The same under a trace: parameters, summary and file.
    fn traced(&self, synchronize: bool) -> (Vec<f32>, Summary, Value) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.json");
        let trace = TraceConfig::new(&path).with_synchronize(synchronize).start().expect("no other trace");
        let values = self.train();
        let summary = trace.finish().expect("a file that can be written");
        let file = serde_json::from_slice(&fs::read(path).expect("a file")).expect("valid JSON");
        (values, summary, file)
    }
}

/// A drawn span: thread, name, start and end in nanoseconds.
struct Drawn {
    thread: u64,
    name: String,
    start: u64,
    end: u64,
}

fn drawn(file: &Value) -> Vec<Drawn> {
    let nanoseconds = |value: &Value| (1000.0 * value.as_f64().expect("a time")).round() as u64;
    let events = file["traceEvents"].as_array().expect("events").iter().filter(|event| event["ph"] == "X");
    let span = |event: &Value| {
        let start = nanoseconds(&event["ts"]);
        let (thread, name) = (event["tid"].as_u64().expect("a thread"), event["name"].as_str().expect("a name"));
        Drawn { thread, name: name.to_owned(), start, end: start + nanoseconds(&event["dur"]) }
    };
    events.map(span).collect()
}

/// Whether any two spans of one thread are apart or one inside the other.
fn nested(spans: &[Drawn]) -> bool {
    let crossing = |a: &Drawn, b: &Drawn| a.thread == b.thread && a.start < b.start && b.start < a.end && a.end < b.end;
    !spans.iter().any(|a| spans.iter().any(|b| crossing(a, b)))
}

/// What every summary must fulfil.
fn check(summary: &Summary, file: &Value) {
    let section = &summary.sections[0];
    let (rows, spans) = (&section.components, drawn(file));
    assert!(nested(&spans), "spans cross");
    let shares: f64 = rows.iter().map(|row| row.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "shares add up to {shares}");
    let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
    let most = section.wall_seconds * section.threads as f64;
    assert!(seconds > 0.0 && seconds <= most, "{seconds} s of spans in {most} s of threads");
    let phases: f64 = section.phases.iter().map(|phase| phase.wall_seconds).sum();
    assert!((phases - section.wall_seconds).abs() < 1e-6, "phases take {phases} of {} s", section.wall_seconds);
    assert!(section.phases.len() > 3 && section.phases.iter().all(|phase| phase.busy() > 0.0), "{:?}", section.phases);
    assert_eq!(section.generations, GENERATIONS);
    assert_eq!(rows.iter().map(|row| row.host_reads).sum::<u64>(), GENERATIONS);
    for row in rows {
        let found = spans.iter().filter(|span| span.name == row.component).count() as u64;
        assert!(found <= row.spans, "{}: {found} spans drawn, {} counted", row.component, row.spans);
    }
    assert_eq!(file["summary"], serde_json::to_value(summary).expect("a summary"), "the file holds the summary");
    let marks = file["traceEvents"].as_array().expect("events").iter().filter(|event| event["name"] == "generation");
    assert_eq!(marks.count() as u64, GENERATIONS);
}

fn spans(section: &Section, component: Component) -> u64 {
    section.row(component).spans
}

/// The components of a training run: it samples no worlds.
fn trained() -> impl Iterator<Item = Component> {
    Component::ALL.into_iter().filter(|component| *component != Component::Worlds)
}

#[test]
fn all_components_and_the_same_results() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let open_es = TracedRun { noiser: OpenEsConfig::new().into(), ..TracedRun::eggroll() };
    let cached = TracedRun { source: NoiseSourceConfig::Cached, ..TracedRun::eggroll() };
    for run in [TracedRun::eggroll(), TracedRun { parallel: true, ..TracedRun::eggroll() }, open_es, cached] {
        let expected = run.train();
        let (found, summary, file) = run.traced(false);
        assert_eq!(found, expected, "a trace changes results");
        let (other, ..) = TracedRun { seed: 1, ..run.clone() }.traced(false);
        assert_ne!(other, expected, "canary: another seed gives the same results");
        check(&summary, &file);
        let section = &summary.sections[0];
        for component in trained() {
            assert!(spans(section, component) > 0, "no span of {:?}:\n{summary}", component.name());
        }
        assert_eq!([Component::Ask, Component::Optimizer].map(|part| spans(section, part)), [GENERATIONS; 2]);
        // Two layers for each chunk; four estimates and two projections in each generation; noise that is held.
        let launches = |part| section.row(part).launches;
        assert_eq!(launches(Component::Estimate), GENERATIONS * 6);
        assert!(launches(Component::Fitness) >= GENERATIONS * 2);
        let held = run.source == NoiseSourceConfig::Cached;
        assert_eq!(launches(Component::Noise) > 0, held);
        assert_eq!(section.row(Component::Noise).noise_bytes > 0, held);
        assert!(section.row(Component::Noise).bytes > 0 && section.row(Component::BaseProduct).bytes > 0);
    }
}

#[test]
fn noise_bytes_are_those_that_were_drawn() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, summary, _) = TracedRun::eggroll().traced(false);
    let (pairs, rank) = (48, 2);
    let factors = rank * (40 + 24) + rank * (24 + 3);
    // Factors and biases: once in the forward, once in the estimates, and for the pair without noise.
    let expected = GENERATIONS * (2 * pairs + 1) * 4 * (factors + 24 + 3);
    assert_eq!(summary.sections[0].row(Component::Noise).bytes, expected);
}

/// Kernels are for f32: f64 takes the portable path.
#[test]
fn portable_defaults_have_the_same_components() {
    use burn::tensor::DType;
    use eggroll_core::ops::{self, DenseNoise, InputRows, LinearBias, LinearMembers, LowRankNoise, NoiseSource};
    use eggroll_core::{NoiseKey, PairRange};
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (pairs, key) = (PairRange::new(0, 3), NoiseKey::new(0, 0, 0));
    let members = LinearMembers { pairs, input: InputRows::Shared };
    let (low_rank, dense) = (LowRankNoise::new(key, 2, 0.1), DenseNoise::new(key, 0.1));
    for is_dense in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = TraceConfig::new(folder.path().join("trace.json")).start().expect("no other trace");
        let ones = |shape| Tensor::<2>::ones(shape, (&Device::flex(), DType::F64));
        let (x, weight) = (ones([5, 4]), ones([4, 7]));
        let weights = Tensor::<1>::ones([3], (&Device::flex(), DType::F64));
        let source = NoiseSource::Drawn;
        if is_dense {
            ops::dense_linear(x, weight, LinearBias::None, dense, source.clone(), members);
            ops::dense_estimate(weights, dense, source, 0, 28, DType::F64);
        } else {
            ops::low_rank_linear(x, weight, LinearBias::None, low_rank, source.clone(), members);
            ops::low_rank_estimate(weights, low_rank, source, 0, [4, 7], DType::F64);
        }
        let summary = trace.finish().expect("a file that can be written");
        let row = |component| summary.sections[0].row(component);
        let elements = if is_dense { 28 } else { 2 * (4 + 7) };
        let noise = row(Component::Noise);
        assert_eq!([noise.spans, noise.noise_bytes, noise.bytes], [2, 2 * 3 * elements * 8, 2 * 3 * elements * 8]);
        assert_eq!([row(Component::BaseProduct).spans, row(Component::BaseProduct).bytes], [1, 5 * 7 * 8]);
        assert_eq!([row(Component::LowRankPart).spans, row(Component::LowRankPart).bytes], [2, 6 * 5 * 7 * 8]);
        assert_eq!([row(Component::Estimate).spans, row(Component::Estimate).launches], [1, 1]);
    }
}

#[test]
fn a_crossing_is_noticed() {
    let span = |start, end| Drawn { thread: 0, name: String::new(), start, end };
    assert!(nested(&[span(0, 5), span(5, 9), span(6, 9)]));
    assert!(!nested(&[span(0, 5), span(3, 9)]), "canary");
}

#[test]
fn sections_hold_their_first_generations() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let trace = TraceConfig::new(&path).with_generations(1).start().expect("no other trace");
    assert!(profile::enabled());
    TracedRun::eggroll().train();
    assert!(!profile::enabled(), "spans cost nothing once there are enough generations");
    section("a \"second\" one");
    assert!(profile::enabled());
    TracedRun { parallel: true, ..TracedRun::eggroll() }.train();
    section("an empty one");
    let summary = trace.finish().expect("a file that can be written");
    assert!(!profile::enabled());
    let names: Vec<&str> = summary.sections.iter().map(|section| &section.name[..]).collect();
    assert_eq!(names, ["run", "a \"second\" one"]);
    for section in &summary.sections {
        assert_eq!([section.generations, spans(section, Component::Ask)], [1, 1]);
        assert_eq!(section.row(Component::Estimate).launches, 6);
    }
    let text = fs::read_to_string(path).expect("a file");
    let file: Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!(drawn(&file).iter().filter(|span| span.name == "ask").count(), 2);
    assert!(summary.to_string().contains("low-rank part"), "{summary}");
    println!("{summary}\n{} bytes", text.len());
}

#[test]
fn what_cannot_be_traced_is_refused() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let nowhere = folder.path().join("no/trace.json");
    let error = TraceConfig::new(&nowhere).start().expect_err("there is no such folder");
    assert!(error.to_string().contains(&nowhere.display().to_string()), "{error}");
    let path = folder.path().join("trace.json");
    let error = TraceConfig::new(&path).with_generations(0).start().expect_err("no generations");
    assert!(matches!(error, Error::Trace(TraceError::Generations(0))), "{error}");
    let trace = TraceConfig::new(&path).start().expect("no other trace");
    let error = TraceConfig::new(folder.path().join("other.json")).start().expect_err("one at a time");
    assert!(matches!(error, Error::Trace(TraceError::Running)), "{error}");
    assert!(!folder.path().join("other.json").exists(), "a file of no trace");
    // A trace that is dropped, as by an error, leaves a complete file.
    TracedRun::eggroll().train();
    drop(trace);
    let file: Value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("valid JSON");
    assert!(!drawn(&file).is_empty());
    let error = TraceConfig::new(&path).start().and_then(|trace| {
        let _ = trace.finish()?;
        eggroll_run::profile::finish_running().unwrap_or(Err(Error::Trace(TraceError::NotRunning)))
    });
    assert!(matches!(error, Err(Error::Trace(TraceError::NotRunning))), "{error:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let trace = TraceConfig::new("/dev/full").start().expect("a device that is always full opens");
    TracedRun::eggroll().train();
    let error = trace.finish().expect_err("nothing can be written");
    assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("full")), "{error}");
}

#[cfg(feature = "wgpu")]
#[test]
fn devices_too() {
    use burn::tensor::DeviceKind;
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let device = Device::wgpu(DeviceKind::DefaultDevice);
    for source in [NoiseSourceConfig::OnTheFly, NoiseSourceConfig::Cached] {
        let run = TracedRun { source, device: device.clone(), ..TracedRun::eggroll() };
        let expected = run.train();
        assert_ne!(
            TracedRun { seed: 1, ..run.clone() }.train(),
            expected,
            "canary: another seed gives the same results"
        );
        for synchronize in [false, true] {
            let (found, summary, file) = run.traced(synchronize);
            println!("{source:?}, synchronized {synchronize}\n{summary}");
            assert_eq!(found, expected, "a trace changes results");
            assert_eq!(summary.synchronized, synchronize);
            check(&summary, &file);
            let section = &summary.sections[0];
            for component in trained() {
                // Kernels draw noise where they use it.
                let inline = component == Component::Noise && source == NoiseSourceConfig::OnTheFly;
                assert_eq!(spans(section, component) == 0, inline, "{}:\n{summary}", component.name());
            }
            // Two layers of each chunk are a kernel each, and the four estimates.
            let kernels: u64 = section.components.iter().map(|row| row.kernels).sum();
            assert!(kernels >= GENERATIONS * 6, "{kernels} kernels");
        }
    }
}
