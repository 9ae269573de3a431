//! Your own source: a `Dataset` whose rows are the paragraphs of a text.

use std::error::Error;
use std::io::Write;

use rowmill::Batch;
use rowmill::extend::{
    BadRow, Dataset, InputIdentity, InputReadProgress, Problem, ReadLimit, Row, RowReadResult, RowSource,
};
use rowmill::{ReturnError, RowErrorKind};
use serde_json::json;

/// The paragraphs of a text. A paragraph that is longer than a postcard is a bad row.
#[derive(Debug)]
pub(crate) struct Paragraphs(pub(crate) &'static str);

/// The size of a postcard in bytes.
const POSTCARD: usize = 60;

impl Dataset for Paragraphs {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        let total = self.0.len() as u64;
        Ok(Box::new(Reader { left: self.0.trim(), number: 0, total }))
    }

    fn is_rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        let size = Some(self.0.len() as u64);
        Ok(InputIdentity { path: "paragraphs".into(), size, probe: None })
    }
}

struct Reader {
    left: &'static str,
    number: u64,
    total: u64,
}

impl Reader {
    fn next(&mut self) -> Option<RowReadResult> {
        if self.left.is_empty() {
            return None;
        }
        let (paragraph, rest) = self.left.split_once("\n\n").unwrap_or((self.left, ""));
        self.left = rest.trim_start();
        self.number += 1;
        if paragraph.len() > POSTCARD {
            let message = format!("the paragraph has {} bytes", paragraph.len());
            return Some(Err(BadRow { number: self.number, kind: RowErrorKind::InvalidRow, message }));
        }
        Some(Row::parse(self.number, json!({"text": paragraph}).to_string()))
    }
}

impl RowSource for Reader {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, limit: ReadLimit) -> Result<bool, Problem> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < limit.rows.max(1) && (rows == 0 || bytes < limit.bytes) {
            let Some(row) = self.next() else { return Ok(false) };
            bytes += row.as_ref().map_or(0, |row| row.json_text().len());
            rows += 1;
            batch.push(row);
        }
        Ok(true)
    }

    fn position(&self) -> InputReadProgress {
        InputReadProgress { read: self.total - self.left.len() as u64, total: Some(self.total) }
    }
}

pub(crate) const LETTER: &str = "Dear Ada,

the mill has stood here for four hundred years, and it still grinds the corn of the whole valley.

It is quiet at night.

Yours, Bo";

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let batch = Batch::over_rows(Paragraphs(LETTER).open()?)
        .prompt(|row| {
            Ok::<_, serde_json::Error>(
                serde_json::from_str::<serde_json::Value>(row.json_text())?["text"].to_string(),
            )
        })
        .worker("passthrough")
        .on_failure(ReturnError);
    for result in batch.run_blocking()? {
        writeln!(out, "{}", result.unwrap_or_else(|error| error.to_string()))?;
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}
