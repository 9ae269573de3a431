//! The vendors of batch APIs, and the rules in which they differ.

use std::time::Duration;

use crate::protocol::VendorProtocol;

/// A vendor with a batch API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchVendor {
    OpenAi,
    Azure,
    Groq,
    Together,
    Mistral,
    Anthropic,
    Gemini,
}

/// How many rows and bytes a vendor accepts in a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobLimits {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

const HOUR: Duration = Duration::from_secs(3_600);
const MIB: u64 = 1 << 20;

impl BatchVendor {
    /// The protocol of its errors and of its key.
    pub(crate) fn protocol(self) -> VendorProtocol {
        match self {
            Self::Anthropic => VendorProtocol::Messages,
            Self::Gemini => VendorProtocol::Google,
            _ => VendorProtocol::Chat,
        }
    }

    /// Whether its batch API is OpenAI's.
    pub(crate) fn is_openai_shaped(self) -> bool {
        matches!(self, Self::OpenAi | Self::Azure | Self::Groq)
    }

    /// The purpose of uploaded inputs.
    pub(crate) fn purpose(self) -> &'static str {
        if self == Self::Together { "batch-api" } else { "batch" }
    }

    /// The time after which a job expires if its creator does not say; `None` if it never does.
    pub(crate) fn window(self) -> Option<Duration> {
        match self {
            Self::Azure => None,
            Self::Gemini => Some(HOUR * 48),
            _ => Some(HOUR * 24),
        }
    }

    /// Whether a job that expires or is cancelled keeps the rows that were finished.
    pub(crate) fn keeps_partial_results(self) -> bool {
        self != Self::Gemini
    }

    /// Whether too many waiting tokens are an answer with 429; else the job fails.
    pub(crate) fn refuses_queued_tokens(self) -> bool {
        matches!(self, Self::Anthropic | Self::Gemini | Self::Mistral)
    }

    pub(crate) fn limits(self) -> JobLimits {
        let (rows, mebibytes) = match self {
            Self::OpenAi => (50_000, 200),
            Self::Azure => (100_000, 200),
            Self::Groq | Self::Together => (50_000, 100),
            Self::Mistral => (1_000_000, 512),
            Self::Anthropic => (100_000, 256),
            Self::Gemini => (u64::MAX, 2_048),
        };
        JobLimits { rows, bytes: mebibytes * MIB }
    }

    /// The id of a job or a file, from two random numbers.
    pub(crate) fn id(self, kind: IdKind, numbers: (u64, u64)) -> String {
        let (first, second) = numbers;
        let start = match (self, kind) {
            (Self::Mistral, _) | (Self::Together, IdKind::Job) => {
                return uuid(first, second);
            }
            (Self::Gemini, _) => "",
            (Self::Anthropic, IdKind::Job) => "msgbatch_",
            (Self::Anthropic, IdKind::File) => "file_",
            (Self::Groq, IdKind::File) => "file_",
            (_, IdKind::Job) => "batch_",
            (_, IdKind::File) => "file-",
        };
        format!("{start}{first:016x}{:08x}", second >> 32)
    }
}

/// What an id is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdKind {
    Job,
    File,
}

fn uuid(first: u64, second: u64) -> String {
    let (a, b) = (format!("{first:016x}"), format!("{second:016x}"));
    let part = |text: &str, range| text.get::<std::ops::Range<usize>>(range).unwrap_or_default().to_owned();
    [part(&a, 0..8), part(&a, 8..12), part(&a, 12..16), part(&b, 0..4), part(&b, 4..16)].join("-")
}
