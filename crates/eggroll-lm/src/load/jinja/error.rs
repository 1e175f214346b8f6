//! Why a template cannot be parsed or rendered.

/// The reason, in words.
#[derive(Clone, Debug)]
pub(crate) struct Error(pub(crate) String);

pub(crate) type Result<T> = std::result::Result<T, Error>;

pub(super) fn fail<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error(reason.into()))
}
