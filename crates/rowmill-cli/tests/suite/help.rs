//! Help, completions, the manual page and the version.

use crate::support::Place;

const FLAGS: &[&str] = &[
    "--input",
    "--input-format",
    "--limit",
    "--offset",
    "--sample",
    "--seed",
    "--id-field",
    "--prompt",
    "--template",
    "--instruction",
    "--model",
    "--json-schema",
    "--schema-model",
    "--repairs",
    "--var",
    "--var-file",
    "--vars-json",
    "--output",
    "--resume",
    "--accept-changes",
    "--overwrite",
    "--include-input",
    "--no-include-input",
    "--error-output",
    "--telemetry-output",
    "--summary-output",
    "--final-summary",
    "--no-final-summary",
    "--parallel",
    "--rpm",
    "--tpm",
    "--itpm",
    "--otpm",
    "--pace",
    "--on-quota",
    "--max-outage",
    "--no-prime",
    "--max-cost",
    "--max-tokens",
    "--dedupe",
    "--cache",
    "--fallback-model",
    "--retries",
    "--retry-wait",
    "--timeout",
    "--row-timeout",
    "--connect-timeout",
    "--first-byte-timeout",
    "--idle-timeout",
    "--on-error",
    "--max-errors",
    "--max-error-rate",
    "--after",
    "--stop-on-first-result",
    "--deadline",
    "--work-dir",
    "--keep-temp",
    "--no-keep-temp",
    "--progress-every",
    "--progress",
    "--no-progress",
];

fn printed(arguments: &[&str]) -> String {
    let ended = Place::new().rowmill(arguments).ok();
    assert_eq!(ended.stderr, "");
    ended.stdout
}

/// Whether a text contains a flag as a separate word.
fn has_flag(text: &str, flag: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '-')).any(|word| word == flag)
}

#[test]
fn the_help_of_run_has_every_flag_and_examples() {
    for arguments in [["run", "--help"].as_slice(), &["help", "run"], &["batch", "run", "--help"]] {
        let help = printed(arguments);
        for flag in FLAGS {
            assert!(has_flag(&help, flag), "{flag} in {arguments:?}");
        }
        for part in [
            "Examples:",
            "rowmill run -i reviews.jsonl",
            "Exit codes:",
            "130 interrupted",
            "[env: ROWMILL_MODEL",
        ] {
            assert!(help.contains(part), "{part}");
        }
        for heading in [
            "Rows:",
            "Prompt and model:",
            "Results:",
            "Rate limits:",
            "Cost:",
            "Retries and timeouts:",
            "When to stop:",
            "Ledger:",
            "Progress:",
        ] {
            assert!(help.contains(heading), "{heading}");
        }
    }
}

#[test]
fn the_short_help_has_every_flag_and_points_to_the_examples() {
    let help = printed(&["run", "-h"]);
    for flag in FLAGS {
        assert!(has_flag(&help, flag), "{flag}");
    }
    assert!(help.contains("See `rowmill run --help` for examples."));
}

#[test]
fn every_default_is_reported_once_with_its_flag() {
    // Lines are wrapped to the width of the screen.
    let help = printed(&["run", "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    for (default, flags) in [
        ("auto", 3),
        ("wait", 1),
        ("1h", 1),
        ("4", 1),
        ("500ms", 1),
        ("10m", 2),
        ("10s", 2),
        ("5m", 1),
        ("1", 1),
        ("100", 1),
        ("continue", 1),
    ] {
        assert_eq!(help.matches(&format!("[default: {default}]")).count(), flags, "{default}");
    }
}

#[test]
fn no_value_of_the_environment_is_shown_in_the_help() {
    let mut place = Place::new();
    place.set("ROWMILL_MODEL", "openai.my-secret-model");
    let help = place.rowmill(&["run", "--help"]).ok().stdout;
    assert!(help.contains("ROWMILL_MODEL"));
}

#[test]
fn the_command_alone_lists_its_commands() {
    let help = printed(&["--help"]);
    for command in ["run", "plan", "batch", "models", "cache", "simulate", "completions", "man"] {
        assert!(help.contains(&format!("\n  {command}")), "{command}");
    }
    let ended = Place::new().rowmill(&[]).code(2);
    assert!(ended.stderr.contains("Usage: rowmill"));
    Place::new().rowmill(&["fly"]).code(2).says("unrecognized subcommand 'fly'");
}

#[test]
fn completions_are_there_for_three_shells() {
    for (shell, sign) in
        [("bash", "complete -F"), ("zsh", "#compdef rowmill"), ("fish", "complete -c rowmill")]
    {
        let script = printed(&["completions", shell]);
        assert!(script.contains(sign), "{shell}");
        let flag = if shell == "fish" { "json-schema" } else { "--json-schema" };
        assert!(script.contains(flag), "{shell}");
    }
    Place::new().rowmill(&["completions", "tcsh"]).code(2).says("invalid value 'tcsh'");
}

#[test]
fn the_manual_page_is_roff_and_has_every_flag() {
    let page = printed(&["man"]);
    assert!(page.contains(".TH rowmill 1"), "{}", &page.lines().take(5).collect::<Vec<_>>().join("\n"));
    assert!(page.contains(".SH NAME"));
    let plain = page.replace("\\-", "-").replace("\\fB", " ").replace("\\fR", " ");
    for flag in FLAGS {
        assert!(has_flag(&plain, flag), "{flag}");
    }
}

#[test]
fn the_version_is_reported_for_every_command() {
    let version = format!("rowmill {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((printed(&["--version"]), printed(&["-V"])), (version.clone(), version));
    assert!(printed(&["run", "--version"]).ends_with(&format!("{}\n", env!("CARGO_PKG_VERSION"))));
}
