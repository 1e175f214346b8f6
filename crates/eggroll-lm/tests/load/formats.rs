//! Both formats of weights: what is read, and what is refused with which words.

use crate::write_gguf::{GgufFile, Value, f32s, tiny, write};
use eggroll_lm::load::{LoadError, Pretrained, Weights};
use half::{bf16, f16};
use serde_json::json;
use std::path::Path;

/// A SafeTensors file of a header and bytes.
fn safetensors(header: serde_json::Value, data: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn three() -> Vec<u8> {
    let header = json!({
        "__metadata__": { "format": "pt" },
        "a": { "dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16] },
        "b": { "dtype": "BF16", "shape": [3], "data_offsets": [16, 22] },
        "c.weight": { "dtype": "F16", "shape": [1, 1], "data_offsets": [22, 24] },
    });
    let mut data = f32s([1.0, 2.0, 3.0, 4.0]);
    data.extend([0.5f32, -1.0, 3e38].iter().flat_map(|&value| bf16::from_f32(value).to_le_bytes()));
    data.extend(f16::from_f32(0.1).to_le_bytes());
    safetensors(header, &data)
}

fn refused(bytes: &[u8], name: &str) -> String {
    let (_folder, path) = write(bytes, name);
    Weights::open(path).expect_err("a refusal").to_string()
}

#[test]
fn safetensors_of_all_floats() {
    let (_folder, path) = write(&three(), "x.safetensors");
    let weights = Weights::open(path).unwrap();
    assert_eq!(weights.names().collect::<Vec<_>>(), ["a", "b", "c.weight"]);
    assert_eq!(
        (weights.shape("a"), weights.dtype("b"), weights.shape("d")),
        (Some([2, 2].as_slice()), Some("BF16"), None)
    );
    assert_eq!(weights.read("a", &[2, 2]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(weights.read("b", &[3]).unwrap(), [0.5, -1.0, bf16::from_f32(3e38).to_f32()]);
    assert_eq!(weights.read("c.weight", &[1, 1]).unwrap(), [f16::from_f32(0.1).to_f32()]);
}

#[test]
fn a_wrong_request_is_answered_with_what_is_there() {
    let (_folder, path) = write(&three(), "x.safetensors");
    let weights = Weights::open(path).unwrap();
    let error = weights.read("a", &[4]).unwrap_err().to_string();
    assert!(error.contains("tensor \"a\"") && error.contains("shape [2, 2], the model expects [4]"), "{error}");
    let error = weights.read("model.c.weight", &[1]).unwrap_err();
    assert!(
        matches!(error, LoadError::MissingTensor { tensors: 3, ref similar, .. } if similar == &["c.weight"]),
        "{error}"
    );
}

#[test]
fn other_types_are_listed_but_not_read() {
    let header = json!({ "a": { "dtype": "I64", "shape": [1], "data_offsets": [0, 8] } });
    let (_folder, path) = write(&safetensors(header, &[0; 8]), "x.safetensors");
    let weights = Weights::open(path).unwrap();
    assert_eq!(weights.dtype("a"), Some("I64"));
    let error = weights.read("a", &[1]).unwrap_err().to_string();
    assert!(error.contains("unsupported type of tensor \"a\" I64; supported: F32, F16, BF16"), "{error}");
}

#[test]
fn damaged_safetensors_are_refused() {
    let whole = three();
    assert!(refused(&whole[..5], "x.safetensors").contains("it has 5 bytes, expected 8 at least"));
    assert!(refused(&whole[..40], "x.safetensors").contains("too few for a header"));
    assert!(refused(&whole[..whole.len() - 1], "x.safetensors").contains("23 bytes of tensors, expected 24"));
    assert!(refused(&[whole.clone(), vec![0]].concat(), "x.safetensors").contains("25 bytes of tensors, expected 24"));
    assert!(refused(&[0xff; 16], "x.safetensors").contains("100000000 at most"));
    let page = refused(b"<!DOCTYPE html><html>404</html>", "x.safetensors");
    assert!(page.contains("it begins with \"<!DOCTYPE html><html>404\", expected"), "{page}");
    let pointer = refused(b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "x.safetensors");
    assert!(pointer.contains("it begins with \"version https://git-lfs.\""), "{pointer}");
    let twice = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let twice = [&(twice.len() as u64).to_le_bytes(), twice.as_bytes(), &[0; 4]].concat();
    assert!(refused(&twice, "x.safetensors").contains("the tensor \"a\" occurs twice"));
    assert!(refused(&[0; 16], "x.safetensors").contains("EOF"));
    let shape = |shape: serde_json::Value, end: u64| {
        let header = json!({ "a": { "dtype": "F32", "shape": shape, "data_offsets": [0, end] } });
        refused(&safetensors(header, &[0; 16]), "x.safetensors")
    };
    shape(json!([3]), 16);
    shape(json!([1u64 << 40, 1u64 << 40]), 16);
    shape(json!([-1]), 16);
    shape(json!([4]), u64::MAX);
}

fn in_folder(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| std::fs::write(folder.path().join(name), bytes).unwrap());
    folder
}

fn part(name: &str, value: f32) -> Vec<u8> {
    let header = json!({ name: { "dtype": "F32", "shape": [1], "data_offsets": [0, 4] } });
    safetensors(header, &f32s([value]))
}

/// Tensors a and b.
fn two_parts() -> Vec<u8> {
    let one = |at: u64| json!({ "dtype": "F32", "shape": [1], "data_offsets": [at, at + 4] });
    safetensors(json!({ "a": one(0), "b": one(4) }), &f32s([5.0, 6.0]))
}

#[test]
fn a_model_in_several_files() {
    let index = |map: serde_json::Value| json!({ "metadata": {}, "weight_map": map }).to_string().into_bytes();
    let name = "model.safetensors.index.json";
    let files = |map: serde_json::Value| {
        let folder =
            in_folder(&[("1.safetensors", part("a", 1.0)), ("2.safetensors", part("b", 2.0)), (name, index(map))]);
        (Weights::open(folder.path()), folder)
    };
    let (weights, _folder) = files(json!({ "a": "1.safetensors", "b": "2.safetensors" }));
    let weights = weights.unwrap();
    assert_eq!((weights.read("a", &[1]).unwrap(), weights.read("b", &[1]).unwrap()), (vec![1.0], vec![2.0]));

    let refused = |map: serde_json::Value| files(map).0.expect_err("a refusal").to_string();
    assert!(
        refused(json!({ "a": "1.safetensors", "b": "3.safetensors" })).contains("3.safetensors is missing: model.saf")
    );
    assert!(
        refused(json!({ "a": "1.safetensors", "b": "1.safetensors" })).contains("tensor \"b\" is not in 1.safetensors")
    );
    for path in ["../1.safetensors", "/etc/passwd", "", ".", "sub/1.safetensors", "c:1"] {
        assert!(refused(json!({ "a": path })).contains("not in a file of this folder"), "{path}");
    }
    assert!(refused(json!({ "a": 1 })).contains("not in a file of this folder"));
    assert!(refused(json!([])).contains("no object \"weight_map\""));
    // Which of two counts, only the index could say.
    let twice = [("1.safetensors", part("a", 1.0)), ("2.safetensors", two_parts())];
    let folder =
        in_folder(&[&twice[..], &[(name, index(json!({ "a": "1.safetensors", "b": "2.safetensors" })))]].concat());
    let error = Weights::open(folder.path()).expect_err("a refusal").to_string();
    assert!(error.contains("tensor \"a\" of 2.safetensors is not in the index"), "{error}");
    // One file is read before several, as transformers does.
    std::fs::write(folder.path().join("model.safetensors"), part("c", 3.0)).unwrap();
    assert_eq!(Weights::open(folder.path()).unwrap().names().collect::<Vec<_>>(), ["c"]);
}

#[test]
fn paths_without_a_model_are_refused() {
    let folder = in_folder(&[("pytorch_model.bin", vec![]), ("config.json", b"{}".to_vec())]);
    let refused = |path: &Path| Weights::open(path).expect_err("a refusal").to_string();
    assert!(
        refused(folder.path())
            .contains("found a folder with config.json, pytorch_model.bin, expected a folder with model.saf")
    );
    assert!(refused(&folder.path().join("nothing")).contains("found nothing"));
    assert!(refused(&folder.path().join("pytorch_model.bin")).contains("another ending"));
    assert!(refused(tempfile::tempdir().unwrap().path()).contains("an empty folder"));
    std::fs::create_dir(folder.path().join("x.gguf")).unwrap();
    assert!(refused(&folder.path().join("x.gguf")).contains("an empty folder"));
}

#[test]
fn gguf_has_names_of_hugging_face_and_rows_in_their_order() {
    let (_folder, path) = tiny("llama").write();
    let weights = Weights::open(path).unwrap();
    let rows = |weights: &Weights, name: &str, rows: usize, columns: usize| -> Vec<usize> {
        let values = weights.read(name, &[rows, columns]).unwrap();
        values.chunks(columns).map(|row| row[0] as usize / columns).collect()
    };
    let attention = |part: &str| format!("model.layers.0.self_attn.{part}_proj.weight");
    assert_eq!(rows(&weights, &attention("q"), 8, 8), [0, 2, 1, 3, 4, 6, 5, 7]);
    assert_eq!(rows(&weights, &attention("k"), 4, 8), [0, 2, 1, 3]);
    assert_eq!(rows(&weights, &attention("v"), 4, 8), [0, 1, 2, 3]);
    assert_eq!(rows(&weights, "model.layers.0.mlp.down_proj.weight", 8, 4), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(weights.shape("model.embed_tokens.weight"), Some([261, 8].as_slice()));

    let mut file = tiny("llama");
    file.tensors.push(("blk.0.attn_q.bias".into(), vec![8], 0, f32s((0..8).map(|value| value as f32))));
    let (_folder, path) = file.write();
    let bias = Weights::open(path).unwrap().read("model.layers.0.self_attn.q_proj.bias", &[8]).unwrap();
    assert_eq!(bias, [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);

    let (_folder, path) = tiny("qwen2").write();
    assert_eq!(rows(&Weights::open(path).unwrap(), &attention("q"), 8, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn version_2_is_read_and_others_are_refused() {
    let version = |version: u32| refused(&GgufFile { version, ..tiny("llama") }.bytes(), "x.gguf");
    let (_folder, path) = GgufFile { version: 2, ..tiny("llama") }.write();
    assert!(Weights::open(path).is_ok());
    assert!(version(1).contains("GGUF version 1; supported: 2 and 3"));
    assert!(version(4).contains("version 4"));
    assert!(version(3u32.swap_bytes()).contains("big-endian"));
    assert!(refused(b"GGML and more", "x.gguf").contains("begins with \"GGML\""));
    assert!(refused(b"", "x.gguf").contains("ends at byte 0"));
}

#[test]
fn impossible_descriptions_in_gguf_are_refused() {
    let change = |change: &dyn Fn(&mut GgufFile)| {
        let mut file = tiny("llama");
        change(&mut file);
        refused(&file.bytes(), "x.gguf")
    };
    assert!(change(&|file| file.tensors[1].1 = vec![]).contains("0 dimensions, expected 1 to 4"));
    assert!(change(&|file| file.tensors[1].1 = vec![1; 5]).contains("5 dimensions"));
    assert!(change(&|file| file.tensors[1].1 = vec![1 << 40; 2]).contains("too few for tensor"));
    assert!(change(&|file| file.tensors[1].1 = vec![u64::MAX; 4]).contains("too few for tensor"));
    assert!(change(&|file| file.tensors[1].1 = vec![16]).contains("overlap"));
    assert!(change(&|file| file.tensors[1].2 = 3).contains("Q4_1 blocks of 32 do not fill"));
    assert!(
        change(&|file| file.tensors[1].2 = 99).contains("unsupported type of tensor \"blk.0.attn_norm.weight\" 99")
    );
    assert!(change(&|file| file.tensors[1].0 = "output_norm.weight".into()).contains("occurs twice"));
    assert!(change(&|file| file.tensors[1].0 = "model.norm.weight".into()).contains("two tensors have the name"));
    assert!(change(&|file| file.metadata.push(file.metadata[0].clone())).contains("occurs twice"));
    assert!(
        change(&|file| file.set("general.alignment", Value::U32(0)))
            .contains("general.alignment is 0, expected a power")
    );
    assert!(change(&|file| file.set("general.alignment", Value::U32(64))).contains("expected a multiple of 64"));
    assert!(
        change(&|file| file.set("llama.attention.head_count", Value::U32(3)))
            .contains("expected 3 heads of an even size")
    );
    assert!(change(&|file| file.metadata.remove(0).0.clear()).contains("no general.architecture"));
}

/// A tensor of no values is one, in both formats; what it would be for is told by its shape.
#[test]
fn empty_tensors_are_listed() {
    let header = json!({ "a": { "dtype": "F32", "shape": [0], "data_offsets": [0, 0] } });
    let (_folder, path) = write(&safetensors(header, &[]), "x.safetensors");
    let weights = Weights::open(path).unwrap();
    assert_eq!((weights.shape("a").unwrap(), weights.read("a", &[0]).unwrap()), (&[0][..], vec![]));
    let mut file = tiny("llama");
    for (at, name, sizes) in [
        (1, "model.layers.0.input_layernorm.weight", vec![0]),
        (2, "model.layers.0.self_attn.q_proj.weight", vec![8, 0]),
    ] {
        file.tensors[at].1 = sizes;
        let (_folder, path) = file.write();
        let weights = Weights::open(&path).unwrap();
        let shape = weights.shape(name).unwrap().to_vec();
        assert!(shape.contains(&0) && weights.read(name, &shape).unwrap().is_empty());
        let error = Pretrained::open(path).expect_err("a refusal");
        assert!(matches!(error, LoadError::Shape { .. }), "{error}");
    }
}

#[test]
fn counts_beyond_the_file_allocate_nothing() {
    let whole = tiny("llama").bytes();
    for at in [8, 16, 24] {
        for count in [u64::MAX, 1 << 40, 1 << 20] {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&count.to_le_bytes());
            let error = refused(&bytes, "x.gguf");
            assert!(error.contains("more than the"), "{error}");
        }
    }
    // Arrays in arrays in arrays.
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(0u64.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend([&1u64.to_le_bytes()[..], b"k"].concat());
    bytes.extend(9u32.to_le_bytes());
    for _ in 0..1000 {
        bytes.extend(9u32.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
    }
    assert!(refused(&bytes, "x.gguf").contains("nested deeper than 4"));
}
