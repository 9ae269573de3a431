//! Counts of jobs and rows.

use std::collections::{BTreeMap, HashMap};

use rowmill_types::Money;
use serde::Serialize;

/// Counts of the batch APIs so far. None of them is contained in the counts of live calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SimulatedBatchStats {
    /// Jobs that were created, whether their creator got the answer or not.
    pub jobs: u64,
    /// Jobs by state, in OpenAI's words for all vendors; reported by `/stats` and [`crate::Simulator::stats`].
    pub jobs_by_state: BTreeMap<String, u64>,
    /// Rows of valid jobs.
    pub rows: u64,
    /// Rows among them whose id and conversation no earlier job had.
    pub distinct_rows: u64,
    /// Rows whose id or conversation an earlier job had.
    pub rows_submitted_more_than_once: u64,
    /// Rows that were answered successfully.
    pub answers: u64,
    /// Answers to conversations that had been answered before, by a job or a live call: paid twice.
    pub repeated_answers: u64,
    /// Files that were uploaded.
    pub uploads: u64,
    /// Bytes of uploaded files and of rows that came in requests.
    pub uploaded_bytes: u64,
    /// Files that were deleted.
    pub deleted_files: u64,
    /// Downloads of results that were started.
    pub result_downloads: u64,
    /// Requests that a test holds now.
    pub held_requests: u64,
    /// Prompt tokens of all answers.
    pub input_tokens: u64,
    /// Prompt tokens among them that came from the cache.
    pub cached_tokens: u64,
    /// Generated tokens of all answers.
    pub output_tokens: u64,
    /// The cost of the answers, half of that of live calls, if the script has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Money>,
}

/// What identifies a row, as hashes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowKeys {
    pub(crate) id: Option<u64>,
    pub(crate) conversation: u64,
}

/// The rows that were submitted, with the number of the first job that had them.
#[derive(Debug, Default)]
pub(crate) struct SubmittedRows {
    ids: HashMap<u64, u64>,
    conversations: HashMap<u64, u64>,
}

impl SubmittedRows {
    /// Adds the rows of a job; returns how many of them an earlier one had.
    pub(crate) fn submit(&mut self, job: u64, rows: &[RowKeys]) -> u64 {
        let mut repeated = 0;
        for row in rows {
            let first_with_id = row.id.map_or(job, |id| *self.ids.entry(id).or_insert(job));
            let first_with_text = *self.conversations.entry(row.conversation).or_insert(job);
            repeated += u64::from(first_with_id != job || first_with_text != job);
        }
        repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_another_job_counts_as_repeated_and_one_of_the_same_job_does_not() {
        let row = |id, conversation| RowKeys { id: Some(id), conversation };
        let mut rows = SubmittedRows::default();
        assert_eq!(rows.submit(1, &[row(1, 10), row(2, 20), row(3, 20)]), 0);
        assert_eq!(rows.submit(2, &[row(1, 30), row(4, 20), row(5, 50)]), 2);
    }
}
