//! Texts to tokens and back.

mod added;
mod check;
mod gguf;
mod guard;
mod limits;
mod sentencepiece;
mod special;
mod splits;

pub use special::SpecialTokens;

use super::error::LoadError;
use super::gguf::Gguf;
use super::model_files::ModelFiles;
use super::source::read_json;
use added::Neighbours;
use guard::guarded;
use serde_json::{Map, Value};
use special::Declared;
use splits::Splits;
use std::path::Path;
use std::str::FromStr;
use tokenizers::tokenizer::{Model, OffsetType};

/// A byte-pair encoding (BPE) and its special tokens.
///
/// # Example
///
/// ```no_run
/// use eggroll_lm::load::Tokenizer;
///
/// # fn main() -> Result<(), eggroll_lm::load::LoadError> {
/// let tokenizer = Tokenizer::open("smollm2-135m-instruct-q4_1.gguf")?;
/// let ids = tokenizer.encode("Gravity is")?;
/// assert_eq!(tokenizer.decode(&ids, true)?, "Gravity is");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    splits: Splits,
    /// Unused here; kept for `tokenizer.json`.
    post_processor: Value,
    special: SpecialTokens,
    bos: Option<u32>,
    eos: Vec<u32>,
    adds_bos: bool,
    /// The contents of `tokenizer_config.json`.
    settings: Map<String, Value>,
}

impl Tokenizer {
    /// Reads the tokenizer of the model at a path, as in [`Weights::open`](super::Weights::open). It is in `tokenizer.json` and the
    /// files next to it that name special tokens, or in a GGUF file.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if `tokenizer.json` is missing or damaged, and for tokenizers other than byte-pair encodings.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        match ModelFiles::find(path.as_ref())? {
            ModelFiles::Gguf(path) => Self::from_gguf(&Gguf::open(&path)?),
            ModelFiles::File { folder, .. } | ModelFiles::Index { folder, .. } => Self::from_folder(folder),
        }
    }

    /// Reads `tokenizer.json` of a folder and, if they exist, `tokenizer_config.json`, `special_tokens_map.json`, `added_tokens.json`,
    /// `generation_config.json` and `config.json`, which add and name special tokens. Their precedence is that of transformers: with
    /// `added_tokens_decoder` in the first, the next two are not read.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and for a named token that is not among the tokens.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self, LoadError> {
        let folder = folder.as_ref();
        let path = folder.join("tokenizer.json");
        let advice = match folder.join("tokenizer.model").exists() {
            true => {
                "tokenizer.model alone is not read: save it with AutoTokenizer.from_pretrained(…).save_pretrained(…) of transformers"
            }
            false => "save it with AutoTokenizer.from_pretrained(…).save_pretrained(…) of transformers",
        };
        let mut json = read_json(&path)?.ok_or_else(|| LoadError::MissingFile { path: path.clone(), advice })?;
        let object = |name: &str| -> Result<Map<String, Value>, LoadError> {
            let path = folder.join(name);
            match read_json(&path)? {
                None => Ok(Map::new()),
                Some(Value::Object(map)) => Ok(map),
                Some(_) => Err(LoadError::malformed(&path, "JSON of a tokenizer", "it is not an object")),
            }
        };
        let files = Neighbours {
            settings: object("tokenizer_config.json")?,
            names: object("special_tokens_map.json")?,
            ids: object("added_tokens.json")?,
        };
        let (generation, config) = (object("generation_config.json")?, object("config.json")?);
        files.add_to(&path, &mut json)?;
        let declared = Declared::from_files(&files.named(), &[&generation, &config]);
        Self::new(&path, json, declared, files.settings)
    }

    pub(crate) fn from_gguf(gguf: &Gguf) -> Result<Self, LoadError> {
        let (json, declared) = gguf::parts(&gguf.metadata)?;
        Self::new(gguf.metadata.path(), json, declared, Map::new())
    }

    fn new(path: &Path, mut json: Value, declared: Declared, settings: Map<String, Value>) -> Result<Self, LoadError> {
        let mut post_processor = Value::Null;
        check::before(path, &json)?;
        let begin = special::begins_with(&json);
        if let Some(json) = json.as_object_mut() {
            // Both are unused here, and padding could ask for any length.
            json.remove("padding");
            json.remove("truncation");
            post_processor = json.remove("post_processor").unwrap_or_default();
        }
        let splits = Splits::new(path, &json)?;
        let inner = guarded(|| tokenizers::Tokenizer::from_str(&json.to_string()))
            .map_err(|error| LoadError::malformed(path, "JSON of a tokenizer", error))?;
        check::after(path, &json, &inner)?;
        let adds_bos = declared.adds_bos || begin.is_some();
        let (special, bos, eos) = declared.resolve(path, &inner)?;
        // A token that is not named may begin texts, but has no name in templates.
        let bos = bos.or_else(|| inner.token_to_id(begin.as_deref()?));
        if begin.is_some() && special.bos.is_some() && begin != special.bos {
            let (found, supported) = (begin.unwrap_or_default(), "the bos_token");
            return Err(LoadError::unsupported(
                path,
                "first token of a text, by the post_processor,",
                found,
                supported,
            ));
        }
        Ok(Self { inner, splits, post_processor, special, adds_bos: adds_bos && bos.is_some(), bos, eos, settings })
    }

    /// The tokens of a text. Special tokens in the text are recognized; no begin token is added.
    ///
    /// # Errors
    ///
    /// [`LoadError::Tokenizer`] if a pattern of the tokenizer gives up on the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, LoadError> {
        let encode = || {
            let mut pieces = self.inner.get_added_vocabulary().extract_and_normalize(self.inner.get_normalizer(), text);
            self.splits.run(&mut pieces)?;
            self.inner.get_model().tokenize_in_pretokenized(&mut pieces, None)?;
            pieces.into_encoding(None, 0, OffsetType::None)
        };
        Ok(guarded(encode).map_err(LoadError::Tokenizer)?.get_ids().to_vec())
    }

    /// The text of tokens. Ids without a token are left out, and so are special tokens with `skip_special`.
    ///
    /// # Errors
    ///
    /// [`LoadError::Tokenizer`] if the tokenizer fails at the tokens.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, LoadError> {
        guarded(|| self.inner.decode(ids, skip_special)).map_err(LoadError::Tokenizer)
    }

    /// The text that tokens add to the tokens before them. Alone, SentencePiece would drop the space that it begins with.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub fn decode_after(&self, before: &[u32], ids: &[u32]) -> Result<String, LoadError> {
        /// Tokens before them that are looked at: all, where fewer have no text, or begin within a character.
        const CONTEXTS: [usize; 3] = [8, 64, usize::MAX];
        let (mut context, mut start) = (before, String::new());
        for most in CONTEXTS {
            context = &before[before.len().saturating_sub(most)..];
            start = self.decode(context, true)?;
            if !start.is_empty() && !start.contains(char::REPLACEMENT_CHARACTER) {
                break;
            }
        }
        let all = self.decode(&[context, ids].concat(), true)?;
        match all.strip_prefix(&start) {
            Some(text) => Ok(text.to_owned()),
            // The context ends within a character.
            None => self.decode(ids, true),
        }
    }

    /// The token of an id, spelled as in the vocabulary.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The id of a token, spelled as in the vocabulary.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// All tokens that end a generation: the end of a text, first, and the ends of turns, such as `<|im_end|>`.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// The token that begins a text, if there is one.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Whether the model expects the begin token in front of a text; chat templates write it themselves.
    pub fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// Names of the special tokens.
    pub fn special_tokens(&self) -> &SpecialTokens {
        &self.special
    }

    /// Number of tokens, special ones included. A model's embedding may have more rows.
    pub fn vocab_size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// The largest id of a token. Tokens that were added to the vocabulary do not count: published models may have no row for them, as the
    /// text models of Gemma 3 have none for images.
    pub fn largest_id(&self) -> Option<u32> {
        self.inner.get_vocab(false).into_values().max()
    }

    /// The content of a `tokenizer.json`.
    ///
    /// # Errors
    ///
    /// [`LoadError::Tokenizer`] if the tokenizer cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, LoadError> {
        let json = self.inner.to_string(true).map_err(|error| LoadError::Tokenizer(error.to_string()))?;
        // Texts in JSON have no line ends: this is the key of the file's object.
        let empty = "\n  \"post_processor\": null";
        Ok(json.replacen(empty, &format!("\n  \"post_processor\": {}", self.post_processor), 1))
    }

    /// The content of a `tokenizer_config.json`: the opened one's, with the special tokens and a chat template.
    pub(crate) fn settings(&self, template: Option<Value>) -> Value {
        let mut settings = self.settings.clone();
        // Code of another folder.
        settings.remove("auto_map");
        // Classes of models rebuild parts of `tokenizer.json`: this one reads it as it is.
        settings.insert("tokenizer_class".into(), "PreTrainedTokenizerFast".into());
        settings.entry("clean_up_tokenization_spaces").or_insert(false.into());
        for (name, token) in self.special.named() {
            settings.insert(name.into(), token.into());
        }
        match template {
            Some(template) => settings.insert("chat_template".into(), template),
            None => settings.remove("chat_template"),
        };
        settings.into()
    }
}
