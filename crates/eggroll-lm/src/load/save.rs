//! A folder that Hugging Face's transformers reads.

use super::chat::ChatTemplate;
use super::config::ModelConfig;
use super::error::LoadError;
use super::tokenizer::Tokenizer;
use half::{bf16, f16};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

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

    /// Whether a finite number becomes infinite.
    fn overflows(self, value: f32) -> bool {
        let saved = match self {
            Self::F32 => value,
            Self::BF16 => bf16::from_f32(value).to_f32(),
            Self::F16 => f16::from_f32(value).to_f32(),
        };
        value.is_finite() && !saved.is_finite()
    }
}

/// Writes `model.safetensors`, `config.json`, `generation_config.json`, `tokenizer.json` and `tokenizer_config.json` to a folder, which
/// is created if it is missing.
///
/// The tensors are `(name, shape, values)` with Hugging Face's names, taken and written one at a time. All files are written to drafts
/// first and renamed at the end, so that an error or a crash leaves no file that is half written.
///
/// # Errors
///
/// [`LoadError`] for a tensor whose values do not fill its shape, that occurs twice, or whose values the type cannot hold; for a Llama
/// model, for tensors that are missing or of another shape than the configuration says; and if a file cannot be written.
pub fn save_model(
    folder: impl AsRef<Path>,
    config: &ModelConfig,
    tokenizer: &Tokenizer,
    template: Option<&ChatTemplate>,
    tensors: impl IntoIterator<Item = (String, Vec<usize>, Vec<f32>)>,
    dtype: SavedDtype,
) -> Result<(), LoadError> {
    let folder = folder.as_ref();
    fs::create_dir_all(folder).map_err(LoadError::io(folder, "create"))?;
    config.validate()?;
    let mut saved = Saved::new(folder, dtype)?;
    for (name, shape, values) in tensors {
        saved.add(name, shape, &values)?;
    }
    check_complete(config, &saved.tensors)?;
    let weights = saved.finish()?;

    let mut json = config.to_json();
    let generation = generation(tokenizer);
    if let Some(json) = json.as_object_mut() {
        json.extend(generation.clone());
        json.insert("torch_dtype".into(), dtype.names().1.into());
    }
    let settings = tokenizer.settings(template.and_then(ChatTemplate::setting));
    let drafts = [
        ("tokenizer.json", draft(folder, tokenizer.to_json()?.as_bytes())?),
        ("tokenizer_config.json", draft(folder, pretty(&settings).as_bytes())?),
        ("generation_config.json", draft(folder, pretty(&generation.into()).as_bytes())?),
        ("config.json", draft(folder, pretty(&json).as_bytes())?),
        ("model.safetensors", weights),
    ];
    for (name, draft) in drafts {
        let path = folder.join(name);
        draft.persist(&path).map_err(|error| LoadError::io(&path, "write")(error.error))?;
    }
    // An older template would take precedence.
    let jinja = folder.join("chat_template.jinja");
    if jinja.exists() {
        fs::remove_file(&jinja).map_err(LoadError::io(&jinja, "remove"))?;
    }
    Ok(())
}

/// Ids of the begin and the end, where transformers looks for them.
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

fn new_draft(folder: &Path) -> Result<NamedTempFile, LoadError> {
    let mut builder = Builder::new();
    builder.prefix(".").suffix(".draft");
    #[cfg(unix)]
    {
        // Readable for others as far as the process allows, as other files are.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder).map_err(LoadError::io(folder, "write a file in"))
}

fn draft(folder: &Path, content: &[u8]) -> Result<NamedTempFile, LoadError> {
    let mut draft = new_draft(folder)?;
    let written = draft.write_all(content).and_then(|()| draft.as_file().sync_all());
    written.map_err(LoadError::io(draft.path(), "write"))?;
    Ok(draft)
}

/// Checks that a Llama model has all of its tensors.
fn check_complete(config: &ModelConfig, tensors: &BTreeMap<String, Entry>) -> Result<(), LoadError> {
    let ModelConfig::Llama(config) = config else { return Ok(()) };
    for (name, shape) in config.tensors() {
        let reason = match tensors.get(&name) {
            Some(tensor) if tensor.shape == shape => continue,
            Some(tensor) => format!("it has shape {:?}, the configuration expects {shape:?}", tensor.shape),
            None => format!("it is missing: the configuration expects it, of shape {shape:?}"),
        };
        return Err(LoadError::Save { name, reason });
    }
    Ok(())
}

/// A tensor that is written: its shape, and the end of its bytes.
struct Entry {
    shape: Vec<usize>,
    begin: u64,
    end: u64,
}

/// Tensors on their way to a file. The header of SafeTensors comes first and needs all of them, so their bytes wait in a draft.
struct Saved<'a> {
    folder: &'a Path,
    dtype: SavedDtype,
    data: File,
    end: u64,
    tensors: BTreeMap<String, Entry>,
}

impl<'a> Saved<'a> {
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
        if let Some(value) = values.iter().find(|&&value| self.dtype.overflows(value)) {
            return refuse(format!("{value} is beyond {}: save as BF16 or F32", self.dtype.names().0));
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

    fn finish(mut self) -> Result<NamedTempFile, LoadError> {
        let mut draft = new_draft(self.folder)?;
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
