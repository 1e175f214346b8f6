//! Why a template cannot be parsed or rendered.

/// The reason, in words.
#[derive(Clone, Debug)]
pub(crate) struct TemplateError(pub(crate) String);

pub(crate) type Result<T> = std::result::Result<T, TemplateError>;

pub(super) fn fail<T>(reason: impl Into<String>) -> Result<T> {
    Err(TemplateError(reason.into()))
}
