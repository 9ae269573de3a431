//! What differs between batch APIs in OpenAI's style, as data.

/// How a provider's batch API differs from others of its family.
#[derive(Debug, PartialEq)]
pub(crate) struct FileDialect {
    /// The purpose of uploaded job files.
    pub(crate) purpose: &'static str,
    /// Further fields of an upload.
    pub(crate) upload_fields: &'static [(&'static str, &'static str)],
    /// The path of jobs below the base URL.
    pub(crate) jobs: &'static [&'static str],
    /// What a line of a job file contains.
    pub(crate) line: LineForm,
    /// How the endpoint of a job is written.
    pub(crate) endpoint: EndpointForm,
    /// Where the model is named.
    pub(crate) model: ModelPlace,
    /// The field of a job that names its file; a plural is a list.
    pub(crate) input: &'static str,
    /// How the window of a job is written.
    pub(crate) window: WindowForm,
    /// How a list of jobs is divided into pages.
    pub(crate) paging: JobPaging,
    /// Whether jobs can be deleted, too.
    pub(crate) deletion: JobDeletion,
}

/// What a line of a job file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineForm {
    /// Id, method, endpoint and body.
    Addressed,
    /// Id and body.
    BodyOnly,
}

/// How the endpoint of a job is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointForm {
    /// With `/v1`.
    Versioned,
    /// With `/v1` if the base URL ends with it.
    AsInBaseUrl,
}

/// Where the model of a job is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelPlace {
    /// In the body of every request.
    Body,
    /// In the job alone.
    Job,
}

/// How the window of a job is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowForm {
    /// `"completion_window":"24h"`, or `"7d"`.
    Text,
    /// `"timeout_hours":24`.
    Hours,
}

/// How a list of jobs is divided into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobPaging {
    /// Each page starts after the last job of the one before.
    After,
    /// Pages have numbers from 0 on.
    Numbered,
    /// There is one page.
    None,
}

/// What can be deleted of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobDeletion {
    /// Its files.
    FilesOnly,
    /// Its files and the job itself.
    JobToo,
}
