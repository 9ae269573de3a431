//! Field names, prepared for writing into rows.

use std::ops::Range;

use rowmill_core::json_text::write_string;
use rowmill_types::FieldSpan;

/// A name with its JSON text.
#[derive(Debug)]
pub(crate) struct FieldName {
    pub(crate) name: Box<str>,
    json: Box<str>,
}

impl FieldName {
    pub(crate) fn new(name: &str) -> Self {
        let mut json = String::with_capacity(name.len() + 2);
        write_string(name, &mut json);
        Self { name: name.into(), json: json.into() }
    }

    /// Appends the name and its colon, after a separator from the previous field.
    pub(crate) fn write(&self, text: &mut String) {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&self.json);
        text.push(':');
    }

    /// The field whose name was just written, with this range as its value.
    pub(crate) fn field(&self, value: Range<usize>) -> FieldSpan {
        // The colon is before the value, and the closing quote before that.
        let end = value.start - 1;
        if self.json.len() == self.name.len() + 2 {
            FieldSpan::with_plain_name(end - self.json.len() + 1..end - 1, value)
        } else {
            FieldSpan::with_decoded_name(self.name.clone(), value)
        }
    }
}
