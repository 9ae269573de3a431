//! `--spec` and `--print-spec`: runs that are described by a file.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use rowmill::{ExistingOutput, ExitCode, InputLocation, Problem, ProblemCode, RunSpec};

use crate::flags::CommonFlags;
use crate::output_flags::check_terminal;
use crate::printer;
use crate::process_environment::process_environment;
use crate::resolve::{ResolvedCommand, check_summary, display_options, existing_output, usage_problem};

/// Flags that are not part of a spec: they define what to do with existing files, and what to show.
pub(crate) const BESIDE: [&str; 13] = [
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

/// Whether a command line names a spec.
pub(crate) fn names_spec(given: &ArgMatches) -> bool {
    match given.subcommand() {
        Some((_, below)) => names_spec(below),
        None => is_given(given, "spec"),
    }
}

fn is_given(given: &ArgMatches, id: &str) -> bool {
    let source = given.try_contains_id(id).ok().and_then(|_| given.value_source(id));
    source == Some(ValueSource::CommandLine)
}

/// Rejects flags beside `--spec` that are part of a spec.
pub(crate) fn check_flags_beside_spec(command: &Command, given: &ArgMatches) -> Result<(), Problem> {
    if let Some((name, below)) = given.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        return check_flags_beside_spec(command, below);
    }
    if !is_given(given, "spec") {
        return Ok(());
    }
    let mut flags = command.get_arguments().filter(|flag| !BESIDE.contains(&flag.get_id().as_str()));
    match flags.find(|flag| is_given(given, flag.get_id().as_str())).and_then(|flag| flag.get_long()) {
        None => Ok(()),
        Some(flag) => Err(usage_problem(format!("--{flag} and --spec cannot be used together"))
            .hint("a spec is complete: set it there, or create another spec with `--print-spec`")),
    }
}

/// The request of a command with `--spec`.
pub(crate) fn resolve_spec(flags: &CommonFlags, path: &Path) -> Result<ResolvedCommand, Problem> {
    if flags.resume && flags.overwrite {
        return Err(usage_problem("--resume and --overwrite cannot be used together"));
    }
    let mut spec = read(path)?;
    spec.existing = match (flags.resume || flags.overwrite, flags.accept_changes) {
        (true, _) => existing_output(flags),
        (false, true) if spec.existing.resumes() => ExistingOutput::ResumeChanged,
        (false, true) => return Err(usage_problem("--accept-changes requires --resume")),
        (false, false) => spec.existing,
    };
    check_summary(flags, &spec.output)?;
    check_terminal(&spec.output)?;
    let show = display_options(flags, &spec.output, &spec.selection, spec.work.budget);
    Ok(ResolvedCommand { spec, show })
}

/// Prints a spec without running it.
pub(crate) fn print_spec(spec: &RunSpec) -> Result<ExitCode, Problem> {
    let text = spec.to_json()?;
    if let Cow::Owned(_) = process_environment().redact(&text) {
        printer::talk(
            "warning: the spec contains a credential from the environment, because the command or `rowmill.toml` \
             does; replace it with `${NAME}` where that is supported, or keep the spec private",
        );
    }
    printer::data(&text)?;
    Ok(ExitCode::Ok)
}

/// The maximum size of a spec. A dataset that is passed by mistake is rejected instead of being read
/// into memory.
const MOST_BYTES: u64 = 16 << 20;

fn read(path: &Path) -> Result<RunSpec, Problem> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "-".into() } else { path.to_string_lossy() };
    let text = read_text(path, &name)?;
    let spec = RunSpec::from_json(&text, &name)?;
    if is_stdin && spec.input.location == InputLocation::Stdin {
        return Err(usage_problem("standard input cannot carry both the spec and the rows")
            .hint("write the spec to a file, and pass it with `--spec`"));
    }
    Ok(spec)
}

fn read_text(path: &Path, name: &str) -> Result<String, Problem> {
    let unusable = |message: String| {
        Problem::new(ProblemCode::InvalidSpec, message).hint(
            "pass the path of a file that `rowmill run … --print-spec` printed, or `-` for standard input",
        )
    };
    let source: std::io::Result<Box<dyn Read>> = match path == Path::new("-") {
        true => Ok(Box::new(std::io::stdin().lock())),
        false => std::fs::File::open(path).map(|file| Box::new(file) as Box<dyn Read>),
    };
    let mut bytes = Vec::new();
    let read = source.and_then(|source| source.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| unusable(format!("cannot read the spec `{name}`")).cause(error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unusable(format!("`{name}` is not a spec: it is larger than 16 MiB")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        unusable(format!("`{name}` is not a spec: it is not valid UTF-8 from byte {}", at + 1))
    })
}
