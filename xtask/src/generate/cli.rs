//! `docs/cli.md`: every command with its flags and examples, generated from the parser.

use clap::{Arg, ArgAction, Command};

/// The text of the document.
pub(super) fn document(command: Command) -> String {
    // Commands must not appear twice, once for every group that also has `help`.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut out = String::from(
        "<!-- Made by `cargo xtask generate`; do not edit. -->\n\
         # Command line\n\n\
         A flag wins over its environment variable, the variable over `rowmill.toml`, the file over the default.\n\
         Each command also has `--help`, and `rowmill --version` prints the version.\n",
    );
    let name = command.get_name().to_owned();
    section(&mut out, &command, &name);
    out
}

fn section(out: &mut String, command: &Command, path: &str) {
    let about = command.get_long_about().or_else(|| command.get_about());
    out.push_str(&format!("\n## `{path}`\n"));
    if let Some(about) = about {
        out.push_str(&format!("\n{}\n", sentence(&about.to_string())));
    }
    // A command with a second name is described once.
    if path == "rowmill batch run" {
        out.push_str("\nTakes the same flags as [`rowmill run`](#rowmill-run).\n");
        return;
    }
    let children: Vec<_> = command.get_subcommands().filter(|child| !child.is_hide_set()).collect();
    out.push_str(&format!("\n```text\n{}\n```\n", usage(command, path, !children.is_empty())));
    if !children.is_empty() {
        out.push('\n');
        for child in &children {
            let name = child.get_name();
            let about = sentence(&child.get_about().map(ToString::to_string).unwrap_or_default());
            out.push_str(&format!("- [`{path} {name}`](#{}): {about}\n", anchor(&format!("{path} {name}"))));
        }
    }
    flags(out, command);
    if let Some(after) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        out.push_str(&format!("\n```text\n{}\n```\n", after.to_string().trim_end()));
    }
    for child in children {
        section(out, child, &format!("{path} {}", child.get_name()));
    }
}

fn usage(command: &Command, path: &str, has_children: bool) -> String {
    let mut words = vec![path.to_owned()];
    let arguments = || command.get_arguments().filter(|argument| is_shown(argument));
    for argument in arguments().filter(|argument| !argument.is_positional() && argument.is_required_set()) {
        words.push(invocation(argument));
    }
    if arguments().any(|argument| !argument.is_positional() && !argument.is_required_set()) {
        words.push("[FLAGS]".to_owned());
    }
    words.extend(arguments().filter(|argument| argument.is_positional()).map(invocation));
    if has_children {
        words.push("<COMMAND>".to_owned());
    }
    words.join(" ")
}

fn flags(out: &mut String, command: &Command) {
    let mut heading = None;
    let mut arguments: Vec<_> = command.get_arguments().filter(|argument| is_shown(argument)).collect();
    // A stable sort, so flags keep the order of the code within their group.
    let mut order: Vec<Option<&str>> = Vec::new();
    for argument in &arguments {
        if !order.contains(&argument.get_help_heading()) {
            order.push(argument.get_help_heading());
        }
    }
    arguments.sort_by_key(|argument| order.iter().position(|name| *name == argument.get_help_heading()));
    for argument in arguments {
        let own = argument.get_help_heading().unwrap_or("Arguments");
        if heading != Some(own) {
            out.push_str(&format!("\n### {own}\n\n"));
            heading = Some(own);
        }
        out.push_str(&entry(argument));
    }
}

fn entry(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let required = if argument.is_required_set() && !argument.is_positional() { " (required)" } else { "" };
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut paragraphs: Vec<_> = help.split("\n\n").map(sentence).collect();
    let facts = facts(argument);
    if !facts.is_empty() {
        paragraphs.push(facts.join(" "));
    }
    // Two spaces break the line, so that the help is below the flag.
    format!("- {short}`{}`{required}  \n  {}\n", invocation(argument), paragraphs.join("\n\n  "))
}

/// The text with the full stop that the parser removes.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() || text.ends_with(['.', ':', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

fn facts(argument: &Arg) -> Vec<String> {
    let mut facts = Vec::new();
    let values = argument.get_possible_values();
    if takes_value(argument) && !values.is_empty() {
        let names: Vec<_> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        facts.push(format!("Values: {}.", names.join(", ")));
    }
    let defaults = argument.get_default_values();
    if takes_value(argument) && !defaults.is_empty() {
        let texts: Vec<_> = defaults.iter().map(|value| value.to_string_lossy()).collect();
        facts.push(format!("Default: `{}`.", texts.join(" ")));
    }
    if let Some(variable) = argument.get_env() {
        facts.push(format!("Environment: `{}`.", variable.to_string_lossy()));
    }
    facts
}

fn invocation(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let value = values.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    match argument.get_long() {
        Some(long) if takes_value(argument) => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
        None => value,
    }
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

fn is_shown(argument: &Arg) -> bool {
    !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

fn anchor(title: &str) -> String {
    title.replace(' ', "-").to_lowercase()
}
