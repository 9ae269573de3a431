//! The commands in README and docs are valid, and the docs contain required warnings.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

/// A command line with its page and first line.
struct ShownCommand {
    place: String,
    words: Vec<String>,
}

/// README and every page of the docs.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> =
        docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// The lines of code blocks that a user would type, joined at backslashes.
fn typed_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut block = None;
    let mut open: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = block.is_none().then(|| language.trim().to_owned());
            continue;
        }
        let typed = match block.as_deref() {
            Some("sh" | "bash") => Some(line.trim()),
            // In a terminal transcript, typed lines start with a prompt.
            Some(_) if open.is_some() => Some(line.trim()),
            Some(_) => line.trim().strip_prefix("$ "),
            None => None,
        };
        let Some(typed) = typed else { continue };
        let (first, before) = open.take().unwrap_or((number + 1, String::new()));
        match typed.strip_suffix('\\') {
            Some(more) => open = Some((first, format!("{before}{more} "))),
            None => lines.push((first, format!("{before}{typed}"))),
        }
    }
    lines
}

/// The words of a line that are passed to `rowmill`, with its own name first.
fn rowmill_words(line: &str) -> Option<Vec<String>> {
    let is_end = |word: &String| ["|", "||", "&&", "&", ";", ">", ">>", "2>", "<"].contains(&word.as_str());
    let words: Vec<String> = shlex::Shlex::new(line).collect();
    words.split(is_end).find_map(|command| {
        let name = command.iter().position(|word| !word.contains('='))?;
        (command[name] == "rowmill").then(|| command[name..].to_vec())
    })
}

fn shown_commands() -> Vec<ShownCommand> {
    let mut commands = Vec::new();
    for page in pages() {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        for (number, line) in typed_lines(&fs::read_to_string(&page).unwrap()) {
            if let Some(words) = rowmill_words(&line) {
                commands.push(ShownCommand { place: format!("{name}:{number}"), words });
            }
        }
    }
    commands
}

#[test]
fn every_command_in_the_docs_is_one_that_the_program_takes() {
    let commands = shown_commands();
    assert!(commands.len() > 80, "the docs are read: {}", commands.len());
    let mut refused = Vec::new();
    for ShownCommand { place, words } in commands {
        // `…` stands for arguments that the reader knows; they may be missing.
        let shortened = words.iter().any(|word| word == "…");
        let words = words.into_iter().filter(|word| word != "…");
        if let Err(error) = rowmill_cli::clap_command().try_get_matches_from(words) {
            let harmless = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
                ErrorKind::MissingRequiredArgument => shortened,
                _ => false,
            };
            if !harmless {
                refused.push(format!("{place}: {error}"));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn the_page_about_mcp_warns_of_servers_that_lose_writes_and_says_what_to_do() {
    let page = pages().into_iter().find(|page| page.ends_with("docs/mcp.md")).unwrap();
    let text = fs::read_to_string(page).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with("Calls at once\n")).unwrap();
    // Line breaks do not matter.
    let section = section.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "**Some lose writes.** A server that reads a file, changes it and writes it back with every call can \
         undo one of two simultaneous calls, and report success for both",
        "`@modelcontextprotocol/server-memory` lost",
        "[mcp.servers.notes] command = \"notes-server\" max_parallel = 1",
        "Servers that are known to do this get `max_parallel = 1` unless you set it",
    ] {
        assert!(section.contains(sentence), "`{sentence}` is not in: {section}");
    }
}
