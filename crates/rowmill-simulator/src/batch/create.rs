//! Creates jobs.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::download::BatchAnswer;
use super::inline_rows::{FieldPath, RowSink, split_rows};
use super::job::{BatchJob, JobInput, JobOrder};
use super::route::BatchOperation;
use super::row::{BatchRow, RowContext};
use super::serve::{BatchCall, refusal};
use super::store::disk_failure;
use super::stored_bytes::StoredBytes;
use super::timeline::JobTimeline;
use super::validate::{LineError, ValidatedInput, index_lines};
use super::vendor::{BatchVendor, IdKind};
use super::{anthropic, gemini, mistral, openai, together};
use crate::answer_plan::seeded_chance;
use crate::protocol::{RequestRefusal, VendorProtocol};
use crate::simulator_state::SimulatorState;
use crate::stored_uploads::unknown_file_refusal;

/// A longer job is not plausible.
const LONGEST_SECONDS: f64 = 365.0 * 86_400.0;

/// A job before it exists.
struct NewJob {
    vendor: BatchVendor,
    order: JobOrder,
    input: JobInput,
    found: ValidatedInput,
}

impl SimulatorState {
    pub(super) fn create_job(self: &Arc<Self>, call: BatchCall<'_>) -> Result<BatchAnswer, RequestRefusal> {
        let vendor = call.route.vendor;
        let (mut order, input) = self.order(&call)?;
        order.headers.clone_from(&call.request.headers);
        let new = self.prepare(vendor, order, input)?;
        let (id, number) = self.insert(new);
        self.wake_batch_worker();
        let (failed, status) = self.script.batches.failed_creates;
        let lost = self.script.batches.lost_creates;
        if number <= lost {
            return Ok(BatchAnswer::Lost);
        }
        if number <= lost.saturating_add(failed) {
            return Ok(refusal(vendor, &RequestRefusal::from_status(status)));
        }
        self.created(&call, &id)
    }

    /// Parses what is ordered, and finds the rows.
    fn order(&self, call: &BatchCall<'_>) -> Result<(JobOrder, JobInput), RequestRefusal> {
        let vendor = call.route.vendor;
        let mut inline = None;
        let order = match (vendor, call.route.operation) {
            (BatchVendor::Anthropic, _) => {
                inline = Some(self.rows_of(call, anthropic::ROWS)?.1);
                anthropic::order()
            }
            (BatchVendor::Gemini, BatchOperation::CreateFor(model)) => {
                VendorProtocol::Google.check_model(model, &self.script.models)?;
                let (body, rows) = self.rows_of(call, gemini::ROWS)?;
                inline = Some(rows);
                gemini::order(model, &body)?
            }
            (BatchVendor::Mistral, _) => {
                let (body, rows) = self.rows_of(call, mistral::ROWS)?;
                inline = Some(rows);
                mistral::order(&body)?
            }
            (BatchVendor::Together, _) => together::order(&call.json()?)?,
            (BatchVendor::Gemini, _) => return Err(super::serve::wrong_method()),
            _ => openai::order(vendor, &call.json()?)?,
        };
        let Some(id) = &order.input_file else {
            let rows = inline.filter(|rows| !rows.rows.is_empty());
            let rows = rows.ok_or_else(|| RequestRefusal::invalid("requests: Field required"))?;
            return Ok((order, rows));
        };
        let file = self.batches.lock().file(id).cloned();
        let file = file.ok_or_else(|| unknown_file_refusal(vendor.protocol(), id))?;
        let rows = index_lines(&file.bytes).map_err(disk_failure)?;
        Ok((order, JobInput { bytes: file.bytes, rows }))
    }

    /// The rows in a body, written to disk, and the rest of the body.
    fn rows_of(&self, call: &BatchCall<'_>, path: FieldPath) -> Result<(Value, JobInput), RequestRefusal> {
        let target = self.batches.new_path().map_err(disk_failure)?;
        let mut sink = RowSink::new(File::create(&target).map_err(disk_failure)?);
        let mut reader: Box<dyn Read + '_> = match &call.body {
            Some(body) => Box::new(body.open().map_err(disk_failure)?),
            None => Box::new(call.request.body.as_slice()),
        };
        let split = split_rows(&mut reader, path, &mut sink);
        let RowSink { places: rows, .. } = sink;
        let bytes = Arc::new(StoredBytes::whole(target).map_err(disk_failure)?);
        let rest = split
            .map_err(|error| RequestRefusal::invalid(format!("We could not parse the JSON body: {error}")))?;
        let most = self.script.batches.max_bytes.unwrap_or(call.route.vendor.limits().bytes);
        if bytes.length() > most {
            return Err(RequestRefusal::new(413, "Request exceeds the maximum size"));
        }
        Ok((rest, JobInput { bytes, rows }))
    }

    /// Validates the rows. A job with mistakes is made and fails, or is rejected, as its vendor does.
    fn prepare(
        &self,
        vendor: BatchVendor,
        mut order: JobOrder,
        input: JobInput,
    ) -> Result<NewJob, RequestRefusal> {
        let context = RowContext::new(vendor, &order.endpoint, order.model.as_deref(), &order.headers);
        let context = context.ok_or_else(|| {
            RequestRefusal::invalid(format!(
                "Invalid value: '{}'. The simulator has the endpoints '/v1/chat/completions' and '/v1/responses'. (endpoint)",
                order.endpoint
            ))
        })?;
        let mut file = input.bytes.open().map_err(disk_failure)?.into_inner();
        let mut found =
            self.validate(&context, &input.bytes, &input.rows, &mut file).map_err(disk_failure)?;
        let most = self.script.batches.max_rows.unwrap_or(vendor.limits().rows);
        let rows = input.rows.len() as u64;
        if rows > most {
            let message = format!("The batch has {rows} requests; the maximum is {most}.");
            found.errors.insert(0, LineError::new("too_many_tasks", message, None));
        }
        if vendor == BatchVendor::Anthropic {
            self.check_anthropic_rows(&input, &mut file, &mut found)?;
        }
        let is_inline = order.input_file.is_none();
        if let Some(error) = found.errors.first().filter(|_| is_inline) {
            return Err(anthropic::refusal(error));
        }
        if order.model.is_none() && vendor != BatchVendor::Anthropic {
            order.model.clone_from(&found.model);
        }
        self.check_queue(vendor, &order, &mut found)?;
        if is_inline {
            let bytes = input.bytes.length();
            self.recorder.count_batches(|counts| counts.uploaded_bytes += bytes);
        }
        Ok(NewJob { vendor, order, input, found })
    }

    fn check_anthropic_rows(
        &self,
        input: &JobInput,
        file: &mut File,
        found: &mut ValidatedInput,
    ) -> Result<(), RequestRefusal> {
        for (at, place) in input.rows.iter().enumerate() {
            let line = input.bytes.read_at(file, *place).map_err(disk_failure)?;
            let Ok(row) = BatchRow::read(BatchVendor::Anthropic, &line) else { continue };
            if let Err(message) = anthropic::check_id(row.id.as_deref().unwrap_or_default()) {
                found.errors.push(LineError::new("invalid_request", message, Some(at as u64 + 1)));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Checks the limit of waiting tokens.
    fn check_queue(
        &self,
        vendor: BatchVendor,
        order: &JobOrder,
        found: &mut ValidatedInput,
    ) -> Result<(), RequestRefusal> {
        let Some(most) = self.script.batches.queued_tokens else { return Ok(()) };
        let model = order.model.as_deref();
        let waiting = self.batches.lock().queued_tokens(vendor, model);
        if waiting.saturating_add(found.tokens) <= most || !found.errors.is_empty() {
            return Ok(());
        }
        let message = format!(
            "Enqueued token limit reached for {} in this organization. Limit: {most} enqueued tokens. Please try again once some in_progress batches have been completed.",
            model.unwrap_or("all models")
        );
        if vendor.refuses_queued_tokens() {
            return Err(RequestRefusal::new(429, message));
        }
        found.errors.push(LineError::new("token_limit_exceeded", message, None));
        Ok(())
    }

    /// Adds a job; returns its id and its number.
    fn insert(&self, new: NewJob) -> (String, u64) {
        let NewJob { vendor, order, input, found } = new;
        let settings = &self.script.batches;
        let rows = input.rows.len() as u64;
        let is_valid = found.errors.is_empty();
        let mut held = self.batches.lock();
        held.created_jobs += 1;
        let number = held.created_jobs;
        let id = held.new_id(vendor, IdKind::Job, self.script.seed);
        let chance = |purpose| seeded_chance(self.script.seed, purpose, &number.to_string());
        let seconds = settings.duration.draw((chance("job length"), chance("job length too")));
        let window = vendor.window().map(|usual| settings.window.or(order.window_length).unwrap_or(usual));
        let timeline = JobTimeline {
            created: held.now(),
            length: Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_SECONDS)),
            window,
            fails: !is_valid,
            cancelled: None,
            finished: None,
        };
        let repeated = if is_valid { held.submitted.submit(number, &found.keys) } else { 0 };
        held.jobs.push(BatchJob {
            number,
            id: id.clone(),
            vendor,
            order,
            timeline,
            rows: if is_valid { rows } else { 0 },
            input_bytes: input.bytes.length(),
            queued_tokens: if is_valid { found.tokens } else { 0 },
            errors: found.errors,
            input: is_valid.then(|| Arc::new(input)),
            outcome: None,
        });
        drop(held);
        self.recorder.count_batches(|counts| {
            counts.jobs += 1;
            if is_valid {
                counts.rows += rows;
                counts.rows_submitted_more_than_once += repeated;
                counts.distinct_rows += rows - repeated;
            }
        });
        (id, number)
    }
}
