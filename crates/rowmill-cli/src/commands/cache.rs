//! `rowmill cache`: statistics of an answer cache, and pruning it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use jiff::{SpanRelativeTo, Timestamp};
use rowmill::cache::{self, AnswerStoreStats, PruneReport, PruneSpec};
use rowmill::{ExitCode, Problem, TokenUsage};
use serde_json::json;

use crate::number_text::{count_phrase, group_digits, size_text};
use crate::printer;

/// Show or prune the answers that runs cached with `--cache`.
#[derive(Debug, Args)]
pub(crate) struct CacheFlags {
    #[command(subcommand)]
    command: CacheCommand,
}

/// What can be done with a store of answers.
#[derive(Debug, Subcommand)]
enum CacheCommand {
    Show(ShowFlags),
    Prune(PruneFlags),
}

/// Show how many answers are cached, how old they are, and what they save.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rowmill cache show answers/\n  rowmill cache show answers/ --json")]
struct ShowFlags {
    /// The `--cache` folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// Remove cached answers and shrink the file; safe while runs are using it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    rowmill cache prune answers/ --older-than 30d\n  \
    rowmill cache prune answers/ --older-than 90d --max-size 1GB\n  \
    rowmill cache prune answers/ --all")]
#[command(group = ArgGroup::new("rules").args(["older_than", "max_size", "all"]).required(true).multiple(true))]
struct PruneFlags {
    /// The `--cache` folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Remove answers that have not been stored or used for this long, such as `12h`, `30d` or `8w`.
    #[arg(long, value_name = "TIME", value_parser = age)]
    older_than: Option<Duration>,

    /// Remove the least recently used answers until the file is at most this size, such as `500MB`.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_size: Option<u64>,

    /// Remove every answer.
    #[arg(long, conflicts_with_all = ["older_than", "max_size"])]
    all: bool,
}

/// Runs the command.
pub(crate) fn cache(flags: CacheFlags) -> Result<ExitCode, Problem> {
    match flags.command {
        CacheCommand::Show(flags) => {
            let stats = cache::cache_stats(&flags.folder)?;
            printer::report(&if flags.json { as_json(&stats) } else { as_text(&flags.folder, &stats) })?;
        }
        CacheCommand::Prune(flags) => {
            let spec = PruneSpec { older_than: flags.older_than, max_bytes: flags.max_size, all: flags.all };
            let (pruned, left) = cache::prune_cache(&flags.folder, spec)?;
            printer::report(&prune_text(&pruned, &left))?;
            if !pruned.compacted {
                printer::talk(
                    "warning: cannot shrink the file now, but new answers will use its free space; \
                     prune again when no run uses the cache and the disk has space for a copy of it",
                );
            }
        }
    }
    Ok(ExitCode::Ok)
}

fn as_text(folder: &Path, stats: &AnswerStoreStats) -> String {
    let mut lines = vec![
        format!("cache:   {}", folder.display()),
        format!(
            "answers: {} ({} of text, file size {})",
            group_digits(stats.entries),
            size_text(stats.bytes),
            size_text(stats.file_bytes)
        ),
    ];
    if let (Some(oldest), Some(newest)) = (stats.oldest, stats.newest) {
        lines.push(format!("stored:  {} to {}", time(oldest), time(newest)));
        lines.push(format!("tokens:  {}, saved if every answer is reused once", tokens(stats.kept)));
        lines.push(format!("hits:    {}; tokens saved: {}", group_digits(stats.hits), tokens(stats.saved)));
    }
    lines.join("\n")
}

fn as_json(stats: &AnswerStoreStats) -> String {
    let whole = json!({
        "entries": stats.entries,
        "bytes": stats.bytes,
        "file_bytes": stats.file_bytes,
        "oldest": stats.oldest.map(time),
        "newest": stats.newest.map(time),
        "hits": stats.hits,
        "kept": stats.kept,
        "saved": stats.saved,
    });
    // Plain data, so it always serializes to JSON.
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}

fn prune_text(pruned: &PruneReport, left: &AnswerStoreStats) -> String {
    let stay =
        format!("{} left, file size {}", count_phrase(left.entries, "answer"), size_text(left.file_bytes));
    match pruned.entries {
        0 => format!("nothing removed; {stay}"),
        entries => format!(
            "removed {} ({} of text); {stay}",
            count_phrase(entries, "answer"),
            size_text(pruned.bytes)
        ),
    }
}

fn tokens(usage: TokenUsage) -> String {
    format!("{} in, {} out", group_digits(usage.input), group_digits(usage.output))
}

/// A time of the store, in UTC.
fn time(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    // A time outside of the calendar is shown as a number.
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a duration such as `12h`, `30d` or `8w`".to_owned();
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let age = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(age).ok().filter(|age| !age.is_zero()).ok_or_else(wrong)
}

fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "must be a size such as `500MB`, `1.5GB` or `64MiB`".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let size = number * unit;
    if size >= 1.0 && size < u64::MAX as f64 { Ok(size as u64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_ages_are_read_as_people_write_them() {
        for (text, expected) in [
            ("1", 1),
            ("500MB", 500_000_000),
            ("1.5 gb", 1_500_000_000),
            ("64MiB", 64 << 20),
            ("1TB", 1_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "0", "-1", "GB", "1XB", "1.2.3MB", "1e3", "99999999999TB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for (text, hours) in [("12h", 12), ("30d", 720), ("1w", 168), ("1d 2h", 26)] {
            assert_eq!(age(text), Ok(Duration::from_secs(hours * 3600)), "{text}");
        }
        for text in ["", "30", "0d", "-1d", "1mo", "soon"] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
