//! The lines of a file with answers.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowmill_types::{Attachment, ToolOutput};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bytes_output::attachment;

/// One answer, with the calls that it applies to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StubLine<'a> {
    /// The id of the row that it applies to; the number is ignored then.
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    /// The number of the row that it applies to; all rows if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) row: Option<u64>,
    /// The arguments that it applies to; all calls if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<Map<String, Value>>,
    /// A text, or JSON that is returned as text.
    pub(super) result: Value,
    /// Whether the tool reports a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_error: bool,
    /// Files that the tool returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty", borrow)]
    pub(super) attachments: Vec<StubFile<'a>>,
}

/// A file that a tool returned.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StubFile<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    media_type: Cow<'a, str>,
    /// The bytes in base64.
    #[serde(borrow)]
    data: Cow<'a, str>,
}

impl<'a> StubFile<'a> {
    pub(super) fn from_attachment(file: &'a Attachment) -> Self {
        Self {
            name: Cow::Borrowed(&file.name),
            media_type: Cow::Borrowed(&file.media_type),
            data: Cow::Owned(STANDARD.encode(&file.bytes)),
        }
    }

    fn read(self) -> Result<Attachment, String> {
        let bytes = STANDARD
            .decode(self.data.as_bytes())
            .map_err(|error| format!("the data of the file `{}` is not base64: {error}", self.name))?;
        Ok(attachment(self.name.into_owned(), self.media_type.into_owned(), bytes.into()))
    }
}

impl StubLine<'_> {
    /// The output of the tool.
    pub(super) fn to_tool_output(
        result: Value,
        is_error: bool,
        files: Vec<StubFile<'_>>,
    ) -> Result<ToolOutput, String> {
        let text = match result {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let attachments = files.into_iter().map(StubFile::read).collect::<Result<_, _>>()?;
        Ok(ToolOutput { text, attachments, is_error, is_final: false })
    }
}

/// Arguments in a canonical text form that is the same for equal arguments: sorted keys, and whole numbers
/// without a fraction.
pub(super) fn canonical_arguments(arguments: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_object(arguments, &mut out);
    out
}

fn write_object(object: &Map<String, Value>, out: &mut String) {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    out.push('{');
    for (name, value) in members {
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        write_value(value, out);
        out.push(',');
    }
    out.push('}');
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => write_object(object, out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_value(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                out.push_str(&format!("{float:.0}"));
            }
            _ => out.push_str(&number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}
