//! Functions of Python files, written `file.py:function`.

use std::path::PathBuf;

use crate::field::CardField;
use crate::mistake::CardMistake;

/// A function in a Python file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonFunctionReference {
    /// The file; relative to the card until the card's paths are resolved.
    pub file: PathBuf,
    /// The name of the function.
    pub function: String,
}

impl PythonFunctionReference {
    /// Parses `file.py:function`.
    pub(crate) fn read(field: CardField) -> Result<Self, CardMistake> {
        let wrong = field.clone();
        let text = field.text()?;
        let form = || {
            wrong
                .mistake(&format!("must name a function of a Python file, not `{text}`"))
                .hint("write it as `file.py:function`")
        };
        let (file, function) = text.rsplit_once(':').ok_or_else(form)?;
        let (file, function) = (PathBuf::from(file.trim()), function.trim());
        let is_python = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("py"));
        if !is_python || !is_identifier(function) {
            return Err(form());
        }
        Ok(Self { file, function: function.to_owned() })
    }
}

fn is_identifier(name: &str) -> bool {
    let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    !name.is_empty() && name.chars().all(letter) && !name.starts_with(|first: char| first.is_ascii_digit())
}
