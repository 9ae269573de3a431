//! Answered rows whose answers are mapped by the program: its code runs on a separate thread, because the loop must
//! not wait for it.

use std::sync::Arc;

use rowmill_core::ports::{AnswerMapper, EventGroup};
use rowmill_core::record::RowRecord;
use rowmill_types::{Problem, ProblemCode};
use tokio::task::JoinHandle;

use crate::prepared::EndedRow;
use crate::row_work::RunContext;
use crate::run_driver::RunDriver;
use crate::stop_policy::StopCause;

/// The answer mapper of the program, and the rows that wait for it.
pub(crate) struct MappingQueue {
    finish: Arc<dyn AnswerMapper>,
    /// Rows whose turn has not come, in the order in which they ended.
    waiting: Vec<EndedRow>,
    running: Option<JoinHandle<Vec<EndedRow>>>,
    /// The number of rows that are being mapped now.
    rows_running: usize,
}

impl MappingQueue {
    pub(crate) fn new(finish: Arc<dyn AnswerMapper>) -> Self {
        Self { finish, waiting: Vec::new(), running: None, rows_running: 0 }
    }

    /// The number of rows whose results are not known yet. They keep their slots.
    pub(crate) fn rows(&self) -> usize {
        self.waiting.len() + self.rows_running
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Waits for the rows that are being mapped; for ever if there are none.
    pub(crate) async fn next_mapped(&mut self) -> Result<Vec<EndedRow>, Problem> {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let finished = running.await;
        self.running = None;
        self.rows_running = 0;
        finished.map_err(|error| {
            Problem::new(ProblemCode::Internal, "cannot start the thread for results").cause(error)
        })
    }
}

impl RunDriver {
    /// Queues an ended row for mapping; returns it if answers are not mapped.
    pub(crate) fn queue_mapping(&mut self, ended: EndedRow) -> Option<EndedRow> {
        let Some(finishing) = &mut self.finishing else { return Some(ended) };
        finishing.waiting.push(ended);
        None
    }

    /// Starts mapping the waiting rows, unless a mapping is running. Paid answers are recorded first, so that nothing
    /// the program does can lose them.
    pub(crate) async fn start_mapping(&mut self, shared: &RunContext) {
        let Some(finishing) = self.finishing.as_mut().filter(|finishing| !finishing.is_running()) else {
            return;
        };
        if finishing.waiting.is_empty() {
            return;
        }
        let mut rows = std::mem::take(&mut finishing.waiting);
        let finish = Arc::clone(&finishing.finish);
        self.keep_first(&mut rows, shared).await;
        if let Some(finishing) = &mut self.finishing {
            finishing.rows_running = rows.len();
            finishing.running = Some(tokio::task::spawn_blocking(move || {
                rows.iter_mut().for_each(|ended| ended.map_answer(&*finish));
                rows
            }));
        }
    }

    /// Waits until no row waits for mapping any more.
    pub(crate) async fn finish_mapping(&mut self, shared: &RunContext) {
        while self.finishing.as_ref().is_some_and(|finishing| finishing.rows() > 0) {
            self.start_mapping(shared).await;
            if let Some(finishing) = &mut self.finishing {
                let finished = finishing.next_mapped().await;
                self.handle_mapped_rows(finished);
            }
        }
    }

    /// Records the answers of rows before they are mapped.
    async fn keep_first(&mut self, rows: &mut [EndedRow], shared: &RunContext) {
        let is_kept = |ended: &&mut EndedRow| !ended.again && ended.outcome.is_ok();
        let mut kept: Vec<&mut EndedRow> = rows.iter_mut().filter(is_kept).collect();
        if !self.keeps_records || kept.is_empty() {
            return;
        }
        let records: Vec<RowRecord> = kept.iter().map(|ended| ended.record(&shared.worker)).collect();
        let group = EventGroup { records: &records, ..EventGroup::default() };
        // If it fails, it fails again when everything is written, and is reported there.
        let Ok(appended) = shared.account.append(group).await else { return };
        for ((ended, record), id) in kept.iter_mut().zip(records).zip(appended.records) {
            ended.kept_first = Some(Box::new((record, id)));
        }
        if let Some(problem) = appended.problem {
            self.held_records.get_or_insert_default();
            self.stop_early(StopCause::Problem(problem));
        }
    }
}
