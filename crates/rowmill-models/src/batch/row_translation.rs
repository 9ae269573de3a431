//! Requests and answers of single rows, translated as for live calls.

use std::fmt;

use rowmill_http::HeaderMap;
use rowmill_types::{CallError, CallFailure, CallTiming, Completion, Request};

use crate::call_error::CallErrorReporter;
use crate::error_body::ErrorBody;
use crate::files::{AcceptedFiles, UploadedFiles, check_inline_files};
use crate::http_model::with_timing;
use crate::wire_protocol::{ReadAnswer, UnreadableAnswer, WireProtocol};

/// The part of a [`WireProtocol`] that jobs need.
pub(super) trait BodyTranslation: Send + Sync + fmt::Debug {
    fn write(&self, request: &Request) -> Vec<u8>;
    fn read_answer(&self, body: &[u8]) -> Result<ReadAnswer, UnreadableAnswer>;
}

impl<W: WireProtocol> BodyTranslation for W {
    fn write(&self, request: &Request) -> Vec<u8> {
        self.body(&request.messages, &UploadedFiles::NONE, request.output_cap)
    }

    fn read_answer(&self, body: &[u8]) -> Result<ReadAnswer, UnreadableAnswer> {
        self.read_repaired(body)
    }
}

/// Translates single rows of jobs.
#[derive(Debug)]
pub(super) struct RowTranslation {
    pub(super) bodies: Box<dyn BodyTranslation>,
    pub(super) files: &'static AcceptedFiles,
    pub(super) reporter: CallErrorReporter,
    pub(super) max_request_bytes: u64,
}

impl RowTranslation {
    /// The body of a request, in one line.
    pub(super) fn body(&self, request: &Request) -> Result<Vec<u8>, CallError> {
        check_inline_files(self.files, &request.messages)?;
        let mut body = self.bodies.write(request);
        // What a provider sent is sent back as it was, which may be in several lines. In JSON, line breaks are never
        // inside of strings.
        for byte in &mut body {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        Ok(body)
    }

    /// Appends a line to a job file, unless it is too long.
    pub(super) fn append_line(&self, line: &[&[u8]], out: &mut Vec<u8>) -> Result<(), CallError> {
        let length: usize = line.iter().map(|part| part.len()).sum();
        if length as u64 > self.max_request_bytes {
            let most = self.max_request_bytes;
            return Err(CallError::new(
                CallFailure::Refused,
                format!("the request has {length} bytes, but one in a batch may have at most {most}"),
            ));
        }
        for part in line {
            out.extend_from_slice(part);
        }
        out.push(b'\n');
        Ok(())
    }

    /// The answer of a row with a success status.
    pub(super) fn answer(&self, status: u16, body: &[u8]) -> Result<Completion, CallError> {
        let reading = self.bodies.read_answer(body);
        let reading = reading.map_err(|unread| self.reporter.unreadable_error(status, unread, body))?;
        Ok(with_timing(reading, CallTiming::default()))
    }

    /// The error of a row with an error status.
    pub(super) fn failure(&self, status: u16, body: &[u8]) -> CallError {
        self.reporter.status_error(status, &HeaderMap::new(), body)
    }

    /// The error of a row with an error that has no status of its own.
    pub(super) fn reported_error(&self, error: ErrorBody) -> CallError {
        self.without_status(UnreadableAnswer::Error(error), b"")
    }

    /// The error of a row that the provider did not run; it can be sent again.
    pub(super) fn not_run(&self, code: Option<&str>, message: &str) -> CallError {
        let error = CallError::new(CallFailure::Server, message);
        self.reporter.redact_and_cut(CallError { code: code.map(str::to_owned), ..error })
    }

    /// The error of a row whose result cannot be understood.
    pub(super) fn unreadable(&self, what: &str, result: &[u8]) -> CallError {
        self.without_status(UnreadableAnswer::Malformed(what.to_owned()), result)
    }

    fn without_status(&self, unread: UnreadableAnswer, result: &[u8]) -> CallError {
        let error = self.reporter.unreadable_error(0, unread, result);
        CallError { status: error.status.filter(|status| *status > 0), ..error }
    }
}
