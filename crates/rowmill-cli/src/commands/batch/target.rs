//! Finds the run that a command means.

use rowmill::{KnownBatchRun, KnownBatchRuns, LatestRunReason, NotifyOptions, Problem, ProblemCode};

use crate::batch_flags::BatchTarget;
use crate::notify_flags::NotifyFlags;
use crate::number_text::count_phrase;
use crate::printer;
use crate::process_environment::process_environment;
use crate::resolve::config_search_folder;

/// All runs that are known.
pub(super) fn known_runs() -> Result<KnownBatchRuns, Problem> {
    KnownBatchRuns::of_user(process_environment()).ok_or_else(|| {
        Problem::new(ProblemCode::UnknownBatch, "no folder is known in which runs are remembered")
            .hint("set `HOME` or `XDG_STATE_HOME`")
    })
}

/// The run that a command means. If no id was given, says which one it is.
pub(super) fn find_run(target: &BatchTarget) -> Result<KnownBatchRun, Problem> {
    let runs = known_runs()?;
    let Some(id) = target.id() else {
        let (known, rule) = runs.latest(&config_search_folder()).ok_or_else(|| {
            Problem::new(ProblemCode::UnknownBatch, "no batch job has been submitted from this machine yet")
                .hint("submit one with `rowmill run … --lane batch --detach`")
        })?;
        let why = match rule {
            LatestRunReason::OfProject(project) => format!("of the project in {}", project.display()),
            LatestRunReason::InFolder(folder) => format!("in {}", folder.display()),
            LatestRunReason::OfUser => "of this user".to_owned(),
        };
        printer::talk(&format!("using run {}, which has the last submitted job {why}", shown_run(&known)));
        return Ok(known);
    };
    runs.find(id).ok_or_else(|| {
        Problem::new(ProblemCode::UnknownBatch, format!("no batch job and no run with the id `{id}` is known here"))
            .hint(
                "`rowmill batch list` shows the runs that were submitted from this machine by this user; a job of \
                 another machine or account is collected where it was submitted",
            )
    })
}

/// The run whose jobs are to be cancelled. Without an id, it must be the only one that has any.
pub(super) fn find_run_to_cancel(target: &BatchTarget) -> Result<KnownBatchRun, Problem> {
    let unfinished = match target.id() {
        Some(_) => Vec::new(),
        None => known_runs()?.unfinished(),
    };
    if unfinished.len() < 2 {
        return find_run(target);
    }
    let listed = unfinished.iter().map(|known| format!("{} ({})", known.run, known.output.display()));
    let message = format!(
        "{} have batch jobs, so it must be named which is to be cancelled:\n  {}",
        count_phrase(unfinished.len() as u64, "run"),
        listed.collect::<Vec<_>>().join("\n  ")
    );
    Err(Problem::new(ProblemCode::Usage, message).hint("add the id of a run: `rowmill batch cancel ID`"))
}

fn shown_run(known: &KnownBatchRun) -> String {
    match known.jobs.iter().rev().find_map(|job| job.id.as_deref()) {
        Some(job) => format!("{} ({job})", known.run),
        None => known.run.clone(),
    }
}

/// Goes to the folder of a run, because relative paths in its spec, its rows and its cards begin there.
pub(super) fn enter_folder(known: &KnownBatchRun) -> Result<(), Problem> {
    std::env::set_current_dir(&known.folder).map_err(|error| {
        let message =
            format!("the folder of run `{}` cannot be entered: `{}`", known.run, known.folder.display());
        Problem::new(ProblemCode::InputUnreadable, message)
            .cause(error)
            .hint("move it back to where it was when the run was submitted")
    })
}

/// Who is notified of the end of a command: those that its flags name, else those of the run.
pub(super) fn notify_options_of(known: &KnownBatchRun, flags: &NotifyFlags) -> NotifyOptions {
    let of_run = known.spec().map(|spec| spec.notify).unwrap_or_default();
    flags.given().or(&of_run)
}
