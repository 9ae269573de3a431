//! The shapes of Anthropic's message batches.

use serde_json::{Value, json};

use super::inline_rows::FieldPath;
use super::job::{JobOrder, JobView, RowCounts};
use super::timeline::JobPhase;
use super::validate::LineError;
use crate::protocol::RequestRefusal;

/// Where the rows are.
pub(super) const ROWS: FieldPath = &[&["requests"]];
/// The maximum length of an id of a row.
const ID: usize = 64;

/// What a job is without its rows.
pub(super) fn order() -> JobOrder {
    JobOrder { endpoint: "/v1/messages".to_owned(), window: "24h".to_owned(), ..JobOrder::default() }
}

/// The rejection of a body with a mistake in a row.
pub(super) fn refusal(error: &LineError) -> RequestRefusal {
    let place = error.line.map(|line| format!("requests.{}: ", line.saturating_sub(1)));
    RequestRefusal::invalid(format!("{}{}", place.unwrap_or_default(), error.message))
}

/// Checks the form of a row's id.
pub(super) fn check_id(id: &str) -> Result<(), String> {
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    match (1..=ID).contains(&id.len()) && id.chars().all(is_valid) {
        true => Ok(()),
        false => Err("custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'".to_owned()),
    }
}

/// A job; `host` is the address of the simulator.
pub(super) fn job(view: &JobView<'_>, host: &str) -> Value {
    let (job, line) = (view.job, &view.job.timeline);
    let phase = view.phase();
    let ended = view.ended();
    let results = format!("http://{host}/v1/messages/batches/{}/results", job.id);
    let deadline = line.deadline().unwrap_or(line.created);
    json!({
        "id": job.id,
        "type": "message_batch",
        "processing_status": match phase {
            JobPhase::Cancelling => "canceling",
            _ if ended.is_some() => "ended",
            _ => "in_progress",
        },
        "request_counts": counts(phase, view.counts()),
        "created_at": view.clock.text(line.created),
        "expires_at": view.clock.text(deadline),
        "ended_at": ended.map(|(_, time)| view.clock.text(time)),
        "cancel_initiated_at": line.cancelled.map(|time| view.clock.text(time)),
        "archived_at": null,
        "results_url": ended.map(|_| results),
    })
}

/// All outcomes are zero until the whole job has ended.
fn counts(phase: JobPhase, counts: RowCounts) -> Value {
    let of = |last, count| if phase == last { count } else { 0 };
    let (succeeded, failed) = if phase.is_final() { (counts.succeeded, counts.failed) } else { (0, 0) };
    json!({
        "processing": if phase.is_final() { 0 } else { counts.total },
        "succeeded": succeeded,
        "errored": failed,
        "canceled": of(JobPhase::Cancelled, counts.unfinished),
        "expired": of(JobPhase::Expired, counts.unfinished),
    })
}
