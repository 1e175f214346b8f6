//! Named tensors of a model, read one at a time.

mod blocks;
mod check;
mod rotary;
mod safetensors;

pub(crate) use blocks::StoredMatrix;

use super::encoding::{Encoding, SUPPORTED};
use super::error::LoadError;
use super::gguf::{self, Gguf, Layout};
use super::kind::Kind;
use super::model_files::ModelFiles;
use super::source::SourceFile;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Numbers that are decoded from one piece of a file.
const PIECE: usize = 1 << 18;

/// The tensors of a model on disk, with Hugging Face's names, such as `model.layers.0.self_attn.q_proj.weight`.
///
/// Opening reads only the headers. Matrices are row-major, `[outputs, inputs]`, from both formats. Of a GGUF file of the Llama
/// family, names, shapes, the order of query and key rows, and the gains of Gemma are translated.
///
/// # Example
///
/// ```no_run
/// use eggroll_lm::load::Weights;
///
/// # fn main() -> Result<(), eggroll_lm::load::LoadError> {
/// let weights = Weights::open("smollm2-135m-instruct-q4_1.gguf")?;
/// let norm: Vec<f32> = weights.read("model.norm.weight", &[576])?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Weights {
    path: PathBuf,
    files: Vec<SourceFile>,
    tensors: BTreeMap<String, Tensor>,
    /// Layout of a GGUF file, which can be written again.
    layout: Option<Layout>,
    /// Kind of a GGUF file whose names are translated.
    kind: Option<Kind>,
}

/// The location of a tensor.
#[derive(Debug)]
struct Tensor {
    file: usize,
    offset: u64,
    shape: Vec<usize>,
    encoding: Encoding,
    /// Heads whose rows are stored in interleaved pairs.
    interleaved: Option<usize>,
    /// Whether numbers are stored plus 1, as the gains of Gemma in GGUF files.
    plus_one: bool,
}

impl Weights {
    /// Opens a folder with `model.safetensors` or `model.safetensors.index.json`, a `.safetensors` file, or a `.gguf` file.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for a path with no model, and for files that are missing, damaged or cut off.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        match ModelFiles::find(path.as_ref())? {
            ModelFiles::Gguf(path) => Self::from_gguf(Gguf::open(&path)?),
            ModelFiles::File { weights, .. } => Self::from_safetensors(&weights),
            ModelFiles::Index { index, .. } => Self::from_index(&index),
        }
    }

    pub(crate) fn from_gguf(gguf: Gguf) -> Result<Self, LoadError> {
        let kind = Kind::of_architecture(gguf.architecture()?);
        let mut tensors = BTreeMap::new();
        for info in &gguf.layout.tensors {
            let name = kind.map_or_else(|| info.name.clone(), |kind| gguf::hugging_face(kind, &info.name));
            let pairs = matches!(kind, Some(Kind::Llama | Kind::SmolLm3));
            let interleaved = if pairs { rotary::heads(&gguf, info)? } else { None };
            let plus_one = kind.is_some_and(Kind::is_gemma) && name.ends_with("norm.weight");
            let (shape, encoding, offset) = (info.shape.clone(), info.encoding, info.offset);
            let tensor = Tensor { file: 0, offset, shape, encoding, interleaved, plus_one };
            if tensors.insert(name.clone(), tensor).is_some() {
                return Err(gguf.metadata.malformed(format!("two tensors have the name {name:?}")));
            }
        }
        let path = gguf.source.path().to_owned();
        Ok(Self { path, files: vec![gguf.source], tensors, layout: Some(gguf.layout), kind })
    }

    /// Names of all tensors, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Shape of a tensor, if it is there.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|tensor| tensor.shape.as_slice())
    }

    /// How a tensor is stored, such as `BF16` or `Q4_1`, if it is there.
    pub fn dtype(&self, name: &str) -> Option<&'static str> {
        self.tensors.get(name).map(|tensor| tensor.encoding.name())
    }

    /// The file or folder that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a tensor of an expected shape, as f32 in row-major order. Quantized tensors are dequantized.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if the tensor is missing, of another shape or of a type that is not supported, or if the file cannot be read.
    pub fn read(&self, name: &str, expected_shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let (tensor, block_numbers, block_bytes) = self.find(name, expected_shape)?;
        // Opening has checked that the file holds them, so they cannot overflow.
        let count: usize = tensor.shape.iter().product();
        let source = &self.files[tensor.file];
        let mut values = Vec::new();
        let beyond = |_| LoadError::io(source.path(), "hold the tensors of")(io::ErrorKind::OutOfMemory.into());
        values.try_reserve_exact(count).map_err(beyond)?;
        let mut piece = vec![0; PIECE.min(count) / block_numbers * block_bytes];
        let mut offset = tensor.offset;
        while values.len() < count {
            let blocks = (count - values.len()).min(PIECE) / block_numbers;
            let bytes = &mut piece[..blocks * block_bytes];
            source.read_at(offset, bytes)?;
            bytes.chunks_exact(block_bytes).for_each(|block| tensor.encoding.decode(block, &mut values));
            offset += bytes.len() as u64;
        }
        if let Some(heads) = tensor.interleaved.filter(|_| count > 0) {
            rotary::to_halves(&mut values, heads, tensor.shape[0]);
        }
        if tensor.plus_one {
            values.iter_mut().for_each(|value| *value -= 1.0);
        }
        Ok(values)
    }

    /// [`read`](Self::read) of values that are all finite.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and for the first element that is not finite.
    pub(crate) fn finite(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let values = self.read(name, shape)?;
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(index) => {
                let found = format!("{} at element {index}", values[index]);
                let reason = format!("tensor `{name}` has {found}: weights must be finite");
                Err(LoadError::malformed(self.path(), "weights", reason))
            }
        }
    }

    /// A tensor of an expected shape, with the numbers and the bytes of a block.
    fn find(&self, name: &str, expected_shape: &[usize]) -> Result<(&Tensor, usize, usize), LoadError> {
        let tensor = self.tensors.get(name).ok_or_else(|| self.missing(name))?;
        if tensor.shape != expected_shape {
            let (path, name) = (self.path.clone(), name.to_owned());
            let (found, expected) = (tensor.shape.clone(), expected_shape.to_vec());
            return Err(LoadError::Shape { path, name, found, expected });
        }
        let Some((numbers, bytes)) = tensor.encoding.block() else {
            let what = format!("type of tensor \"{name}\"");
            return Err(LoadError::unsupported(&self.path, what, tensor.encoding.name(), SUPPORTED));
        };
        Ok((tensor, numbers, bytes))
    }

    fn missing(&self, name: &str) -> LoadError {
        let end = name.rsplit('.').take(2).collect::<Vec<_>>();
        let similar = self.names().filter(|other| other.rsplit('.').take(2).eq(end.iter().copied()));
        LoadError::MissingTensor {
            path: self.path.clone(),
            name: name.to_owned(),
            tensors: self.tensors.len(),
            similar: similar.take(3).map(str::to_owned).collect(),
        }
    }
}
