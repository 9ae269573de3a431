//! Requests for jobs that exist.

use std::io::{BufRead, BufReader};
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::download::{BatchAnswer, BatchDownload};
use super::job::JobView;
use super::lists::{Listed, page};
use super::serve::{BatchCall, document, wrong_method};
use super::store::disk_failure;
use super::stored_bytes::StoredBytes;
use super::timeline::JobPhase;
use super::vendor::BatchVendor;
use super::{anthropic, gemini, mistral, openai, together};
use crate::protocol::RequestRefusal;
use crate::simulator_state::SimulatorState;

/// A job in its vendor's shape, without results.
fn shape(call: &BatchCall<'_>, view: &JobView<'_>) -> Value {
    match call.route.vendor {
        BatchVendor::Together => together::job(view),
        BatchVendor::Mistral => mistral::job(view),
        BatchVendor::Anthropic => anthropic::job(view, call.host()),
        BatchVendor::Gemini => gemini::operation(view, None),
        _ => openai::job(view),
    }
}

fn unknown(vendor: BatchVendor, id: &str) -> RequestRefusal {
    RequestRefusal::new(
        404,
        match vendor {
            BatchVendor::Anthropic => format!("No message batch found with id: {id}"),
            BatchVendor::Gemini => format!("Requested entity was not found: batches/{id}"),
            _ => format!("No batch found with id '{id}'."),
        },
    )
}

/// The lines of a file as a JSON array.
fn lines_as_array(bytes: &StoredBytes) -> std::io::Result<Value> {
    let mut all = Vec::new();
    for line in BufReader::new(bytes.open()?).lines() {
        let line: Box<RawValue> = serde_json::from_str(&line?)?;
        all.push(serde_json::to_value(line)?);
    }
    Ok(Value::Array(all))
}

impl SimulatorState {
    /// The answer to the request that created a job.
    pub(super) fn created(&self, call: &BatchCall<'_>, id: &str) -> Result<BatchAnswer, RequestRefusal> {
        let vendor = call.route.vendor;
        let held = self.batches.lock();
        let view = held.view(vendor, id).ok_or_else(|| unknown(vendor, id))?;
        // The answer is older than anything that happens to the job.
        let view = JobView { now: view.job.timeline.created.min(view.now), ..view };
        let job = shape(call, &view);
        Ok(document(&if vendor == BatchVendor::Together { json!({"job": job}) } else { job }))
    }

    pub(super) fn batch_job(&self, call: &BatchCall<'_>, id: &str) -> Result<BatchAnswer, RequestRefusal> {
        let vendor = call.route.vendor;
        let held = self.batches.lock();
        let view = held.view(vendor, id).ok_or_else(|| unknown(vendor, id))?;
        let outcome = view.job.outcome.clone();
        let results = outcome.as_ref().and_then(|outcome| outcome.results.clone());
        match vendor {
            BatchVendor::Gemini if results.is_some() && view.phase() == JobPhase::Completed => {
                let results = results.as_deref().map(lines_as_array).transpose().map_err(disk_failure)?;
                Ok(document(&gemini::operation(&view, results)))
            }
            BatchVendor::Mistral if call.route.parameter("inline") == Some("true") => {
                let mut job = mistral::job(&view);
                let files = outcome.iter().flat_map(|outcome| [&outcome.output_file, &outcome.error_file]);
                let mut outputs = Vec::new();
                for file in files.flatten().filter_map(|id| held.file(id)) {
                    let lines = lines_as_array(&file.bytes).map_err(disk_failure)?;
                    outputs.extend(lines.as_array().cloned().unwrap_or_default());
                }
                if outcome.is_some() {
                    job["outputs"] = Value::Array(outputs);
                }
                Ok(document(&job))
            }
            _ => Ok(document(&shape(call, &view))),
        }
    }

    pub(super) fn list_jobs(&self, call: &BatchCall<'_>) -> Result<BatchAnswer, RequestRefusal> {
        let held = self.batches.lock();
        let now = held.now();
        let jobs = held.jobs.iter().rev().filter(|job| job.vendor == call.route.vendor);
        let entries = jobs.map(|job| {
            let view = JobView { job, clock: &held.clock, now };
            (job.id.clone(), shape(call, &view))
        });
        Ok(document(&page(&call.route, Listed::Jobs, entries.collect())?))
    }

    pub(super) fn cancel_job(
        self: &Arc<Self>,
        call: &BatchCall<'_>,
        id: &str,
    ) -> Result<BatchAnswer, RequestRefusal> {
        let vendor = call.route.vendor;
        let mut held = self.batches.lock();
        let now = held.now();
        let job = held.job_mut(vendor, id).ok_or_else(|| unknown(vendor, id))?;
        let phase = job.phase(now);
        // A job whose time is over is not cancelled, even if its results are still being made.
        if job.timeline.phase(now).is_final() {
            let status = if vendor.is_openai_shaped() { 409 } else { 400 };
            let message = format!("Cannot cancel a batch with status '{}'.", phase.name());
            return Err(RequestRefusal::new(status, message));
        }
        job.timeline.cancelled.get_or_insert(now);
        let view = held.view(vendor, id).ok_or_else(|| unknown(vendor, id))?;
        let answer = if vendor == BatchVendor::Gemini { json!({}) } else { shape(call, &view) };
        drop(held);
        self.wake_batch_worker();
        Ok(document(&answer))
    }

    pub(super) fn delete_job(&self, call: &BatchCall<'_>, id: &str) -> Result<BatchAnswer, RequestRefusal> {
        let vendor = call.route.vendor;
        let mut held = self.batches.lock();
        let view = held.view(vendor, id).ok_or_else(|| unknown(vendor, id))?;
        let is_over = view.phase().is_final();
        let answer = match vendor {
            BatchVendor::Anthropic if !is_over => {
                let message = "Message batch cannot be deleted while it is being processed; cancel it first.";
                return Err(RequestRefusal::invalid(message));
            }
            BatchVendor::Anthropic => json!({"id": id, "type": "message_batch_deleted"}),
            BatchVendor::Mistral => json!({"id": id, "object": "batch", "deleted": true}),
            BatchVendor::Gemini => json!({}),
            _ => return Err(wrong_method()),
        };
        held.jobs.retain(|job| job.vendor != vendor || job.id != id);
        Ok(document(&answer))
    }

    pub(super) fn download_results(
        &self,
        call: &BatchCall<'_>,
        id: &str,
    ) -> Result<BatchAnswer, RequestRefusal> {
        let vendor = call.route.vendor;
        let held = self.batches.lock();
        let view = held.view(vendor, id).ok_or_else(|| unknown(vendor, id))?;
        let outcome = view.job.outcome.as_ref().filter(|_| view.phase().is_final());
        let results = outcome.and_then(|outcome| outcome.results.clone());
        drop(held);
        let bytes = results.ok_or_else(|| {
            RequestRefusal::new(404, format!("The results of message batch {id} are not available yet."))
        })?;
        Ok(BatchAnswer::File(BatchDownload { bytes, damage: self.next_download() }))
    }
}
