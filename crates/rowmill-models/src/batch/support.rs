//! Which providers have a batch API, what they allow (as of November 2026), and how their APIs differ.

use rowmill_core::ports::{ExpiredJobResultRule, JobKeyReporting};

use super::openai::dialect::{
    EndpointForm, FileDialect, JobDeletion, JobPaging, LineForm, ModelPlace, WindowForm,
};

const MEGABYTE: u64 = 1_000_000;

/// The batch API of a provider.
#[derive(Debug, PartialEq)]
pub(crate) struct BatchSupport {
    /// The family of its API.
    pub(crate) family: BatchFamily,
    /// What it allows.
    pub(crate) limits: BatchLimits,
}

/// Families of batch APIs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BatchFamily {
    /// A file is uploaded and a job refers to it, as OpenAI does.
    OpenAi(&'static FileDialect),
    /// All requests are sent with the job.
    Anthropic,
    /// A file is uploaded, and a job is a long-running operation.
    Google,
}

/// What a provider allows. A limit that is not documented errs on the side of asking the provider.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BatchLimits {
    pub(crate) max_requests: u64,
    pub(crate) max_bytes: u64,
    pub(crate) max_request_bytes: u64,
    pub(crate) max_queued_tokens: Option<u64>,
    pub(crate) max_queued_requests: Option<u64>,
    pub(crate) max_jobs: Option<u64>,
    pub(crate) window_hours: u64,
    /// The shortest and the longest window that can be asked for.
    pub(crate) windows: (u64, u64),
    pub(crate) expiry: ExpiredJobResultRule,
    pub(crate) job_key: JobKeyReporting,
}

/// OpenAI's limits, the base of those of similar APIs. The queue limit in tokens depends on tier and model. The size of
/// one request is that of live calls.
const OPENAI_LIMITS: BatchLimits = BatchLimits {
    max_requests: 50_000,
    max_bytes: 200 * MEGABYTE,
    max_request_bytes: 50 * MEGABYTE,
    max_queued_tokens: None,
    max_queued_requests: None,
    max_jobs: None,
    window_hours: 24,
    windows: (24, 24),
    expiry: ExpiredJobResultRule::KeepsFinished,
    job_key: JobKeyReporting::Reported,
};

const OPENAI_DIALECT: FileDialect = FileDialect {
    purpose: "batch",
    upload_fields: &[],
    jobs: &["batches"],
    line: LineForm::Addressed,
    endpoint: EndpointForm::Versioned,
    model: ModelPlace::Body,
    input: "input_file_id",
    window: WindowForm::Text,
    paging: JobPaging::After,
    deletion: JobDeletion::FilesOnly,
};

/// OpenAI, chat completions and Responses.
pub(crate) const OPENAI_BATCH: BatchSupport =
    BatchSupport { family: BatchFamily::OpenAi(&OPENAI_DIALECT), limits: OPENAI_LIMITS };

/// Azure OpenAI: a resource keeps twenty times as many files if each of them expires, for which 14 days is the minimum.
/// Its older addresses have no version, and neither have the endpoints of their jobs.
pub(crate) const AZURE_BATCH: BatchSupport = BatchSupport {
    family: BatchFamily::OpenAi(&FileDialect {
        upload_fields: &[("expires_after[anchor]", "created_at"), ("expires_after[seconds]", "1209600")],
        endpoint: EndpointForm::AsInBaseUrl,
        ..OPENAI_DIALECT
    }),
    limits: BatchLimits { max_requests: 100_000, ..OPENAI_LIMITS },
};

/// Groq. Sources disagree on 100 or 200 MB.
pub(crate) const GROQ_BATCH: BatchSupport = BatchSupport {
    family: BatchFamily::OpenAi(&OPENAI_DIALECT),
    limits: BatchLimits { max_bytes: 100 * MEGABYTE, windows: (24, 7 * 24), ..OPENAI_LIMITS },
};

/// Together AI: a job has no place for a key.
pub(crate) const TOGETHER_BATCH: BatchSupport = BatchSupport {
    family: BatchFamily::OpenAi(&FileDialect {
        purpose: "batch-api",
        line: LineForm::BodyOnly,
        paging: JobPaging::None,
        ..OPENAI_DIALECT
    }),
    limits: BatchLimits {
        max_bytes: 100 * MEGABYTE,
        max_queued_tokens: Some(30_000_000_000),
        job_key: JobKeyReporting::NotReported,
        ..OPENAI_LIMITS
    },
};

/// Mistral: the model belongs to the job, not to its requests.
pub(crate) const MISTRAL_BATCH: BatchSupport = BatchSupport {
    family: BatchFamily::OpenAi(&FileDialect {
        jobs: &["batch", "jobs"],
        line: LineForm::BodyOnly,
        model: ModelPlace::Job,
        input: "input_files",
        window: WindowForm::Hours,
        paging: JobPaging::Numbered,
        deletion: JobDeletion::JobToo,
        ..OPENAI_DIALECT
    }),
    limits: BatchLimits {
        max_requests: 1_000_000,
        max_bytes: 512 * MEGABYTE,
        max_queued_requests: Some(1_000_000),
        windows: (1, 7 * 24 - 1),
        ..OPENAI_LIMITS
    },
};

/// Anthropic: a job has no place for a key. The queue is that of the lowest tier; a request is limited as a live one.
pub(crate) const ANTHROPIC_BATCH: BatchSupport = BatchSupport {
    family: BatchFamily::Anthropic,
    limits: BatchLimits {
        max_requests: 100_000,
        max_bytes: 256 * MEGABYTE,
        max_request_bytes: 32 * MEGABYTE,
        max_queued_requests: Some(200_000),
        job_key: JobKeyReporting::NotReported,
        ..OPENAI_LIMITS
    },
};

/// Gemini. It states no number of requests, but a job that expires loses everything, so jobs are kept to the usual size.
pub(crate) const GOOGLE_BATCH: BatchSupport = BatchSupport {
    family: BatchFamily::Google,
    limits: BatchLimits {
        max_bytes: 2_000 * MEGABYTE,
        max_request_bytes: 20 * MEGABYTE,
        max_jobs: Some(100),
        window_hours: 48,
        windows: (48, 48),
        expiry: ExpiredJobResultRule::LosesAll,
        ..OPENAI_LIMITS
    },
};
