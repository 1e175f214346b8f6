//! A folder that Hugging Face's transformers reads.

use super::chat::ChatTemplate;
use super::config::ModelConfig;
use super::error::LoadError;
use super::replacement::Replacement;
use super::stale;
use super::tokenizer::Tokenizer;
use half::{bf16, f16};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Numbers that are converted at once.
const PIECE: usize = 1 << 18;

/// How weights are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedDtype {
    /// Exactly.
    F32,
    /// The range of f32, with 8 bits of precision.
    BF16,
    /// 11 bits of precision, up to 65504.
    F16,
}

impl SavedDtype {
    fn names(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::F32 => ("F32", "float32", 4),
            Self::BF16 => ("BF16", "bfloat16", 2),
            Self::F16 => ("F16", "float16", 2),
        }
    }

    fn bytes(self, values: &[f32]) -> Vec<u8> {
        match self {
            Self::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::BF16 => values.iter().flat_map(|&value| bf16::from_f32(value).to_le_bytes()).collect(),
            Self::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect(),
        }
    }

    /// The number after a round trip.
    fn rounded(self, value: f32) -> f32 {
        match self {
            Self::F32 => value,
            Self::BF16 => bf16::from_f32(value).to_f32(),
            Self::F16 => f16::from_f32(value).to_f32(),
        }
    }
}

/// The files that are written.
const FILES: [&str; 5] =
    ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];

/// Writes `model.safetensors`, `config.json`, `generation_config.json`, `tokenizer.json` and `tokenizer_config.json` to a folder, which
/// is created if it is missing.
///
/// The tensors are `(name, shape, values)` with Hugging Face's names, taken and written one at a time. All files are written to drafts
/// first and renamed at the end: after an error the folder is unchanged. A process that is killed while it renames leaves a folder without
/// `config.json`, which no program opens. The old files are then named `.NAME.old.RANDOM.draft`, until the next save succeeds. The next
/// save removes leftover drafts. Only one process at a time can save to a folder.
///
/// Files of an earlier model that other programs would read instead are removed. All other files are kept.
///
/// | removed | what it is |
/// |---|---|
/// | `model.safetensors.index.json`, `pytorch_model.bin.index.json` and the files that they name, `model-00001-of-00002.safetensors` and the like, `pytorch_model.bin`, `tf_model.h5`, `flax_model.msgpack`, `consolidated.safetensors`, `consolidated.00.pth` and the like | weights |
/// | `adapter_config.json`, `adapter_model.safetensors`, `adapter_model.bin` | changes of weights |
/// | `tokenizer.model`, `tekken.json`, `vocab.json`, `merges.txt`, `added_tokens.json`, `special_tokens_map.json` | the tokenizer |
/// | `chat_template.jinja`, `chat_template.json`, the folder `additional_chat_templates` | chat templates |
///
/// # Errors
///
/// [`LoadError`]
/// - for a tensor that occurs twice, whose values do not fill its shape, are not finite, or do not fit the type;
/// - for tensors that are missing, have another shape than in the configuration, or are not in it;
/// - if a file cannot be written.
pub fn save_model(
    folder: impl AsRef<Path>,
    config: &ModelConfig,
    tokenizer: &Tokenizer,
    template: Option<&ChatTemplate>,
    tensors: impl IntoIterator<Item = (String, Vec<usize>, Vec<f32>)>,
    dtype: SavedDtype,
) -> Result<(), LoadError> {
    // An empty path is the current folder.
    let folder = Some(folder.as_ref()).filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    config.validate()?;
    let is_new = !folder.exists();
    let save = || {
        let mut files = Replacement::begin(folder, &FILES)?;
        write(&mut files, config, tokenizer, template, tensors, dtype)?;
        files.commit(&stale::names(folder, &FILES)?)
    };
    let saved = save();
    if saved.is_err() && is_new {
        // Empty again.
        let _ = fs::remove_dir(folder);
    }
    saved
}

fn write(
    files: &mut Replacement,
    config: &ModelConfig,
    tokenizer: &Tokenizer,
    template: Option<&ChatTemplate>,
    tensors: impl IntoIterator<Item = (String, Vec<usize>, Vec<f32>)>,
    dtype: SavedDtype,
) -> Result<(), LoadError> {
    let mut saved = TensorDraft::new(files.folder(), dtype)?;
    for (name, shape, values) in tensors {
        saved.add(name, shape, &values)?;
    }
    check_complete(config, &saved.tensors)?;
    let weights = saved.finish(files.draft("model.safetensors")?)?;
    files.add("model.safetensors", weights);

    let mut json = config.to_json();
    let generation = generation(tokenizer);
    if let Some(json) = json.as_object_mut() {
        json.extend(generation.clone());
        json.insert("torch_dtype".into(), dtype.names().1.into());
    }
    let settings = tokenizer.settings(template.and_then(ChatTemplate::setting));
    files.write("tokenizer.json", tokenizer.to_json()?.as_bytes())?;
    files.write("tokenizer_config.json", pretty(&settings).as_bytes())?;
    files.write("generation_config.json", pretty(&generation.into()).as_bytes())?;
    files.write("config.json", pretty(&json).as_bytes())
}

/// Ids of the begin and end tokens, where transformers looks for them.
fn generation(tokenizer: &Tokenizer) -> Map<String, Value> {
    let mut ids = Map::new();
    ids.insert("bos_token_id".into(), tokenizer.bos().into());
    ids.insert(
        "eos_token_id".into(),
        match tokenizer.eos() {
            [id] => json!(id),
            ids => json!(ids),
        },
    );
    let pad = tokenizer.special_tokens().pad.as_deref().and_then(|token| tokenizer.id(token));
    ids.insert("pad_token_id".into(), pad.into());
    ids
}

fn pretty(json: &Value) -> String {
    format!("{json:#}\n")
}

/// Checks that a model has all of its tensors, and no others: it could not be opened.
fn check_complete(config: &ModelConfig, tensors: &BTreeMap<String, Entry>) -> Result<(), LoadError> {
    let mut more: BTreeSet<&String> = tensors.keys().collect();
    for (name, shape) in config.tensors() {
        more.remove(&name);
        let reason = match tensors.get(&name) {
            Some(tensor) if tensor.shape == shape => continue,
            Some(tensor) => format!("it has shape {:?}, the configuration expects {shape:?}", tensor.shape),
            None => format!("it is missing: the configuration expects it, of shape {shape:?}"),
        };
        return Err(LoadError::Save { name, reason });
    }
    match more.pop_first() {
        Some(name) => {
            let reason = "the configuration has no such tensor".into();
            Err(LoadError::Save { name: name.clone(), reason })
        }
        None => Ok(()),
    }
}

/// A tensor that is written: its shape, and the end of its bytes.
struct Entry {
    shape: Vec<usize>,
    begin: u64,
    end: u64,
}

/// Tensors on their way to a file. The header of SafeTensors comes first and needs all of them, so their bytes wait in a draft.
struct TensorDraft<'a> {
    folder: &'a Path,
    dtype: SavedDtype,
    data: File,
    end: u64,
    tensors: BTreeMap<String, Entry>,
}

impl<'a> TensorDraft<'a> {
    fn new(folder: &'a Path, dtype: SavedDtype) -> Result<Self, LoadError> {
        let data = tempfile::tempfile_in(folder).map_err(LoadError::io(folder, "write a file in"))?;
        Ok(Self { folder, dtype, data, end: 0, tensors: BTreeMap::new() })
    }

    fn add(&mut self, name: String, shape: Vec<usize>, values: &[f32]) -> Result<(), LoadError> {
        let refuse = |reason: String| Err(LoadError::Save { name: name.clone(), reason });
        let expected = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        if expected != Some(values.len()) {
            return refuse(format!("{} values do not fill its shape {shape:?}", values.len()));
        }
        if name == "__metadata__" || self.tensors.contains_key(&name) {
            return refuse("the name is taken".into());
        }
        if let Some(index) = values.iter().position(|&value| !self.dtype.rounded(value).is_finite()) {
            let value = values[index];
            return refuse(match value.is_finite() {
                true => format!("{value} is beyond {}: save as BF16 or F32", self.dtype.names().0),
                false => format!("it has {value} at element {index}: weights must be finite"),
            });
        }
        let written = values.chunks(PIECE).try_for_each(|piece| self.data.write_all(&self.dtype.bytes(piece)));
        written.map_err(LoadError::io(self.folder, "write a file in"))?;
        let begin = self.end;
        self.end += (values.len() * self.dtype.names().2) as u64;
        self.tensors.insert(name, Entry { shape, begin, end: self.end });
        Ok(())
    }

    fn header(&self) -> Vec<u8> {
        let mut header = Map::new();
        header.insert("__metadata__".into(), json!({ "format": "pt" }));
        for (name, Entry { shape, begin, end }) in &self.tensors {
            let entry = json!({ "dtype": self.dtype.names().0, "shape": shape, "data_offsets": [begin, end] });
            header.insert(name.clone(), entry);
        }
        let mut header = Value::from(header).to_string().into_bytes();
        // Tensors begin at a multiple of eight bytes.
        header.resize(header.len().next_multiple_of(8), b' ');
        header
    }

    /// Completes the file on disk.
    fn finish(mut self, mut draft: NamedTempFile) -> Result<NamedTempFile, LoadError> {
        let header = self.header();
        let mut write = || -> io::Result<()> {
            let data = &mut self.data;
            data.seek(SeekFrom::Start(0))?;
            draft.write_all(&(header.len() as u64).to_le_bytes())?;
            draft.write_all(&header)?;
            io::copy(data, draft.as_file_mut())?;
            draft.as_file().sync_all()
        };
        write().map_err(LoadError::io(self.folder, "write a file in"))?;
        Ok(draft)
    }
}
