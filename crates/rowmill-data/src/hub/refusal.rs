//! Why the hub refuses a request, and what to do about it.

use rowmill_http::HttpAnswer;
use rowmill_types::{Problem, ProblemCode};

use super::client::HubClient;
use crate::download::refusal_text;

/// The subject of a request to the hub.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequestSubject<'a> {
    /// The repository, at the revision of the address.
    Repository,
    /// A file of it.
    File(&'a str),
    /// The dataset as converted Parquet.
    Converted,
}

/// Describes a refusal so that the user can act on it.
pub(super) async fn refusal_problem(
    hub: &HubClient<'_>,
    answer: HttpAnswer,
    subject: RequestSubject<'_>,
) -> Problem {
    let status = answer.status();
    let code = answer.headers().get("x-error-code").and_then(|value| value.to_str().ok());
    let code = code.unwrap_or_default().to_owned();
    let detail = refusal_text(answer, hub.fetcher.settings.hub.token.as_ref()).await;
    let problem = match (status, code.as_str()) {
        (_, "GatedRepo") => gated(hub),
        (401 | 403, _) => unauthorized(hub, status),
        (404 | 410, code) => missing(hub, code, subject),
        (429, _) => Problem::new(
            ProblemCode::FetchFailed,
            format!("the hub is limiting requests, so `{}` was not downloaded", hub.address),
        )
        .hint("run the same command again later; with `HF_TOKEN` the hub allows more"),
        (300..=399, _) => {
            answered(hub, status).hint("its redirects form a loop or lead nowhere; check `HF_ENDPOINT`")
        }
        (500.., _) => answered(hub, status).hint("the hub failed; run the same command again later"),
        _ => answered(hub, status).hint("check the URL"),
    };
    match detail {
        Some(detail) => problem.cause(detail),
        None => problem,
    }
}

fn answered(hub: &HubClient<'_>, status: u16) -> Problem {
    let message = format!("the hub returned status {status} for `{}`", hub.address);
    Problem::new(ProblemCode::FetchFailed, message)
}

fn gated(hub: &HubClient<'_>) -> Problem {
    let message = format!("`{}` is available only to users who accept its conditions", hub.address);
    let page = hub.page_url();
    let hint = match hub.credential() {
        Some(_) => format!("accept them at {page} with the account that the token belongs to"),
        None => format!("accept them at {page}, then set `HF_TOKEN` to a token of that account"),
    };
    Problem::new(ProblemCode::FetchFailed, message).hint(hint)
}

fn unauthorized(hub: &HubClient<'_>, status: u16) -> Problem {
    let message = format!("the hub denied access to `{}` with status {status}", hub.address);
    let page = hub.page_url();
    let hint = match hub.credential() {
        Some(_) => format!(
            "check the name; the token that was sent may be wrong, or its account may have to accept the \
             conditions at {page}"
        ),
        None => format!(
            "check the name; for a private repository, set `HF_TOKEN`; for one with conditions, also accept \
             them at {page}"
        ),
    };
    Problem::new(ProblemCode::FetchFailed, message).hint(hint)
}

fn missing(hub: &HubClient<'_>, code: &str, subject: RequestSubject<'_>) -> Problem {
    let (address, repository) = (hub.address, &hub.address.repository);
    let revision = address.revision();
    let what = match (code, subject) {
        ("RevisionNotFound", _) => format!("`{repository}` has no revision `{revision}`"),
        ("EntryNotFound", RequestSubject::File(path)) => {
            format!("`{repository}` has no file `{path}` at revision `{revision}`")
        }
        ("RepoNotFound", _) => format!("there is no repository `{repository}`"),
        (_, RequestSubject::Repository) => {
            format!("there is no repository `{repository}` with a revision `{revision}`")
        }
        (_, RequestSubject::File(path)) => {
            format!("there is no file `{path}` at revision `{revision}` of a repository `{repository}`")
        }
        (_, RequestSubject::Converted) => {
            format!("there is no converted Parquet for a dataset `{repository}`")
        }
    };
    let is_known = matches!(code, "RevisionNotFound" | "EntryNotFound");
    let hint = match (subject, hub.credential()) {
        _ if is_known => format!("see {} for what is available", hub.page_url()),
        (RequestSubject::Converted, _) => {
            "the hub has not converted it; give one of its files, as in `hf://datasets/owner/name/rows.jsonl`"
                .into()
        }
        (_, None) => "check the URL; private repositories look the same without `HF_TOKEN`".to_owned(),
        (_, Some(_)) => "check the URL; private repositories of others look the same".to_owned(),
    };
    Problem::new(ProblemCode::InputNotFound, format!("`{address}` was not found: {what}")).hint(hint)
}
