//! The limit on open files: raised if the run needs it, otherwise respected.

use rowmill::{CallParallelism, Problem, ProblemCode, RunNotice, WorkSpec, group_digits};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The files that a run needs besides its calls: standard streams, input, outputs, ledger, cache,
/// timers.
const OTHERS: u64 = 32;
/// Pipes to the servers that agents use.
const SERVERS: u64 = 32;
/// The files per call: its connection; with agents also the pipes of its tool process.
const PER_CALL: (u64, u64) = (1, 4);
/// If the user set no number, a notice is shown only if fewer calls than this can run at once.
const FEW: usize = 128;

/// Checks, before any file is opened, that a command can do its work at all. Otherwise, half of it
/// would fail with errors that say only that a file cannot be opened.
///
/// # Errors
///
/// The system allows too few open files.
pub(crate) fn check() -> Result<(), Problem> {
    let needed = OTHERS + open_now() + PER_CALL.0;
    match raise_to(needed) {
        Some(allowed) if allowed < needed => {
            let message = format!("this machine allows {allowed} open files, but rowmill needs {needed}");
            Err(Problem::new(ProblemCode::OpenFiles, message).hint(
                "raise the limit with `ulimit -n 1024` in the same shell, then run the same command again",
            ))
        }
        _ => Ok(()),
    }
}

/// Raises the limit on open files to what a run needs, or else reduces the number of parallel calls to
/// what the limit allows. Returns a notice if that is fewer than requested.
pub(crate) fn fit(work: &mut WorkSpec) -> Option<RunNotice> {
    let has_agents = !work.agents.cards.is_empty();
    let (others, per_call) = match has_agents {
        true => (OTHERS + SERVERS, PER_CALL.1),
        false => (OTHERS, PER_CALL.0),
    };
    let others = others + open_now();
    let wanted = others.saturating_add(per_call.saturating_mul(work.parallel.max_calls() as u64));
    let allowed = raise_to(wanted)?;
    let calls = usize::try_from(allowed.saturating_sub(others) / per_call).unwrap_or(usize::MAX).max(1);
    let (fitted, instead) = fitted(work.parallel, calls)?;
    work.parallel = fitted;
    let (instead, allowed, calls) = (instead?, group_digits(allowed), group_digits(calls as u64));
    Some(RunNotice::warning(format!(
        "this machine allows {allowed} open files, so at most {calls} calls run at once{instead}; \
         raise the limit with `ulimit -n {}`",
        round_up(wanted)
    )))
}

/// The parallelism for this maximum number of calls, and the text for a notice; `None` if nothing
/// changes.
fn fitted(parallel: CallParallelism, calls: usize) -> Option<(CallParallelism, Option<String>)> {
    if parallel.max_calls() <= calls {
        return None;
    }
    Some(match parallel {
        CallParallelism::AtMost(asked) => {
            (CallParallelism::AtMost(calls), Some(format!(" instead of {}", group_digits(asked as u64))))
        }
        CallParallelism::Auto | CallParallelism::AutoUpTo(_) => {
            (CallParallelism::AutoUpTo(calls), (calls < FEW).then(String::new))
        }
    })
}

/// Raises the soft limit as far as needed and possible; returns the new limit, if there is one.
fn raise_to(wanted: u64) -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current?;
    if current >= wanted {
        return Some(current);
    }
    let most = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)).max(current);
    match setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum }) {
        Ok(()) => Some(most),
        Err(_) => Some(current),
    }
}

/// The number of files that are open already, such as those inherited from a shell.
fn open_now() -> u64 {
    // One of the entries is the folder that is being read.
    std::fs::read_dir("/dev/fd").map_or(3, |entries| entries.count().saturating_sub(1) as u64)
}

/// Rounds up to a number that a person would type.
fn round_up(files: u64) -> u64 {
    files.div_ceil(256).saturating_mul(256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_files_beyond_all_reason_is_still_a_number() {
        assert_eq!((round_up(300), round_up(u64::MAX)), (512, u64::MAX));
    }

    #[test]
    fn calls_are_fitted_to_what_is_left_and_reported_where_they_were_asked_for() {
        assert_eq!(fitted(CallParallelism::AtMost(20), 30), None);
        let (parallel, notice) = fitted(CallParallelism::AtMost(500), 30).unwrap();
        assert_eq!((parallel, notice.as_deref()), (CallParallelism::AtMost(30), Some(" instead of 500")));
        assert_eq!(fitted(CallParallelism::Auto, 800), Some((CallParallelism::AutoUpTo(800), None)));
        assert_eq!(
            fitted(CallParallelism::Auto, 20),
            Some((CallParallelism::AutoUpTo(20), Some(String::new())))
        );
    }
}
