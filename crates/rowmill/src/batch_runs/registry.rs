//! All runs in the batch lane that a user has submitted on this machine: one file for each.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rowmill_types::{make_private_folder, private_file_options};

use super::known_run::{KnownBatchRun, KnownRunState, project_of};
use crate::environment::RunEnvironment;

/// How long a run stays known after its last job, once it has ended, in milliseconds.
const KEPT_FOR: i64 = 30 * 24 * 60 * 60 * 1_000;
/// The maximum number of ended runs that stay known.
const MOST_ENDED: usize = 200;

/// The runs in the batch lane that a user has submitted on this machine.
#[derive(Debug, Clone)]
pub struct KnownBatchRuns {
    folder: PathBuf,
}

/// Why a run counts as the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LatestRunReason {
    /// It is the last one of the project in this folder.
    OfProject(PathBuf),
    /// It, or its output, is in this folder.
    InFolder(PathBuf),
    /// It is the last one of the user.
    OfUser,
}

impl KnownBatchRuns {
    /// The runs of the user of an environment; `None` if it names no folder to keep them in (`XDG_STATE_HOME`, or
    /// `HOME`).
    #[must_use]
    pub fn of_user(environment: &RunEnvironment) -> Option<Self> {
        let absolute =
            |name: &str| environment.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
        Some(Self { folder: state.join("rowmill").join("batch") })
    }

    /// All runs, the last submitted one first. Files that cannot be read are skipped.
    #[must_use]
    pub fn all(&self) -> Vec<KnownBatchRun> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
        let mut runs: Vec<KnownBatchRun> = files.filter_map(|path| read(&path)).collect();
        runs.sort_by(|one, other| (other.submitted_at_ms, &other.run).cmp(&(one.submitted_at_ms, &one.run)));
        runs
    }

    /// The run with this id, or with a job that has this id at its provider.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<KnownBatchRun> {
        let mut runs = self.all();
        if let Some(index) = runs.iter().position(|known| known.run == id || known.has_job(id)) {
            return Some(runs.swap_remove(index));
        }
        // A process may have been killed after the ledger had the job, and before this folder did.
        let mut open = runs.into_iter().filter(|known| known.state != KnownRunState::Ended);
        open.find_map(|mut known| {
            known.refresh();
            known.has_job(id).then_some(known)
        })
    }

    /// Runs with jobs that are not finished or not collected, as their ledgers say, the last submitted one first. A later
    /// run may have replaced one of them.
    #[must_use]
    pub fn unfinished(&self) -> Vec<KnownBatchRun> {
        let is_open = |known: &KnownBatchRun| {
            let jobs = known.recorded_jobs();
            jobs.is_some_and(|recorded| recorded.jobs.has_blocking_jobs() || recorded.jobs.has_collectable())
        };
        let not_ended = self.all().into_iter().filter(|known| known.state != KnownRunState::Ended);
        not_ended.filter(is_open).collect()
    }

    /// The last submitted run: that of the project that `folder` is in, or else one in this folder or below, or else that
    /// of the user.
    #[must_use]
    pub fn latest(&self, folder: &Path) -> Option<(KnownBatchRun, LatestRunReason)> {
        let mut runs = self.all();
        let is_below = |known: &KnownBatchRun, top: &Path| {
            [&known.folder, &known.output].iter().any(|it| it.starts_with(top))
        };
        if let Some(project) = project_of(folder) {
            let is_of =
                |known: &KnownBatchRun| known.project.as_ref() == Some(&project) || is_below(known, &project);
            if let Some(index) = runs.iter().position(is_of) {
                return Some((runs.swap_remove(index), LatestRunReason::OfProject(project)));
            }
        }
        if let Some(index) = runs.iter().position(|known| is_below(known, folder)) {
            return Some((runs.swap_remove(index), LatestRunReason::InFolder(folder.to_owned())));
        }
        runs.into_iter().next().map(|known| (known, LatestRunReason::OfUser))
    }

    /// The run with this id.
    pub(super) fn read(&self, run: &str) -> Option<KnownBatchRun> {
        read(&self.path(run))
    }

    /// Keeps a run, in place of what was known of it.
    pub(super) fn store(&self, known: &KnownBatchRun) -> io::Result<()> {
        make_private_folder(&self.folder)?;
        let text = serde_json::to_vec_pretty(known)?;
        let draft = self.folder.join(format!("{}.{}.new", known.run, std::process::id()));
        let written = private_file_options().write(true).create(true).truncate(true).open(&draft);
        let written = written.and_then(|mut file| file.write_all(&text));
        written.and_then(|()| fs::rename(&draft, self.path(&known.run))).inspect_err(|_| {
            // A draft that cannot be removed does no harm.
            drop(fs::remove_file(&draft));
        })
    }

    /// Forgets runs that have ended, or whose work folder is gone, and are old, or too many.
    pub(super) fn forget_old(&self, now: i64) {
        let is_over =
            |known: &KnownBatchRun| known.state == KnownRunState::Ended || !known.work_folder.exists();
        let over = self.all().into_iter().filter(is_over).enumerate();
        for (index, known) in over {
            if index >= MOST_ENDED || now - known.submitted_at_ms > KEPT_FOR {
                // What cannot be removed now is removed later.
                drop(fs::remove_file(self.path(&known.run)));
            }
        }
    }

    fn path(&self, run: &str) -> PathBuf {
        self.folder.join(format!("{run}.json"))
    }
}

fn read(path: &Path) -> Option<KnownBatchRun> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
