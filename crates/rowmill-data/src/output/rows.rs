//! The results of a run as rows, so that they can be queried.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::{Dataset, InputIdentity, InputReadProgress, ReadLimit, RowSource};
use rowmill_types::{Problem, Row, RowReadResult};

use crate::{InputFormat, InputLocation, InputSpec, open_dataset};

/// The column names of envelopes; a result field with such a name is called `result.NAME`.
const OF_ENVELOPES: &[&str] = &["id", "row_number", "ok", "error_type", "error_message", "error", "input"];

/// The rows of a file of envelopes: `id`, `row_number`, `ok`, `error_type`, `error_message`, then the fields
/// of the result, or `result` if it is not an object, and `input` if it was kept.
///
/// # Errors
///
/// The file is missing or cannot be read.
pub fn open_result_rows(envelopes: &Path) -> Result<Arc<dyn Dataset>, Problem> {
    let spec = InputSpec::new(InputLocation::File(envelopes.to_owned()), Some(InputFormat::Jsonl));
    Ok(Arc::new(ResultRows { envelopes: open_dataset(&spec)? }))
}

#[derive(Debug)]
struct ResultRows {
    envelopes: Arc<dyn Dataset>,
}

impl Dataset for ResultRows {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        Ok(Box::new(ResultSource { envelopes: self.envelopes.open()? }))
    }

    fn is_rereadable(&self) -> bool {
        self.envelopes.is_rereadable()
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.envelopes.identity()
    }
}

struct ResultSource {
    envelopes: Box<dyn RowSource>,
}

impl RowSource for ResultSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let before = batch.len();
        let more = self.envelopes.read(batch, room)?;
        for row in batch.iter_mut().skip(before) {
            if let Ok(envelope) = row {
                *row = spread(envelope);
            }
        }
        Ok(more)
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        self.envelopes.skip(rows)
    }

    fn position(&self) -> InputReadProgress {
        self.envelopes.position()
    }
}

/// The row for one envelope.
fn spread(envelope: &Row) -> RowReadResult {
    let mut text = String::with_capacity(envelope.json_text().len() + 64);
    let mut add = |name: &str, value: &str| {
        text.push(if text.is_empty() { '{' } else { ',' });
        rowmill_core::json_text::write_string(name, &mut text);
        text.push(':');
        text.push_str(value);
    };
    let field = |name: &str| envelope.field(name).unwrap_or("null");
    for name in ["id", "row_number", "ok"] {
        add(name, field(name));
    }
    let error = Row::parse(0, field("error").to_owned()).ok();
    for (name, of_error) in [("error_type", "type"), ("error_message", "message")] {
        add(name, error.as_ref().and_then(|error| error.field(of_error)).unwrap_or("null"));
    }
    match Row::parse(0, field("result").to_owned()) {
        Ok(result) => {
            for (name, value) in result.fields() {
                if OF_ENVELOPES.contains(&name) {
                    add(&format!("result.{name}"), value);
                } else {
                    add(name, value);
                }
            }
        }
        Err(_) => add("result", field("result")),
    }
    if let Some(input) = envelope.field("input") {
        add("input", input);
    }
    text.push('}');
    Row::parse(envelope.number(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_becomes_a_row_with_the_fields_of_its_result() {
        for (envelope, expected) in [
            (
                r#"{"id":"a","row_number":1,"ok":true,"result":{"label":"x","id":7},"error":null,"input":{"t":1}}"#,
                r#"{"id":"a","row_number":1,"ok":true,"error_type":null,"error_message":null,"label":"x","result.id":7,"input":{"t":1}}"#,
            ),
            (
                r#"{"id":2,"row_number":2,"ok":true,"result":"text","error":null}"#,
                r#"{"id":2,"row_number":2,"ok":true,"error_type":null,"error_message":null,"result":"text"}"#,
            ),
            (
                r#"{"id":3,"row_number":3,"ok":false,"result":null,"error":{"type":"Timeout","message":"m"}}"#,
                r#"{"id":3,"row_number":3,"ok":false,"error_type":"Timeout","error_message":"m","result":null}"#,
            ),
        ] {
            let row = spread(&Row::parse(1, envelope.to_owned()).unwrap()).unwrap();
            assert_eq!(row.json_text(), expected);
        }
    }
}
