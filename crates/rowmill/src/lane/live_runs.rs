//! What a run of live calls does about the batch jobs of an earlier run with the same output.

use std::path::PathBuf;

use rowmill_core::jobs::{JobRecord, JobStage, JobTable};
use rowmill_core::ports::JobState;
use rowmill_types::Problem;

use super::job_files::JobPaths;
use super::journal::{JobJournal, RecordedJobs, read_jobs};
use super::opening::jobs_out_problem;
use crate::run::run_on_thread;
use crate::run_storage::RunStorage;
use crate::spec::RunSpec;

/// Checks that a run of live calls leaves no batch jobs behind that the provider has: it would send their rows again.
pub(crate) fn check_no_jobs_out(spec: &RunSpec) -> Result<(), Problem> {
    let Some(folder) = folder_with_jobs(spec) else { return Ok(()) };
    let RecordedJobs { jobs, .. } = read_jobs(&*RunStorage::look_at(&folder).store)?;
    let is_locked = jobs.has_paid_jobs() || spec.existing.resumes() && has_unpaid_jobs(&jobs);
    if is_locked { Err(jobs_out_problem()) } else { Ok(()) }
}

/// Forgets the jobs of a run that were certainly never created, or refused: a run of live calls that continues it sends
/// their rows, and no later run in the batch lane must submit them.
pub(crate) async fn forget_unpaid_jobs(spec: &RunSpec) -> Result<(), Problem> {
    let Some(folder) = folder_with_jobs(spec).filter(|_| spec.existing.resumes()) else { return Ok(()) };
    let RecordedJobs { jobs, .. } = read_jobs(&*RunStorage::look_at(&folder).store)?;
    if jobs.has_paid_jobs() || !has_unpaid_jobs(&jobs) {
        return Ok(());
    }
    let (path, durability) = (folder.clone(), spec.work.durability);
    let opened = run_on_thread(move || {
        let storage = RunStorage::open_locked(&path)?;
        let RecordedJobs { jobs, .. } = read_jobs(&*storage.store)?;
        let journal = JobJournal::open(&*storage.store, durability)?;
        Ok((storage, jobs, journal))
    });
    let (_storage, jobs, journal) = opened.await?;
    let (Some(journal), false) = (journal, jobs.has_paid_jobs()) else { return Ok(()) };
    let forgotten: Vec<JobRecord> = jobs
        .jobs()
        .iter()
        .filter(|job| job.blocks_rows() || job.is_collectable())
        .map(forgotten_job)
        .collect();
    journal.record(&forgotten).await?;
    JobPaths::in_work_folder(&folder).remove_all();
    Ok(())
}

fn forgotten_job(job: &JobRecord) -> JobRecord {
    let id = job.provider_id().map(str::to_owned);
    JobRecord { stage: JobStage::Collected { id, state: JobState::Cancelled }, ..job.clone() }
}

fn has_unpaid_jobs(jobs: &JobTable) -> bool {
    jobs.has_blocking_jobs() || jobs.has_collectable()
}

fn folder_with_jobs(spec: &RunSpec) -> Option<PathBuf> {
    spec.work_folder().filter(|folder| JobPaths::in_work_folder(folder).folder().exists())
}
