//! Makes the results of a job.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use rowmill_schema_faker::seed_from;
use rowmill_types::TokenUsage;

use super::job::{BatchJob, JobInput, JobOutcome};
use super::result_lines::{ResultPlace, RowResult, result_line};
use super::row::{BatchRow, RowContext};
use super::store::BatchFile;
use super::stored_bytes::StoredBytes;
use super::timeline::JobPhase;
use super::validate::marker;
use super::vendor::{BatchVendor, IdKind};
use crate::answer_plan::seeded_chance;
use crate::simulator_state::SimulatorState;

/// What is needed of a job to make its results.
struct DueJob {
    number: u64,
    vendor: BatchVendor,
    context: RowContext,
    input: Arc<JobInput>,
    last: JobPhase,
    /// How many rows were processed.
    done: u64,
    is_inline: bool,
}

/// The results while they are written.
struct ResultWriter {
    output: BufWriter<File>,
    errors: BufWriter<File>,
    outcome: JobOutcome,
}

impl DueJob {
    fn of(job: &BatchJob) -> Option<Self> {
        let order = &job.order;
        let (last, ended) = job.timeline.end();
        let share = if last == JobPhase::Completed { 1.0 } else { job.timeline.done_share(ended) };
        let keeps = last == JobPhase::Completed || job.vendor.keeps_partial_results();
        Some(Self {
            number: job.number,
            vendor: job.vendor,
            context: RowContext::new(job.vendor, &order.endpoint, order.model.as_deref(), &order.headers)?,
            input: Arc::clone(job.input.as_ref()?),
            last,
            done: if keeps { (share * job.rows as f64) as u64 } else { 0 },
            is_inline: job.is_inline(),
        })
    }

    /// The rows in the order of their results.
    fn order(&self, seed: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.input.rows.len()).collect();
        // Google's responses to inline requests have no other name than their place.
        if self.vendor != BatchVendor::Gemini || !self.is_inline {
            let seed = seed ^ self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            order.sort_by_cached_key(|index| seed_from(&[&seed.to_string(), &index.to_string()]));
        }
        order
    }
}

impl SimulatorState {
    /// Makes the results of a job, unless the simulator is stopped meanwhile.
    pub(crate) fn settle_job(&self, number: u64) {
        let due = self.batches.lock().jobs.iter().find(|job| job.number == number).and_then(DueJob::of);
        let made = match due {
            Some(due) => self.make_results(&due),
            None => Ok(Some(JobOutcome::default())),
        };
        // If the disk fails, the job ends without results, as a provider's would.
        let outcome = match made {
            Ok(None) => return,
            Ok(Some(outcome)) => outcome,
            Err(_) => JobOutcome::default(),
        };
        let mut held = self.batches.lock();
        if let Some(job) = held.jobs.iter_mut().find(|job| job.number == number) {
            job.outcome = Some(Arc::new(outcome));
            job.input = None;
        }
    }

    fn make_results(&self, due: &DueJob) -> io::Result<Option<JobOutcome>> {
        let (output, errors) = (self.batches.new_path()?, self.batches.new_path()?);
        let mut writer = ResultWriter {
            output: BufWriter::with_capacity(1 << 18, File::create(&output)?),
            errors: BufWriter::with_capacity(1 << 18, File::create(&errors)?),
            outcome: JobOutcome::default(),
        };
        let mut file = due.input.bytes.open()?.into_inner();
        let mut left = due.done;
        for index in due.order(self.script.seed) {
            if self.is_stopping() {
                return Ok(None);
            }
            let Some(place) = due.input.rows.get(index) else { continue };
            let line = due.input.bytes.read_at(&mut file, *place)?;
            let may_finish = marker(&line) != Some("unfinished");
            if left > 0 && (may_finish || due.last == JobPhase::Completed) {
                left -= 1;
                self.finish_row(due, index, &line, &mut writer)?;
            } else {
                unfinished_row(due, &line, &mut writer)?;
            }
        }
        writer.output.flush()?;
        writer.errors.flush()?;
        let (output, errors) = (StoredBytes::whole(output)?, StoredBytes::whole(errors)?);
        Ok(Some(self.keep_results(due, writer.outcome, output, errors)))
    }

    /// Answers a row and writes its result, unless it is lost.
    fn finish_row(
        &self,
        due: &DueJob,
        index: usize,
        line: &[u8],
        writer: &mut ResultWriter,
    ) -> io::Result<()> {
        let name = format!("{} {index}", due.number);
        let is_missing =
            seeded_chance(self.script.seed, "missing row", &name) < self.script.batches.missing_rows;
        let Ok(mut row) = BatchRow::read(due.vendor, line) else { return Ok(()) };
        if is_missing || marker(line) == Some("missing") {
            return Ok(());
        }
        // Unique, and the same for the same row of the same job.
        let answered = self.answer_row(&due.context, &mut row, (due.number << 20) + index as u64);
        let outcome = &mut writer.outcome;
        if answered.is_success() {
            outcome.succeeded += 1;
            add(&mut outcome.usage, &answered.usage);
        } else {
            outcome.failed += 1;
        }
        write_result(due, &row, &RowResult::Answered(answered), writer)
    }

    /// Turns what was written into what the vendor offers.
    fn keep_results(
        &self,
        due: &DueJob,
        mut outcome: JobOutcome,
        output: StoredBytes,
        errors: StoredBytes,
    ) -> JobOutcome {
        let is_over = due.last == JobPhase::Completed || due.vendor.keeps_partial_results();
        if due.vendor == BatchVendor::Anthropic || (due.vendor == BatchVendor::Gemini && due.is_inline) {
            outcome.results = is_over.then(|| Arc::new(output));
            return outcome;
        }
        if output.length() > 0 || (due.vendor == BatchVendor::Gemini && is_over) {
            outcome.output_file = Some(self.keep_file(due, "output", output));
        }
        let is_empty_kept = due.vendor == BatchVendor::Azure || self.script.batches.empty_error_files;
        if errors.length() > 0 || (is_empty_kept && due.vendor != BatchVendor::Gemini) {
            outcome.error_file = Some(self.keep_file(due, "error", errors));
        }
        outcome
    }

    fn keep_file(&self, due: &DueJob, kind: &str, bytes: StoredBytes) -> String {
        let mut held = self.batches.lock();
        let id = held.new_id(due.vendor, IdKind::File, self.script.seed);
        let file = BatchFile {
            id: id.clone(),
            vendor: due.vendor,
            name: format!("job_{}_{kind}.jsonl", due.number),
            media_type: "application/jsonl".to_owned(),
            is_result: true,
            created: held.now(),
            bytes: Arc::new(bytes),
        };
        held.files.push(file);
        id
    }
}

fn unfinished_row(due: &DueJob, line: &[u8], writer: &mut ResultWriter) -> io::Result<()> {
    writer.outcome.unfinished += 1;
    let result = if due.last == JobPhase::Expired { RowResult::Expired } else { RowResult::Cancelled };
    match BatchRow::read(due.vendor, line) {
        Ok(row) => write_result(due, &row, &result, writer),
        Err(_) => Ok(()),
    }
}

fn write_result(
    due: &DueJob,
    row: &BatchRow,
    result: &RowResult,
    writer: &mut ResultWriter,
) -> io::Result<()> {
    match result_line(due.vendor, row, result) {
        Some((ResultPlace::Output, line)) => writeln!(writer.output, "{line}"),
        Some((ResultPlace::Errors, line)) => writeln!(writer.errors, "{line}"),
        None => Ok(()),
    }
}

fn add(total: &mut TokenUsage, usage: &TokenUsage) {
    total.input += usage.input;
    total.cached += usage.cached;
    total.cache_write += usage.cache_write;
    total.output += usage.output;
    total.reasoning += usage.reasoning;
}
