//! The requests of jobs that are out: a row that waits for several jobs asks again for what is in a job already.
//!
//! They take eight bytes each in memory.

use rowmill_core::jobs::{JobKey, JobRecord};
use rowmill_types::Problem;

use super::job_files::JobPaths;
use super::result_files::read_ids;

/// How many requests of a row can be in jobs at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsPerRow {
    /// One, so that a row is left alone until its job has ended.
    One,
    /// Several: a row is worked on when the first of its jobs has ended, and asks again for what is in the others.
    Several,
}

/// The requests of all jobs that are out.
#[derive(Debug, Default)]
pub(super) struct RequestsOut {
    /// Each job with its requests, sorted.
    jobs: Vec<(JobKey, Vec<u64>)>,
}

impl RequestsOut {
    /// Reads the requests of all jobs among these that are out.
    pub(super) fn read(jobs: &[JobRecord], paths: &JobPaths) -> Result<Self, Problem> {
        let out = jobs.iter().filter(|job| job.blocks_rows());
        let read = |job: &JobRecord| {
            let mut requests = Vec::with_capacity(usize::try_from(job.size.requests).unwrap_or_default());
            for id in read_ids(&paths.ids(&job.key))? {
                requests.push(kept_part(id?.request));
            }
            requests.sort_unstable();
            Ok((job.key.clone(), requests))
        };
        Ok(Self { jobs: out.map(read).collect::<Result<_, Problem>>()? })
    }

    /// The job that is out and has this request.
    pub(super) fn job_with(&self, request: u128) -> Option<&JobKey> {
        let request = kept_part(request);
        let has_it = |(_, requests): &&(JobKey, Vec<u64>)| requests.binary_search(&request).is_ok();
        self.jobs.iter().find(has_it).map(|(key, _)| key)
    }
}

/// The part of a request that is kept in memory. Requests are digests, so that no two of them have the same one.
fn kept_part(request: u128) -> u64 {
    (request >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rowmill_core::jobs::{JobSize, JobStage};
    use rowmill_core::limits::Spend;
    use rowmill_core::ports::JobState;

    use super::*;
    use crate::lane::custom_id::CustomId;

    fn job(name: &str, stage: JobStage) -> JobRecord {
        JobRecord {
            key: JobKey(name.into()),
            endpoint: "e".into(),
            model: "m".into(),
            provider: "p".into(),
            round: 1,
            size: JobSize { requests: 2, bytes: 1, tokens: 1 },
            worst_case: Spend::default(),
            stage,
            price: None,
            submitted_at: None,
            created_at: None,
            expires_at: None,
            counts: None,
        }
    }

    #[test]
    fn the_requests_of_jobs_that_are_out_are_known_and_those_of_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let paths = JobPaths::in_work_folder(folder.path());
        fs::create_dir_all(paths.folder()).unwrap();
        let jobs = [
            job("written", JobStage::Written),
            job("submitted", JobStage::Submitted { id: "x".into(), state: JobState::InProgress }),
            job("over", JobStage::Downloaded { id: "y".into(), state: JobState::Completed }),
        ];
        let requests: [[u128; 2]; 3] = [[7 << 64, 3 << 64], [1 << 64, 5 << 90], [2 << 64, 4 << 64]];
        for (job, requests) in jobs.iter().zip(requests) {
            let ids = requests.map(|request| format!("{}\n", CustomId { request, attempt: 2 }));
            fs::write(paths.ids(&job.key), ids.concat()).unwrap();
        }
        let out = RequestsOut::read(&jobs, &paths).unwrap();
        let known = requests.map(|both| both.map(|request| out.job_with(request).map(|key| key.0.as_str())));
        assert_eq!(known, [[Some("written"); 2], [Some("submitted"); 2], [None; 2]]);
    }
}
