//! Python's values, as far as templates use them.

use super::ast::{For, MacroBody};
use super::error::{Result, fail};
use super::meter::{Buffer, LEVELS, MeteredBytes, room, step};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A text that is counted while it lives.
#[derive(Debug)]
pub(super) struct MeteredText {
    pub(super) text: Box<str>,
    pub(super) _held: MeteredBytes,
}

/// Values in a row.
#[derive(Debug)]
pub(super) struct Items {
    pub(super) values: Vec<Value>,
    depth: usize,
    /// Whether nothing in it can change, and so no value can come to hold itself.
    plain: bool,
    _held: MeteredBytes,
}

/// A dictionary in the order of insertion.
#[derive(Debug)]
pub(super) struct Dict {
    pub(super) pairs: Vec<(Value, Value)>,
    places: HashMap<Key, usize>,
    depth: usize,
    plain: bool,
    _held: MeteredBytes,
}

/// A value as the key of a dictionary: equal numbers are one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    None,
    Undefined,
    Int(i128),
    Float(u64),
    Text(Box<str>),
    Tuple(Vec<Key>),
}

impl Key {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Tuple(keys) => 16 + keys.iter().map(|key| 48 + key.bytes()).sum::<usize>(),
            _ => 16,
        }
    }
}

/// A generator: its values can be taken once.
#[derive(Debug)]
pub(super) struct Generator {
    pub(super) items: Rc<Items>,
    pub(super) next: Cell<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Namespace(pub(super) RefCell<Vec<(Arc<str>, Value)>>);

/// A macro with the names that it sees.
#[derive(Debug)]
pub(super) struct Macro {
    pub(super) body: Arc<MacroBody>,
    pub(super) scope: Rc<Scope>,
}

/// The variable `loop`.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) items: Rc<Items>,
    pub(super) index: Cell<usize>,
    pub(super) depth: usize,
    pub(super) changed: RefCell<Option<Value>>,
    /// Place of the loop's statement, and the scope around it, for a recursive loop.
    pub(super) again: Option<(Arc<For>, Rc<Scope>)>,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    /// An undefined value, by name.
    Undefined(Rc<str>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Rc<MeteredText>),
    /// A text marked as safe.
    Markup(Rc<MeteredText>),
    List(Rc<Items>),
    Tuple(Rc<Items>),
    /// A tuple with the names `grouper` and `list`.
    Group(Rc<Items>),
    Dict(Rc<Dict>),
    /// What `items`, `keys` and `values` return, by Python's name of the type.
    View(&'static str, Rc<Items>),
    Range(i128, i128, i128),
    Stream(Rc<Generator>),
    Namespace(Rc<Namespace>),
    Macro(Rc<Macro>),
    Loop(Rc<Loop>),
    Method(Rc<(Value, Box<str>)>),
    Function(&'static str),
}

impl Items {
    pub(super) fn new(values: Vec<Value>) -> Result<Rc<Self>> {
        step(values.len())?;
        let held = MeteredBytes::new(values.len() * size_of::<Value>() + 64)?;
        let (depth, plain) = measure(values.iter())?;
        Ok(Rc::new(Self { values, depth, plain, _held: held }))
    }
}

/// Depth of a value around these, and whether all are plain.
fn measure<'a>(values: impl Iterator<Item = &'a Value>) -> Result<(usize, bool)> {
    let (mut depth, mut plain) = (0, true);
    for value in values {
        let (inner, is_plain) = value.measure();
        depth = depth.max(inner);
        plain &= is_plain;
    }
    if depth >= LEVELS { fail(format!("its values nest more than {LEVELS} deep")) } else { Ok((depth + 1, plain)) }
}

impl Dict {
    pub(super) fn new(pairs: impl IntoIterator<Item = (Value, Value)>) -> Result<Rc<Self>> {
        let mut places: HashMap<Key, usize> = HashMap::new();
        let mut kept: Vec<(Value, Value)> = Vec::new();
        let mut bytes = 64;
        for (key, value) in pairs {
            let id = key.key()?;
            bytes += 4 * size_of::<Value>() + id.bytes();
            room(bytes)?;
            match places.get(&id) {
                Some(&place) => kept[place].1 = value,
                None => {
                    places.insert(id, kept.len());
                    kept.push((key, value));
                }
            }
        }
        let held = MeteredBytes::new(bytes)?;
        let (depth, plain) = measure(kept.iter().flat_map(|(key, value)| [key, value]))?;
        Ok(Rc::new(Self { pairs: kept, places, depth, plain, _held: held }))
    }

    pub(super) fn get(&self, key: &Value) -> Result<Option<&Value>> {
        Ok(self.places.get(&key.key()?).map(|&place| &self.pairs[place].1))
    }

    pub(super) fn get_text(&self, key: &str) -> Option<&Value> {
        self.places.get(&Key::Text(key.into())).map(|&place| &self.pairs[place].1)
    }
}

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Result<Self> {
        MeteredText::new(text.into()).map(Self::Str)
    }

    pub(super) fn list(values: Vec<Self>) -> Result<Self> {
        Items::new(values).map(Self::List)
    }

    pub(super) fn tuple(values: Vec<Self>) -> Result<Self> {
        Items::new(values).map(Self::Tuple)
    }

    pub(super) fn dict(pairs: impl IntoIterator<Item = (Self, Self)>) -> Result<Self> {
        Dict::new(pairs).map(Self::Dict)
    }

    pub(super) fn stream(values: Vec<Self>) -> Result<Self> {
        Ok(Self::Stream(Rc::new(Generator { items: Items::new(values)?, next: Cell::new(0) })))
    }

    pub(super) fn undefined(name: &str) -> Self {
        // A name is for messages only, and counts as no memory.
        Self::Undefined(name.chars().take(80).collect::<String>().into())
    }

    fn measure(&self) -> (usize, bool) {
        match self {
            Self::List(items) | Self::Tuple(items) | Self::Group(items) | Self::View(_, items) => {
                (items.depth, items.plain)
            }
            Self::Stream(stream) => (stream.items.depth, stream.items.plain),
            Self::Dict(dict) => (dict.depth, dict.plain),
            Self::Method(method) => method.0.measure(),
            Self::Namespace(_) | Self::Loop(_) => (0, false),
            _ => (0, true),
        }
    }

    /// Whether no change of a namespace reaches into it.
    pub(super) fn is_plain(&self) -> bool {
        self.measure().1
    }

    pub(super) fn key(&self) -> Result<Key> {
        // A tuple of tuples that are the same has more keys than values: they are few before the steps end.
        step(16)?;
        Ok(match self {
            Self::None => Key::None,
            Self::Undefined(_) => Key::Undefined,
            Self::Bool(value) => Key::Int(i128::from(*value)),
            Self::Int(value) => Key::Int(*value),
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 1e38 => Key::Int(*value as i128),
            Self::Float(value) => Key::Float(value.to_bits()),
            Self::Str(text) | Self::Markup(text) => {
                step(text.text.len() / 64)?;
                Key::Text(text.text.clone())
            }
            Self::Tuple(items) | Self::Group(items) => {
                Key::Tuple(items.values.iter().map(Self::key).collect::<Result<_>>()?)
            }
            _ => return fail(format!("{} cannot be a key", self.kind())),
        })
    }

    /// Python's name of the type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "Undefined",
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::Markup(_) => "Markup",
            Self::List(_) => "list",
            Self::Tuple(_) | Self::Group(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::View(name, _) => name,
            Self::Range(..) => "range",
            Self::Stream(_) => "generator",
            Self::Namespace(_) => "Namespace",
            Self::Macro(_) => "Macro",
            Self::Loop(_) => "LoopContext",
            Self::Method(_) => "method",
            Self::Function(_) => "function",
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Self::Str(text) | Self::Markup(text) = self { Some(&text.text) } else { None }
    }

    /// An integer, or a bool as one.
    pub(super) fn as_int(&self) -> Option<i128> {
        match self {
            Self::Bool(value) => Some(i128::from(*value)),
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        if let Self::Float(value) = self { Some(*value) } else { self.as_int().map(|value| value as f64) }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(text) | Self::Markup(text) => !text.text.is_empty(),
            Self::List(items) | Self::Tuple(items) | Self::Group(items) | Self::View(_, items) => {
                !items.values.is_empty()
            }
            Self::Dict(dict) => !dict.pairs.is_empty(),
            Self::Range(..) => self.length().is_some_and(|length| length > 0),
            _ => true,
        }
    }

    /// The length of what has one.
    pub(super) fn length(&self) -> Option<usize> {
        Some(match self {
            Self::Undefined(_) => 0,
            Self::Str(text) | Self::Markup(text) => text.text.chars().count(),
            Self::List(items) | Self::Tuple(items) | Self::Group(items) | Self::View(_, items) => items.values.len(),
            Self::Dict(dict) => dict.pairs.len(),
            Self::Range(start, stop, by) => {
                let span = if *by > 0 { stop - start } else { start - stop };
                usize::try_from((span + by.abs() - 1).max(0) / by.abs()).ok()?
            }
            Self::Loop(state) => state.items.values.len(),
            _ => return None,
        })
    }

    /// All values in order; a generator is then exhausted.
    pub(super) fn iterate(&self) -> Result<Vec<Self>> {
        let values = match self {
            Self::Undefined(_) => Vec::new(),
            Self::Str(text) | Self::Markup(text) => {
                room(text.text.len().saturating_mul(100))?;
                text.text.chars().map(Self::text).collect::<Result<_>>()?
            }
            Self::List(items) | Self::Tuple(items) | Self::Group(items) | Self::View(_, items) => items.values.clone(),
            Self::Dict(dict) => dict.pairs.iter().map(|(key, _)| key.clone()).collect(),
            Self::Range(start, _, by) => {
                let length = self.length().unwrap_or(0);
                (0..length as i128).map(|place| Self::Int(start + by * place)).collect()
            }
            Self::Stream(stream) => {
                let next = stream.next.replace(stream.items.values.len());
                stream.items.values[next..].to_vec()
            }
            _ => return fail(format!("{} is not iterable", self.kind())),
        };
        step(values.len())?;
        Ok(values)
    }
}

/// Names of a block, inside another block's names.
#[derive(Debug, Default)]
pub(super) struct Scope {
    names: RefCell<HashMap<Arc<str>, Value>>,
    outer: Option<Rc<Scope>>,
}

impl Scope {
    pub(super) fn inside(outer: &Rc<Self>) -> Rc<Self> {
        Rc::new(Self { names: RefCell::default(), outer: Some(outer.clone()) })
    }

    pub(super) fn get(&self, name: &str) -> Option<Value> {
        let mut scope = self;
        loop {
            if let Some(value) = scope.names.borrow().get(name) {
                return Some(value.clone());
            }
            scope = scope.outer.as_deref()?;
        }
    }

    pub(super) fn set(&self, name: &Arc<str>, value: Value) {
        self.names.borrow_mut().insert(name.clone(), value);
    }

    /// Forgets all names, so that macros and the names that they see do not hold each other.
    pub(super) fn clear(&self) {
        let names = self.names.take();
        drop(names);
    }
}

impl MeteredText {
    pub(super) fn new(text: String) -> Result<Rc<Self>> {
        let held = MeteredBytes::new(text.len() + 64)?;
        Ok(Rc::new(Self { text: text.into_boxed_str(), _held: held }))
    }
}

impl Buffer {
    pub(super) fn value(self) -> Result<Value> {
        Value::text(self.text())
    }
}
