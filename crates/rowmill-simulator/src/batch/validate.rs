//! Validation of the input of a job.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};

use memchr::memmem;
use rowmill_schema_faker::seed_from;

use super::row::{BatchRow, RowContext};
use super::stored_bytes::{RowPlace, StoredBytes};
use super::tally::RowKeys;
use super::vendor::BatchVendor;
use crate::simulator_state::SimulatorState;

/// What is wrong with a line of an input, or with all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineError {
    pub(crate) code: String,
    pub(crate) message: String,
    /// Its number, from 1.
    pub(crate) line: Option<u64>,
    pub(crate) parameter: Option<&'static str>,
}

impl LineError {
    pub(crate) fn new(code: &str, message: impl Into<String>, line: Option<u64>) -> Self {
        Self { code: code.to_owned(), message: message.into(), line, parameter: None }
    }
}

/// What validation finds.
#[derive(Debug, Default)]
pub(crate) struct ValidatedInput {
    pub(crate) keys: Vec<RowKeys>,
    /// The tokens of all prompts.
    pub(crate) tokens: u64,
    pub(crate) model: Option<String>,
    pub(crate) errors: Vec<LineError>,
}

/// More errors than this are not reported.
const MOST_ERRORS: usize = 100;
/// The start of markers for the batch APIs in a row.
const MARKER: &[u8] = b"[[batch:";

/// The word of a marker such as `[[batch:missing]]` in a row.
pub(crate) fn marker(line: &[u8]) -> Option<&str> {
    let start = memmem::find(line, MARKER)? + MARKER.len();
    let rest = line.get(start..)?;
    let end = memmem::find(rest, b"]]")?;
    std::str::from_utf8(rest.get(..end)?).ok()
}

/// Whether a marker concerns the results of a valid row.
fn is_for_results(marker: &str) -> bool {
    matches!(marker, "missing" | "unfinished")
}

/// The places of the lines of a file; empty lines are left out.
pub(crate) fn index_lines(bytes: &StoredBytes) -> std::io::Result<Vec<RowPlace>> {
    let mut reader = BufReader::with_capacity(1 << 18, bytes.open()?);
    let (mut places, mut line, mut start) = (Vec::new(), Vec::new(), 0);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(places);
        }
        let length = line.trim_ascii_end().len();
        if length > 0 {
            places.push(RowPlace { start, length: u32::try_from(length).unwrap_or(u32::MAX) });
        }
        start += read as u64;
    }
}

/// Validates rows one after another.
struct Validator<'v> {
    state: &'v SimulatorState,
    context: &'v RowContext,
    ids: HashSet<u64>,
    found: ValidatedInput,
}

impl SimulatorState {
    /// Validates the rows of a job, as far as their vendor does before it processes them.
    pub(crate) fn validate(
        &self,
        context: &RowContext,
        bytes: &StoredBytes,
        rows: &[RowPlace],
        file: &mut File,
    ) -> std::io::Result<ValidatedInput> {
        let mut validator =
            Validator { state: self, context, ids: HashSet::new(), found: ValidatedInput::default() };
        if rows.is_empty() {
            validator.found.errors.push(LineError::new("empty_file", "The input file is empty.", None));
        }
        for (at, place) in rows.iter().enumerate() {
            let line = bytes.read_at(file, *place)?;
            if let Err(error) = validator.check(at as u64 + 1, &line)
                && validator.found.errors.len() < MOST_ERRORS
            {
                validator.found.errors.push(error);
            }
        }
        if let Some((code, line)) = self.script.batches.validation_error.as_ref()
            && context.vendor != BatchVendor::Anthropic
        {
            let message = format!("The script of the simulator asks for `{code}`.");
            validator.found.errors.push(LineError::new(code, message, Some(*line)));
        }
        Ok(validator.found)
    }
}

impl Validator<'_> {
    fn check(&mut self, number: u64, line: &[u8]) -> Result<(), LineError> {
        let wrong = |code: &str, message: String| Err(LineError::new(code, message, Some(number)));
        if let Some(code) = marker(line).filter(|code| !is_for_results(code)) {
            return wrong(code, format!("A marker in the row asks for `{code}`."));
        }
        let mut row = BatchRow::read(self.context.vendor, line).map_err(|message| {
            let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
            let code = if is_json { "missing_required_parameter" } else { "invalid_json_line" };
            LineError::new(code, message, Some(number))
        })?;
        let id = row.id.as_ref().map(|id| seed_from(&[id]));
        if let (Some(hash), Some(text)) = (id, &row.id)
            && !self.ids.insert(hash)
            && self.context.vendor != BatchVendor::Gemini
        {
            let message = format!("The custom_id '{text}' for the request on line {number} is a duplicate.");
            return Err(LineError {
                parameter: Some("custom_id"),
                ..LineError::new("duplicate_custom_id", message, Some(number))
            });
        }
        self.check_address(number, &row)?;
        let known = self.state.read_row(self.context, &mut row);
        let conversation = match &known {
            Ok(ask) => {
                self.found.tokens += self.state.script.tokenizer.count_prompt(ask);
                self.check_model(number, &ask.model)?;
                ask.conversation()
            }
            // The request is rejected when its turn comes, like a live call.
            Err(_) => seed_from(&[&row.body.to_string()]),
        };
        self.found.keys.push(RowKeys { id, conversation });
        Ok(())
    }

    /// Checks what only the rows of OpenAI's shape have: a method and a URL.
    fn check_address(&self, number: u64, row: &BatchRow) -> Result<(), LineError> {
        if !self.context.vendor.is_openai_shaped() {
            return Ok(());
        }
        let endpoint = &self.context.request.path;
        if row.method.as_deref() != Some("POST") {
            let message = "Invalid method: only 'POST' is supported.";
            return Err(LineError::new("invalid_method", message, Some(number)));
        }
        let url = row.url.as_deref().unwrap_or_default();
        if url != endpoint {
            let message = format!(
                "The URL provided for this request '{url}' does not match the batch endpoint '{endpoint}'."
            );
            return Err(LineError {
                parameter: Some("url"),
                ..LineError::new("url_mismatch", message, Some(number))
            });
        }
        if row.body.get("stream").and_then(serde_json::Value::as_bool) == Some(true) {
            let message = "Streaming is not supported in batches: 'stream' must not be true.";
            return Err(LineError::new("invalid_request", message, Some(number)));
        }
        Ok(())
    }

    /// All vendors but Anthropic take one model for each job.
    fn check_model(&mut self, number: u64, model: &str) -> Result<(), LineError> {
        if self.context.vendor == BatchVendor::Anthropic {
            return Ok(());
        }
        let models = &self.state.script.models;
        if !models.is_empty() && !models.iter().any(|known| known == model) {
            let message = format!("The provided model '{model}' is not supported by the Batch API.");
            return Err(LineError::new("model_not_found", message, Some(number)));
        }
        let first = self.found.model.get_or_insert_with(|| model.to_owned());
        if first != model {
            let message = format!(
                "The model '{model}' does not match the model '{first}' of the other requests in this file."
            );
            return Err(LineError::new("model_mismatch", message, Some(number)));
        }
        Ok(())
    }
}
