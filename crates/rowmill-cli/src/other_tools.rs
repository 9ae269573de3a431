//! Flags of other tools, and their equivalents here.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The flag names of other tools, and the flag here.
const FLAGS: &[(&[&str], &str)] = &[
    (&["--schema", "--output-schema", "--response-schema", "--response-format"], "--json-schema"),
    (&["--input-file", "--input-path", "--infile", "--file", "--data", "--dataset"], "--input"),
    (&["--out", "--output-file", "--output-path", "--outfile", "--save"], "--output"),
    (
        &[
            "--concurrency",
            "--max-concurrency",
            "--workers",
            "--num-workers",
            "--max-workers",
            "--threads",
            "--jobs",
            "--batch-size",
        ],
        "--parallel",
    ),
    (&["--system", "--system-prompt", "--instructions"], "--instruction"),
    (&["--prompt-file", "--prompt-template", "--template-file"], "--template"),
    (&["--budget", "--max-budget", "--max-spend", "--cost-limit"], "--max-cost"),
    (&["--retry", "--max-retries", "--num-retries"], "--retries"),
    (&["--rows", "--max-rows", "--num-rows", "--num-samples", "--first"], "--limit"),
    (&["--skip", "--start"], "--offset"),
    (&["--filter", "--query"], "--where"),
    (&["--id-column", "--id-key", "--key-field"], "--id-field"),
    (&["--rate-limit", "--requests-per-minute", "--max-requests-per-minute"], "--rpm"),
    (&["--tokens-per-minute", "--max-tokens-per-minute"], "--tpm"),
    (&["--quiet", "--silent"], "--no-progress"),
    (&["--continue", "--restart"], "--resume"),
    (&["--force"], "--overwrite"),
    (&["--errors", "--error-file", "--failed"], "--error-output"),
];

/// Flags of other tools without an equivalent flag here, and what to do instead.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["--dry-run", "--estimate", "--preview"],
        "`rowmill plan` with the same flags estimates rows, tokens and cost; `--limit 3` tries a few rows",
    ),
    (
        &["--temperature", "--top-p", "--reasoning", "--reasoning-effort"],
        "model settings are part of the model string, such as `--model 'openai.gpt-5.4-mini?temperature=0.2'`; see `rowmill models MODEL`",
    ),
    (
        &["--max-output-tokens", "--max-completion-tokens", "--max-new-tokens"],
        "the maximum answer length is part of the model string, such as `--model 'openai.gpt-5.4-mini?max_tokens=200'`",
    ),
    (
        &["--api-key", "--key", "--token"],
        "API keys come from environment variables; `rowmill models` lists them",
    ),
    (
        &["--base-url", "--api-base", "--endpoint", "--url"],
        "base URLs come from environment variables, such as `OPENAI_BASE_URL`, or from `rowmill.toml`",
    ),
    (&["--provider"], "the provider is part of the model string, such as `--model openai.gpt-5.4-mini`"),
];

/// Adds a tip to an error if the unknown flag is one of another tool, or if a value has no flag.
/// `words` is the command line.
pub(crate) fn add_tip(mut error: clap::Error, words: &[String]) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return error };
    let tip = match given.starts_with('-') {
        true => tip(given.split('=').next().unwrap_or_default()),
        false => Some(value_tip(given, words)),
    };
    let Some(tip) = tip else { return error };
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// Says what to do about an unknown flag of `head`. That it could be passed as a value is no help: the only value is
/// the input.
pub(crate) fn add_head_tip(mut error: clap::Error) -> clap::Error {
    const COLUMNS: &str = "`--sql 'SELECT id, text FROM input'` shows only these columns";
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return error };
    let is_flag = given.starts_with("--");
    if given.split('=').next() == Some("--columns") {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![COLUMNS.to_owned().into()]));
    } else if is_flag && error.get(ContextKind::SuggestedArg).is_none() {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// The tip for a value without a flag.
fn value_tip(given: &str, words: &[String]) -> String {
    let is_file =
        Path::new(given).exists() || given.contains("://") || Path::new(given).extension().is_some();
    let has_input = words.iter().any(|word| word.starts_with("-i") || word.starts_with("--input"));
    match (is_file && !given.contains(' '), has_input) {
        (true, false) => format!("the input needs a flag: `--input {given}`"),
        (true, true) => {
            "to read several files as one input, use a pattern in quotes, such as `--input 'parts/*.jsonl'`"
                .to_owned()
        }
        (false, _) => {
            "put a value that contains spaces in quotes, such as `--prompt 'Classify: {{text}}'`".to_owned()
        }
    }
}

fn tip(name: &str) -> Option<String> {
    let named = |entry: &&(&[&str], &str)| entry.0.contains(&name);
    let flag = FLAGS.iter().find(named).map(|(_, flag)| format!("use `{flag}` instead"));
    flag.or_else(|| ELSEWHERE.iter().find(named).map(|(_, text)| (*text).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_other_tools_lead_to_flags_that_there_are_and_are_none_themselves() {
        let command = crate::clap_command();
        let run = command.find_subcommand("run").unwrap();
        let has = |flag: &str| run.get_arguments().any(|known| known.get_long() == flag.strip_prefix("--"));
        for (names, flag) in FLAGS {
            assert!(has(flag), "{flag}");
            names.iter().for_each(|name| assert!(!has(name), "{name} is a flag here"));
        }
        for name in ELSEWHERE.iter().flat_map(|(names, _)| *names) {
            assert!(!has(name), "{name} is a flag here");
        }
    }
}
