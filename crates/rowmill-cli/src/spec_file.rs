//! `--spec` and `--print-spec`: runs that are described by a file.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use rowmill::{Existing, ExitCode, Location, Problem, ProblemCode, RunSpec};

use crate::flags::CommonFlags;
use crate::output_flags::check_terminal;
use crate::printer;
use crate::resolve::{Resolved, check_summary, existing, show, usage};
use crate::surroundings::environment;

/// Flags that are no part of a spec: they say what to do with what exists, and what to show.
const BESIDE: [&str; 13] = [
    "spec",
    "print_spec",
    "resume",
    "accept_changes",
    "overwrite",
    "summary_format",
    "final_summary",
    "no_final_summary",
    "progress",
    "no_progress",
    "progress_every",
    "sample_calls",
    "json",
];

/// Refuses flags beside `--spec` that are part of one. Variables of the environment that stand for flags are
/// passed over: nobody gave them with the command.
pub(crate) fn check_beside(command: &Command, given: &ArgMatches) -> Result<(), Problem> {
    if let Some((name, below)) = given.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        return check_beside(command, below);
    }
    let is_given = |id: &str| {
        let source = given.try_contains_id(id).ok().and_then(|_| given.value_source(id));
        source == Some(ValueSource::CommandLine)
    };
    if !is_given("spec") {
        return Ok(());
    }
    let mut flags = command.get_arguments().filter(|flag| !BESIDE.contains(&flag.get_id().as_str()));
    match flags.find(|flag| is_given(flag.get_id().as_str())).and_then(|flag| flag.get_long()) {
        None => Ok(()),
        Some(flag) => Err(usage(format!("--{flag} and --spec cannot be used together"))
            .hint("a spec is complete: say it there, or print another one with `--print-spec`")),
    }
}

/// What a command with `--spec` asks for.
pub(crate) fn resolve_spec(flags: &CommonFlags, path: &Path) -> Result<Resolved, Problem> {
    if flags.resume && flags.overwrite {
        return Err(usage("--resume and --overwrite cannot be used together"));
    }
    let mut spec = read(path)?;
    spec.existing = match (flags.resume || flags.overwrite, flags.accept_changes) {
        (true, _) => existing(flags),
        (false, true) if spec.existing.resumes() => Existing::ResumeChanged,
        (false, true) => return Err(usage("--accept-changes requires --resume")),
        (false, false) => spec.existing,
    };
    check_summary(flags, &spec.output)?;
    check_terminal(&spec.output)?;
    let show = show(flags, &spec.output, &spec.selection, spec.work.budget);
    Ok(Resolved { spec, show })
}

/// Prints a spec, and does nothing else.
pub(crate) fn print_spec(spec: &RunSpec) -> Result<ExitCode, Problem> {
    let text = spec.to_json()?;
    if let Cow::Owned(_) = environment().without_secrets(&text) {
        printer::talk(
            "warning: the spec holds a credential of the environment, because the command or `rowmill.toml` \
             does; write `${NAME}` there, where it can be, or keep the spec to yourself",
        );
    }
    printer::data(&text)?;
    Ok(ExitCode::Ok)
}

fn read(path: &Path) -> Result<RunSpec, Problem> {
    let is_stdin = path == Path::new("-");
    let mut text = String::new();
    let read = match is_stdin {
        true => std::io::stdin().lock().read_to_string(&mut text),
        false => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    };
    let name = if is_stdin { "-".into() } else { path.to_string_lossy() };
    read.map_err(|error| {
        Problem::new(ProblemCode::InvalidSpec, format!("cannot read the spec `{name}`")).cause(error).hint(
            "give the path of a file that `rowmill run … --print-spec` printed, or `-` for standard input",
        )
    })?;
    let spec = RunSpec::from_json(&text, &name)?;
    if is_stdin && spec.input.location == Location::Stdin {
        return Err(usage("standard input cannot have both the spec and the rows")
            .hint("write the spec into a file, and name it with `--spec`"));
    }
    Ok(spec)
}
