//! Calls without an answer, and the consequences for retries.

use std::fmt;
use std::time::Duration;

use crate::{BatchAnswerOrigin, DiagnosticText, ReportedRateLimits, RowErrorKind, SettingVocabulary};

/// The meaning of a failed call; the only input of retry decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallRetryClass {
    /// A retry may succeed, but not before `after` if that is given.
    Transient {
        /// The wait that the provider asked for.
        after: Option<Duration>,
    },
    /// The provider limits requests: the row waits, which costs it no attempt.
    Throttled {
        /// The wait that the provider asked for.
        after: Option<Duration>,
    },
    /// The provider's quota is used up, for this row and all others, for a long time.
    Exhausted {
        /// When there is quota again, according to the provider.
        after: Option<Duration>,
    },
    /// This machine has no resources for the call: it waits for another call to end, which costs no attempt.
    LocalShortage,
    /// Retrying this row cannot help; other rows may succeed.
    Permanent,
    /// No row can succeed: the credential or the model is wrong.
    Fatal,
}

/// How a call failed; the row's error type and the retry decision are derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallFailure {
    /// The provider limits requests (429).
    RateLimited,
    /// The account's quota, credit or daily limit is used up.
    QuotaExhausted,
    /// The provider failed or is overloaded (408, 409, 5xx, 529).
    Server,
    /// No complete answer arrived in time. It may have been billed.
    Timeout,
    /// No connection could be made; certainly not billed.
    Connect,
    /// This machine allows no more open files, so no connection could be made; certainly not billed.
    TooManyOpenFiles,
    /// The connection broke after the request was sent. It may have been billed.
    ConnectionBroken,
    /// The answer could not be parsed. It may have been billed.
    Malformed,
    /// The provider refused the request (other 4xx).
    Refused,
    /// A content filter refused the request or its answer.
    Filtered,
    /// The credential is missing or was refused (401, 403).
    Unauthorized,
    /// The provider does not know the model (404 and similar).
    UnknownModel,
    /// There is nothing at the called path, and the response does not mention a model (404): most likely the base URL
    /// is wrong.
    UnknownPath,
    /// The call was cancelled. It may have been billed.
    Cancelled,
    /// The program's own function failed.
    Function,
    /// The program's own function failed, and reports that a retry may succeed.
    FunctionBusy,
    /// The client itself failed.
    Internal,
    /// No failure: the answer arrives by another route, and the message names what is waited for. The row is parked
    /// until then.
    Parked,
}

impl CallFailure {
    /// The error of the row once its attempts are used up.
    #[must_use]
    pub fn error_kind(self) -> RowErrorKind {
        match self {
            Self::RateLimited => RowErrorKind::RateLimited,
            Self::QuotaExhausted => RowErrorKind::QuotaExhausted,
            Self::Server => RowErrorKind::ServerError,
            Self::Timeout => RowErrorKind::Timeout,
            Self::Connect | Self::TooManyOpenFiles | Self::ConnectionBroken => RowErrorKind::Connection,
            Self::Malformed => RowErrorKind::InvalidResponse,
            Self::Refused => RowErrorKind::BadRequest,
            Self::Filtered => RowErrorKind::ContentFilter,
            Self::Unauthorized => RowErrorKind::Unauthorized,
            Self::UnknownModel | Self::UnknownPath => RowErrorKind::ModelNotFound,
            Self::Cancelled => RowErrorKind::Interrupted,
            Self::Function | Self::FunctionBusy => RowErrorKind::Function,
            // Parking in a place where rows cannot be parked is a bug.
            Self::Internal | Self::Parked => RowErrorKind::Internal,
        }
    }

    /// Whether the provider may have billed although no answer was kept.
    #[must_use]
    pub fn may_be_billed(self) -> bool {
        matches!(self, Self::Timeout | Self::ConnectionBroken | Self::Malformed | Self::Cancelled)
    }
}

/// The longest wait that counts. Nobody can mean a longer one, and it could be added to no moment.
const LONGEST_WAIT: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A model call that did not give an answer.
///
/// The message is a fragment that follows "row 17: " and holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The kind of failure.
    pub failure: CallFailure,
    /// What happened, for users.
    pub message: DiagnosticText,
    /// The HTTP status, if one was received.
    pub status: Option<u16>,
    /// The provider's own error code, if it sent one.
    pub code: Option<String>,
    /// The wait that the provider asked for. More than a year counts as a year.
    pub retry_after: Option<Duration>,
    /// The rate limits that the provider reported with the refusal.
    pub rate_limits: Option<Box<ReportedRateLimits>>,
    /// The batch job that has this result; `None` for a live call.
    pub batch: Option<Box<BatchAnswerOrigin>>,
}

impl CallError {
    /// A failure without an HTTP response.
    pub fn new(failure: CallFailure, message: impl Into<DiagnosticText>) -> Self {
        Self {
            failure,
            message: message.into(),
            status: None,
            code: None,
            retry_after: None,
            rate_limits: None,
            batch: None,
        }
    }

    /// The failure worded for an entry point.
    #[must_use]
    pub fn with_vocabulary(self, vocabulary: SettingVocabulary) -> Self {
        Self { message: self.message.with_vocabulary(vocabulary), ..self }
    }

    /// Classifies the failure for retries; no other code may examine the error for that.
    ///
    /// The result of a batch job is about one row: its provider accepted the credential and the model when it
    /// accepted the job, and there is no limit that a wait would help with.
    #[must_use]
    pub fn retry_class(&self) -> CallRetryClass {
        match self.fault_of_call() {
            CallRetryClass::Fatal if self.batch.is_some() => CallRetryClass::Permanent,
            CallRetryClass::Throttled { .. } | CallRetryClass::Exhausted { .. } if self.batch.is_some() => {
                CallRetryClass::Transient { after: None }
            }
            fault => fault,
        }
    }

    /// The classification of the same failure of a live call.
    fn fault_of_call(&self) -> CallRetryClass {
        let after = self.retry_after.map(|asked| asked.min(LONGEST_WAIT));
        match self.failure {
            CallFailure::RateLimited => CallRetryClass::Throttled { after },
            CallFailure::QuotaExhausted => CallRetryClass::Exhausted { after },
            CallFailure::Server
            | CallFailure::Timeout
            | CallFailure::Connect
            | CallFailure::ConnectionBroken
            | CallFailure::Malformed
            | CallFailure::FunctionBusy => CallRetryClass::Transient { after },
            CallFailure::TooManyOpenFiles => CallRetryClass::LocalShortage,
            CallFailure::Refused
            | CallFailure::Filtered
            | CallFailure::Cancelled
            | CallFailure::Function
            | CallFailure::Internal
            | CallFailure::Parked => CallRetryClass::Permanent,
            CallFailure::Unauthorized | CallFailure::UnknownModel | CallFailure::UnknownPath => {
                CallRetryClass::Fatal
            }
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_of_a_batch_job_is_about_its_row_alone() {
        let origin = BatchAnswerOrigin { job: "batch_1".into(), round: 1, attempt: 1, is_counted: false };
        for (failure, live, batch) in [
            (CallFailure::Unauthorized, CallRetryClass::Fatal, CallRetryClass::Permanent),
            (CallFailure::UnknownModel, CallRetryClass::Fatal, CallRetryClass::Permanent),
            (
                CallFailure::RateLimited,
                CallRetryClass::Throttled { after: None },
                CallRetryClass::Transient { after: None },
            ),
            (
                CallFailure::QuotaExhausted,
                CallRetryClass::Exhausted { after: None },
                CallRetryClass::Transient { after: None },
            ),
            (CallFailure::Refused, CallRetryClass::Permanent, CallRetryClass::Permanent),
        ] {
            let error = CallError::new(failure, "m");
            assert_eq!(error.retry_class(), live, "{failure:?}");
            let error = CallError { batch: Some(Box::new(origin.clone())), ..error };
            assert_eq!(error.retry_class(), batch, "{failure:?}");
        }
    }
}
