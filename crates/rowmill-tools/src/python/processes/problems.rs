//! Problems with the functions of a run, reported before its first row.

use std::io;

use rowmill_types::{Problem, ProblemCode};

use super::launch::LaunchError;
use super::wire::{FunctionMistake, MistakeKind, hook_name};
use crate::python::settings::{Entrypoint, PythonSettings};

/// The first mistake, with the names of the functions that have others.
pub(super) fn of_mistakes(settings: &PythonSettings, mistakes: &[FunctionMistake]) -> Option<Problem> {
    let (first, others) = mistakes.split_first()?;
    let (what, entrypoint) = named(settings, first)?;
    let named_by = &entrypoint.named_by;
    let mut message = format!("{what} `{entrypoint}` of `{named_by}` cannot be used: {}", first.message);
    let others: Vec<_> = others.iter().filter_map(|mistake| named(settings, mistake)).collect();
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(|(_, entrypoint)| format!("`{entrypoint}`")).collect();
        message.push_str(&format!("; also unusable: {}", names.join(", ")));
    }
    let mut problem = Problem::new(ProblemCode::FunctionUnusable, message).hint(hint(settings, first));
    if !first.places.is_empty() {
        problem = problem.cause(&first.places);
    }
    Some(problem)
}

fn named<'a>(settings: &'a PythonSettings, mistake: &FunctionMistake) -> Option<(String, &'a Entrypoint)> {
    match mistake.kind {
        MistakeKind::Function => {
            let tool = settings.functions.get(mistake.index)?;
            Some(("the function".to_owned(), &tool.entrypoint))
        }
        MistakeKind::Hook => {
            let hook = settings.hooks.get(mistake.index)?;
            Some((format!("the `{}` hook", hook_name(hook.kind)), &hook.entrypoint))
        }
        MistakeKind::Lifecycle => {
            let hook = settings.lifecycle.get(mistake.index)?;
            Some(("the lifecycle hook".to_owned(), &hook.entrypoint))
        }
    }
}

fn hint(settings: &PythonSettings, mistake: &FunctionMistake) -> String {
    if mistake.message.contains("ModuleNotFoundError") {
        let interpreter = settings.interpreter.display();
        return format!(
            "install the module for `{interpreter}`, or choose another Python with `ROWMILL_PYTHON`"
        );
    }
    match mistake.kind {
        MistakeKind::Function => {
            "correct the function; `docs/python-tools.md` describes what it must look like"
        }
        MistakeKind::Hook | MistakeKind::Lifecycle => {
            "correct the hook; `docs/python-tools.md` has an example"
        }
    }
    .to_owned()
}

/// Python could not be started at all.
pub(super) fn of_launch(settings: &PythonSettings, error: LaunchError) -> Problem {
    let interpreter = settings.interpreter.display();
    let problem = |message: String| Problem::new(ProblemCode::FunctionUnusable, message);
    match error {
        LaunchError::NotStarted(error) if !settings.folder.is_dir() => {
            problem(format!("the folder for Python is missing: `{}`", settings.folder.display()))
                .cause(error)
                .hint("correct `cwd`")
        }
        LaunchError::NotStarted(error) if error.kind() == io::ErrorKind::NotFound => {
            problem(format!("function tools and hooks need Python, but `{interpreter}` was not found"))
                .hint("install Python 3.9 or later, or set its path with `ROWMILL_PYTHON`")
        }
        LaunchError::NotStarted(error) => problem(format!("cannot start `{interpreter}`"))
            .cause(error)
            .hint("choose a Python interpreter with `ROWMILL_PYTHON`"),
        LaunchError::Failed(message) => problem(format!("Python failed before the first row: {message}"))
            .hint("the interpreter must be Python 3.9 or later; choose another one with `ROWMILL_PYTHON`"),
    }
}

/// A timeout, path or name that cannot be written as JSON; no setting causes this.
pub(super) fn internal(error: &serde_json::Error) -> Problem {
    Problem::new(ProblemCode::Internal, "cannot write the plan for Python").cause(error)
}
