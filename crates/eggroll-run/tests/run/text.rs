//! Text: files of any bytes, streams of them, statistics, likelihood, samples.

use burn::module::{Module, Param};
use burn::tensor::{Device, Float, Int, Tensor};
use eggroll_nn::integer::{EggModel, EggModelConfig};
use eggroll_nn::loss::cross_entropy;
use eggroll_run::text::{ByteModel, ByteStatistics, ByteStreams, Sampler, Text, bits_per_byte};
use std::fs::{self, File};
use std::path::PathBuf;
use tempfile::TempDir;

fn file(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.txt");
    fs::write(&path, bytes).expect("writes");
    (folder, path)
}

fn text(bytes: &[u8]) -> Text {
    // The map outlives the file's name.
    let (_folder, path) = file(bytes);
    Text::read(path).expect("opens")
}

fn error<T>(result: Result<T, eggroll_run::Error>) -> String {
    result.err().expect("refused").to_string()
}

#[test]
fn files_that_cannot_be_used_are_refused_with_name_and_length() {
    let (_folder, path) = file(b"");
    let name = path.display().to_string();
    assert_eq!(error(Text::read(&path)), format!("{name}: a text of 0 bytes cannot be used: it is empty"));
    fs::write(&path, "x").expect("writes");
    let one = Text::read(&path).expect("opens");
    let expected = format!("{name}: a text of 1 bytes cannot be used: split into 1 for training and 0 for validation");
    assert!(error(one.split(0.1)).starts_with(&expected), "{}", error(one.split(0.1)));
    assert!(error(ByteStreams::new(one, 1, 4)).contains("too short for 1 sequences"));
    let short = text(b"only 15 bytes..");
    assert!(
        error(ByteStreams::new(short.clone(), 16, 4)).contains("a text of 15 bytes cannot be used: too short for 16")
    );
    assert!(ByteStreams::new(short.clone(), 15, 4).is_ok());
    assert!(error(ByteStreams::new(short.clone(), 0, 4)).contains("not 0 sequences of 4 bytes"));
    assert!(error(ByteStreams::new(short.clone(), 2, 0)).contains("not 2 sequences of 0 bytes"));
    for steps in [usize::MAX, usize::MAX / 2, 1 << 32] {
        let expected = format!("2 sequences of {steps} steps are more than the 4294967296 bytes of a generation");
        assert!(error(ByteStreams::new(short.clone(), 2, steps)).contains(&expected));
    }
    for share in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(error(short.split(share)).contains(&format!("between 0 and 1, not {share}")));
    }
    let missing = path.with_file_name("missing.txt");
    assert!(error(Text::read(&missing)).starts_with(&missing.display().to_string()));
    assert!(
        error(Text::read(path.parent().expect("a folder"))).contains(&path.parent().unwrap().display().to_string())
    );
}

#[test]
fn bytes_are_any_bytes() {
    let bytes: Vec<u8> = (0..=255).rev().collect(); // not UTF-8
    let streams = ByteStreams::new(text(&bytes), 2, 128).expect("streams");
    let batch = streams.batch(0, 1, &Device::flex());
    let read: Vec<i64> = batch.inputs.into_data().iter::<i64>().collect();
    assert_eq!(read, bytes.iter().map(|byte| i64::from(*byte)).collect::<Vec<_>>());
}

#[test]
fn the_split_is_the_end() {
    let bytes: Vec<u8> = (0..30).collect();
    let (train, validation) = text(&bytes).split(0.1).expect("splits");
    assert_eq!((&train[..], &validation[..]), (&bytes[..27], &bytes[27..]));
    assert_eq!(&validation.head(2)[..], &bytes[27..29]);
    assert_eq!(validation.head(9).len(), 3);
}

#[test]
fn streams_read_every_byte_once_a_round() {
    // 120 = 4 streams · 6 generations · 5 steps
    let bytes: Vec<u8> = (0..120).collect();
    let streams = ByteStreams::new(text(&bytes), 4, 5).expect("streams");
    let mut counts = [0; 120];
    for generation in 0..6 {
        for row in streams.bytes(generation).chunks(6) {
            row[..5].iter().for_each(|byte| counts[usize::from(*byte)] += 1);
            assert_eq!(row[5], (row[4] + 1) % 120, "the target of the last step follows it");
        }
    }
    assert_eq!(counts, [1; 120]);
    // Where a stream stops, it continues.
    assert_eq!(streams.bytes(0)[5], streams.bytes(1)[0]);
    // After a round of a stream that reads all, it is where it began; in between it is not.
    assert_eq!(streams.bytes(24), streams.bytes(0));
    assert_ne!(streams.bytes(23), streams.bytes(0));
}

#[test]
fn positions_are_as_defined() {
    let streams = ByteStreams::new(text(&[7; 10]), 3, 4).expect("streams");
    assert_eq!([0, 1, 2].map(|stream| streams.position(stream, 0)), [0, 3, 6]);
    assert_eq!([0, 1, 2].map(|stream| streams.position(stream, 3)), [2, 5, 8]);
    let far = (u128::from(u64::MAX) * 4 % 10) as usize;
    assert_eq!(streams.position(0, u64::MAX), far);
    // Steps beyond the text's length go round more than once.
    let streams = ByteStreams::new(text(b"abc"), 1, 7).expect("streams");
    assert_eq!(streams.bytes(0), b"abcabcab");
    assert_eq!(streams.bytes(1), b"bcabcabc");
}

#[test]
fn members_of_a_group_read_the_same() {
    let bytes: Vec<u8> = (0..40).collect();
    let streams = ByteStreams::new(text(&bytes), 2, 3).expect("streams");
    let batch = streams.batch(1, 2, &Device::flex());
    let rows: Vec<i64> = batch.inputs.into_data().iter::<i64>().collect();
    assert_eq!(rows, [3, 4, 5, 3, 4, 5, 23, 24, 25, 23, 24, 25]);
    let targets: Vec<i64> = batch.targets.into_data().iter::<i64>().collect();
    assert_eq!(targets, [4, 5, 6, 4, 5, 6, 24, 25, 26, 24, 25, 26]);
}

/// A file beyond 32 bits, most of it a hole: opened and read without being loaded.
#[cfg(all(unix, target_pointer_width = "64"))]
#[test]
fn huge_files_are_not_loaded() {
    use std::os::unix::fs::FileExt;
    let (_folder, path) = file(b"");
    let (len, end) = (6u64 << 30, b"the end");
    let huge = File::options().write(true).open(&path).expect("opens");
    huge.set_len(len).expect("a hole");
    huge.write_all_at(end, len - end.len() as u64).expect("writes");
    // SAFETY: nobody else knows the file.
    let text = unsafe { Text::map(&path) }.expect("maps");
    assert_eq!(text.len() as u64, len);
    assert!(text.split(0.1).expect("splits").1.ends_with(end));
    let streams = ByteStreams::new(text, 3, end.len()).expect("streams");
    assert_eq!(streams.position(2, 0) as u64, 4 << 30);
    let last = (2 << 30) / end.len() as u64; // the generation in which the last stream reaches the end
    assert_eq!(streams.position(2, last) as u64, len - (2 << 30) % end.len() as u64);
}

#[test]
fn a_mapped_text_is_the_text() {
    let (_folder, path) = file(b"some bytes");
    // SAFETY: nobody else knows the file.
    let mapped = unsafe { Text::map(&path) }.expect("maps");
    assert_eq!(mapped[..], Text::read(&path).expect("reads")[..]);
    let (_folder, empty) = file(b"");
    // SAFETY: nobody else knows the file.
    let refused = [unsafe { Text::map(&empty) }, Text::read(&empty)].map(error);
    assert_eq!(refused[0], refused[1]);
}

#[test]
fn statistics_by_hand() {
    // Pairs of aabb: aa, ab, bb. Firsts: a twice, b once. H(second | first) = 2/3·1 + 1/3·0.
    let counts = ByteStatistics::new(b"aabb");
    assert_eq!(counts.unigram_entropy(), 1.0);
    assert!((counts.bigram_entropy() - 2.0 / 3.0).abs() < 1e-12, "{}", counts.bigram_entropy());
    let expected = -((2.01f64 / 6.56).log2() + (0.01f64 / 6.56).log2()) / 2.0; // of a and c
    assert!((counts.unigram_bits(b"ac") - expected).abs() < 1e-12, "{}", counts.unigram_bits(b"ac"));
    let expected = -((1.01f64 / 4.56).log2() + (0.01f64 / 3.56).log2()) / 2.0; // of b after a, a after b
    assert!((counts.bigram_bits(b"aba") - expected).abs() < 1e-12, "{}", counts.bigram_bits(b"aba"));
    assert_eq!(ByteStatistics::new(b"").unigram_entropy(), 0.0);
    assert_eq!(ByteStatistics::new(b"x").bigram_entropy(), 0.0);
}

fn model(seed: u64) -> EggModel {
    let device = Device::flex();
    device.seed(seed);
    EggModelConfig::new().with_layers(2).with_width(8).init(&device)
}

/// Bits of a sequence's bytes after the first, by a forward over all of it and softmax in f64.
fn bits(model: &EggModel, sequence: &[u8]) -> f64 {
    let tokens: Vec<i32> = sequence.iter().map(|byte| i32::from(*byte)).collect();
    let tokens = Tensor::<1, Int>::from_ints(&tokens[..], &Device::flex()).unsqueeze::<2>();
    let (logits, _) = model.forward(tokens, model.initial_state(1));
    let logits: Vec<i64> = logits.into_data().iter::<i64>().collect();
    let row = |(row, target): (&[i64], &u8)| {
        let power = |logit: &i64| (*logit as f64 / 16.0).exp2();
        -(power(&row[usize::from(*target)]) / row.iter().map(power).sum::<f64>()).log2()
    };
    logits.chunks(256).zip(&sequence[1..]).map(row).sum()
}

#[test]
fn bits_per_byte_are_those_of_the_sequences_one_by_one() {
    let model = model(3);
    let text: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
    for (len, sequences) in [(1000, 1), (1000, 3), (300, 7), (129, 1), (130, 1), (3, 1), (2, 64), (5, 64)] {
        let text = &text[..len];
        let found = bits_per_byte(&model, text, sequences);
        let sequences = sequences.min(len / 2);
        let mut rest = text;
        let parts = (0..sequences).map(|i| {
            let sequence;
            (sequence, rest) = rest.split_at(len / sequences + usize::from(i < len % sequences));
            bits(&model, sequence)
        });
        let expected = parts.sum::<f64>() / (len - sequences) as f64;
        assert_eq!(found.bytes, len - sequences);
        assert!((found.exact - expected).abs() < 1e-9, "{len} {sequences}: {found:?}, expected {expected}");
        let excess = found.exact - found.integer;
        assert!((0.0..0.16).contains(&excess), "{len} {sequences}: {found:?}");
    }
    // Canary: where sequences begin does matter.
    assert_ne!(bits_per_byte(&model, &text, 3).exact, bits_per_byte(&model, &text, 4).exact);
}

#[test]
fn a_uniform_model_needs_eight_bits() {
    let mut model = model(0);
    model.head.weight = model.head.weight.map(|weight| weight.zeros_like());
    let found = bits_per_byte(&model, b"anything at all", 2);
    assert!((found.exact - 8.0).abs() < 1e-12, "{found:?}");
    assert_eq!((found.integer, found.bytes), (8.0, 13));
}

#[test]
fn samples_depend_on_the_seed_alone() {
    let model = model(1).no_grad();
    let sample = |temperature, seed| {
        let sampler = Sampler::new(temperature, seed).expect("a sampler");
        sampler.sample(&model, b"To be", 40)
    };
    assert_eq!(sample(1.0, 5), sample(1.0, 5));
    assert_ne!(sample(1.0, 5), sample(1.0, 6));
    assert_eq!(sample(1.0, 5).len(), 40);
    // At temperature 0 it is the likeliest byte with every seed, as it is near 0.
    assert_eq!(sample(0.0, 5), sample(0.0, 6));
    for temperature in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(error(Sampler::new(temperature, 0)).contains(&format!("not {temperature}")));
    }
}

/// A float model: the next byte by the last one alone, a row of logits for each.
#[derive(Module, Debug)]
struct Bigram {
    rows: Param<Tensor<2>>,
}

impl ByteModel for Bigram {
    type Kind = Float;
    type State = ();
    type LogLikelihood = Tensor<1>;
    const LOGIT_BITS: f64 = std::f64::consts::LOG2_E;

    fn device(&self) -> Device {
        self.rows.device()
    }

    fn initial_state(&self, _sequences: usize) {}

    fn forward(&self, tokens: Tensor<2, Int>, _state: ()) -> (Tensor<3>, ()) {
        let [sequences, steps] = tokens.dims();
        let rows = self.rows.val().select(0, tokens.flatten::<1>(0, 1));
        (rows.reshape([sequences, steps, 256]), ())
    }

    fn log_likelihood(logits: Tensor<2>, targets: Tensor<1, Int>, members: usize) -> Tensor<1> {
        let losses = cross_entropy(logits, targets);
        let rows = losses.dims()[0] / members;
        -losses.reshape([members, rows]).sum_dim(1).reshape([members])
    }

    fn exact_bits(logits: Tensor<2>, targets: Tensor<1, Int>) -> f64 {
        Self::LOGIT_BITS * cross_entropy(logits, targets).into_data().iter::<f64>().sum::<f64>()
    }
}

#[test]
fn float_models_are_measured_and_sampled_too() {
    let table: Vec<f32> = (0..256 * 256).map(|i| (i as f32 * 1.7).sin() * 3.0).collect();
    let rows = Tensor::<1>::from_floats(&table[..], &Device::flex()).reshape([256, 256]);
    let model = Bigram { rows: Param::from_tensor(rows) };
    let text: Vec<u8> = (0..500u32).map(|i| (i * i % 251) as u8).collect();
    let bits = |pair: &[u8]| {
        let row = &table[256 * usize::from(pair[0])..][..256];
        let total: f64 = row.iter().map(|logit| f64::from(*logit).exp()).sum();
        (total / f64::from(row[usize::from(pair[1])]).exp()).log2()
    };
    let expected = text.windows(2).map(bits).sum::<f64>() / 499.0;
    let found = bits_per_byte(&model, &text, 1);
    assert!((found.exact - expected).abs() < 1e-5 && (found.integer - expected).abs() < 1e-5, "{found:?} {expected}");
    assert!((bits_per_byte(&model, &text[1..], 1).exact - expected).abs() > 1e-4, "canary");
    // At temperature 0 each byte is the likeliest after the one before.
    let sample = Sampler::new(0.0, 0).expect("a sampler").sample(&model, b"a", 5);
    let likeliest = |byte: u8| {
        let row = &table[256 * usize::from(byte)..][..256];
        row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).expect("256 bytes").0 as u8
    };
    let expected: Vec<u8> =
        std::iter::successors(Some(likeliest(b'a')), |byte| Some(likeliest(*byte))).take(5).collect();
    assert_eq!(sample, expected);
    // A model that has diverged draws nothing.
    for broken in [f32::NAN, f32::NEG_INFINITY] {
        let model = Bigram { rows: Param::from_tensor(Tensor::full([256, 256], broken, &Device::flex())) };
        let draw = || Sampler::new(1.0, 0).expect("a sampler").sample(&model, b"ab", 5);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(draw)).expect_err("refused");
        let text = panic.downcast_ref::<String>().expect("a text");
        assert!(text.contains("at byte 2 of the text"), "{text}");
    }
}
