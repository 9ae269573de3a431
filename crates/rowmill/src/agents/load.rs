//! Loads agent cards with everything that they name.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rowmill_cards::{
    AgentCard, CardOrigin, CardSet, IncludeSource, MessageFileFormat, PythonFunctionReference,
    UnfilledPlaceholder, UnparsedCard, join_problems, parse_card, parse_message_file, unfilled_problem,
};
use rowmill_core::variables::InstructionVariables;
use rowmill_data::{Fetcher, TextOrigin, load_text};
use rowmill_types::{Problem, Secret};

use super::fast_agent_config::config_files;
use super::load_digest::{cards_as_lines, cards_digest, files_under, modules_beside, skill_texts};
use super::load_hooks::find_hook_problems;
use super::load_paths::PathFinder;
use super::load_sources::{CardSource, find_card_sources};

/// The flags about cards.
#[derive(Debug)]
pub(crate) struct CardFlags<'a> {
    /// The values of `--agent-card`: files, folders and addresses.
    pub(crate) sources: &'a [String],
    /// The value of `--agent`.
    pub(crate) agent: Option<&'a str>,
    /// `--var`, `--var-file` and `--vars-json`.
    pub(crate) variables: &'a InstructionVariables,
}

/// Loaded cards that are ready for use.
#[derive(Debug)]
pub(crate) struct LoadedCards {
    /// All cards. Those that the worker needs are complete, with includes, variables and messages.
    pub(crate) set: CardSet,
    /// The name of the card that works on rows.
    pub(crate) worker: String,
    /// The folders of local cards.
    pub(crate) folders: Vec<PathBuf>,
    /// A digest of everything in the worker and its children that shapes answers, without secrets.
    pub(crate) digest: String,
    /// The same contents as lines, to show what changed.
    pub(crate) text: String,
    /// Variables of the flags that no instruction uses.
    pub(crate) unused_variables: Vec<String>,
    /// Fields that have no effect in a batch, each with its card.
    pub(crate) ignored: Vec<(String, String)>,
    /// Other notices for the user, such as files that were not where they belong.
    pub(crate) notices: Vec<String>,
    /// Every file that was or will be read for the cards: the cards themselves, and the files that they
    /// name.
    pub(crate) files: Vec<PathBuf>,
    /// Values of environment variables that were filled into the cards.
    pub(crate) from_variables: Vec<Secret>,
}

/// Looks up a variable of the environment.
pub(crate) type EnvironmentLookup = dyn Fn(&str) -> Option<String> + Sync;

/// Cards as written, before the files that they name are loaded.
#[derive(Debug, Clone)]
pub(super) struct ParsedCards {
    pub(super) cards: Vec<AgentCard>,
    /// The folder of each card by its name; a card from a remote source has none.
    folders: Vec<(String, Option<PathBuf>)>,
    home: Option<PathBuf>,
    /// Values of environment variables that were filled into the cards.
    from_variables: Vec<Secret>,
}

impl ParsedCards {
    /// The files of local cards.
    fn local_files(&self) -> impl Iterator<Item = PathBuf> {
        let local = self.cards.iter().zip(&self.folders).filter(|(_, (_, folder))| folder.is_some());
        local.map(|(card, _)| PathBuf::from(&card.source))
    }
}

/// Loads the cards that the flags name.
///
/// # Errors
///
/// A card cannot be read or used, the cards do not fit together, or it is not clear which one works
/// on rows.
pub(crate) async fn load_card_set(
    flags: &CardFlags<'_>,
    environment: &EnvironmentLookup,
    fetcher: &Fetcher<'_>,
) -> Result<LoadedCards, Problem> {
    let (written, problems) = read_cards(flags.sources, environment, fetcher).await?;
    if !problems.is_empty() {
        return Err(join_problems(problems));
    }
    let set = CardSet::new(written.cards.clone())?;
    let worker = set.choose_worker(flags.agent)?.name.clone();
    complete_cards(&written, set, worker, (flags.variables, fetcher)).await
}

/// Reads all cards, and collects the problems of those that cannot be read.
pub(super) async fn read_cards(
    sources: &[String],
    environment: &EnvironmentLookup,
    fetcher: &Fetcher<'_>,
) -> Result<(ParsedCards, Vec<Problem>), Problem> {
    let home = environment("HOME").map(PathBuf::from);
    let (mut cards, mut folders) = (Vec::new(), Vec::new());
    let from_variables: Mutex<Vec<Secret>> = Mutex::default();
    let noted = |name: &str| {
        let value = environment(name)?;
        from_variables.lock().unwrap_or_else(PoisonError::into_inner).push(Secret::new(value.as_str()));
        Some(value)
    };
    let mut problems = Vec::new();
    for CardSource { shown, text, folder } in find_card_sources(sources, fetcher).await? {
        let origin =
            if folder.is_some() { CardOrigin::Local { environment: &noted } } else { CardOrigin::Remote };
        match parse_card(&UnparsedCard { source: &shown, text: &text, origin }) {
            Ok(card) => {
                folders.push((card.name.clone(), folder));
                cards.push(card);
            }
            Err(wrong) => problems.extend(wrong),
        }
    }
    let from_variables = from_variables.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((ParsedCards { cards, folders, home, from_variables }, problems))
}

/// Completes the cards that a worker needs.
pub(super) async fn complete_cards(
    written: &ParsedCards,
    mut set: CardSet,
    worker: String,
    (variables, fetcher): (&InstructionVariables, &Fetcher<'_>),
) -> Result<LoadedCards, Problem> {
    let members: Vec<String> =
        set.cards_of_worker(&worker).into_iter().map(|card| card.name.clone()).collect();
    let mut found = CompletedCards::default();
    for card in set.cards_mut() {
        // A card that the worker does not need may lack files or variables of its own.
        if members.contains(&card.name) {
            let folder = written.folders.iter().find(|(name, _)| *name == card.name);
            let folder = folder.and_then(|(_, folder)| folder.as_deref()).unwrap_or(Path::new(""));
            let source = card.source.clone();
            let mut finder = PathFinder::new(folder, written.home.as_deref(), &source);
            complete_card(card, &mut finder, &mut found, (variables, fetcher)).await;
            found.notices.append(&mut finder.notices);
        }
    }
    let CompletedCards { used, unfilled, mut problems, notices, mut files } = found;
    files.extend(written.local_files());
    if !unfilled.is_empty() {
        let named = unfilled.into_iter().filter_map(|(name, one)| Some((set.card(&name)?, one)));
        problems.push(unfilled_problem(&named.collect::<Vec<_>>()));
    }
    if !problems.is_empty() {
        return Err(join_problems(problems));
    }
    let members = set.cards_of_worker(&worker);
    let (digest, text) = (cards_digest(&members)?, cards_as_lines(&members)?);
    let ignored = members
        .iter()
        .flat_map(|card| card.ignored.iter().map(|field| (card.name.clone(), field.clone())))
        .collect();
    let unused = variables.names().filter(|name| !used.iter().any(|known| known == name));
    let unused_variables = unused.map(str::to_owned).collect();
    let from_variables = written.from_variables.clone();
    let folders: Vec<PathBuf> = written.folders.iter().filter_map(|(_, folder)| folder.clone()).collect();
    files.extend(config_files(&folders));
    Ok(LoadedCards {
        worker,
        folders,
        digest,
        text,
        unused_variables,
        ignored,
        notices,
        files,
        from_variables,
        set,
    })
}

/// The result of completing cards, including all problems.
#[derive(Default)]
struct CompletedCards {
    /// Variables that instructions use.
    used: Vec<String>,
    /// Placeholders without a value, with the names of the cards.
    unfilled: Vec<(String, UnfilledPlaceholder)>,
    problems: Vec<Problem>,
    notices: Vec<String>,
    /// The files that cards name.
    files: Vec<PathBuf>,
}

/// Loads what a card names.
async fn complete_card(
    card: &mut AgentCard,
    finder: &mut PathFinder<'_>,
    found: &mut CompletedCards,
    (variables, fetcher): (&InstructionVariables, &Fetcher<'_>),
) {
    finder.resolve(card);
    let mut texts = Vec::new();
    for include in card.instruction_includes() {
        let text = match include.from {
            IncludeSource::Url(url) => load_text(&url, TextOrigin::OfCard("{{url:…}}"), fetcher).await,
            IncludeSource::File { path, optional } => {
                let path = finder.find(&include.placeholder, &path);
                found.files.push(path.clone());
                if optional && !path.exists() {
                    Ok(String::new())
                } else {
                    load_text(&path.to_string_lossy(), TextOrigin::OfCard("{{file:…}}"), fetcher).await
                }
            }
        };
        match text {
            Ok(text) => texts.push((include.placeholder, text)),
            Err(problem) => found.problems.push(at_placeholder(card, &include.placeholder, problem)),
        }
    }
    found.problems.extend(card.insert_includes(&texts).err());
    let filled = card.fill_variables(variables);
    found.used.extend(filled.used);
    found.unfilled.extend(filled.unfilled.into_iter().map(|one| (card.name.clone(), one)));
    for path in card.messages.clone() {
        let name = path.to_string_lossy();
        let read = match load_text(&name, TextOrigin::OfCard("messages"), fetcher).await {
            Ok(text) => parse_message_file(&text, MessageFileFormat::from_file_name(&name), &name),
            Err(problem) => Err(problem),
        };
        match read {
            Ok(messages) => card.history.extend(messages),
            Err(problem) => {
                found.problems.push(at_name(card, ("messages", finder.path_as_written(&path)), problem))
            }
        }
    }
    found.problems.extend(missing_paths(card, finder));
    found.problems.extend(find_hook_problems(card, finder));
    found.files.extend(card.messages.iter().cloned());
    found.files.extend(python_functions(card).flat_map(|(_, function)| modules_beside(&function.file)));
    // A folder of skills that cannot be read is reported above.
    let texts = card.skills.iter().flat_map(|folder| skill_texts(folder).unwrap_or_default());
    found.files.extend(texts.flat_map(|text| files_under(text.parent().unwrap_or(Path::new(".")))));
}

/// Adds to a problem the card, and the line of a placeholder.
fn at_placeholder(card: &AgentCard, placeholder: &str, problem: Problem) -> Problem {
    let message = card.problem_at_placeholder(placeholder, problem.message.with_mention_markers()).message;
    let hint = "relative paths are resolved from the card's folder, then from the current one".into();
    let hint = if placeholder.starts_with("{{url:") { problem.hint.clone() } else { Some(hint) };
    Problem { message, hint, ..problem }
}

/// Adds to a problem the card, and the line of the name in it.
fn at_name(card: &AgentCard, (field, name): (&str, &str), problem: Problem) -> Problem {
    let message = card.problem_at((field, name), problem.message.with_mention_markers()).message;
    Problem { message, ..problem }
}

/// Finds missing files before the first row.
fn missing_paths(card: &AgentCard, finder: &PathFinder<'_>) -> Vec<Problem> {
    let missing = |field: &str, what: &str, path: &Path| {
        let name = finder.path_as_written(path);
        let message = format!("`{field}` names a {what} that does not exist: `{}`", path.display());
        card.problem_at((field, name), message)
            .hint("relative paths are resolved from the card's folder, then from the current one")
    };
    let files = python_functions(card).filter(|(_, function)| !function.file.is_file());
    let mut problems: Vec<Problem> =
        files.map(|(field, function)| missing(field, "file", &function.file)).collect();
    let folders =
        card.skills.iter().map(|path| ("skills", path)).chain(card.cwd.iter().map(|path| ("cwd", path)));
    let folders = folders.filter(|(_, path)| !path.is_dir());
    problems.extend(folders.map(|(field, path)| missing(field, "folder", path)));
    problems
}

/// The functions that a card names, with the fields that name them.
pub(super) fn python_functions(
    card: &AgentCard,
) -> impl Iterator<Item = (&'static str, &PythonFunctionReference)> {
    let tools = card.function_tools.iter().map(|tool| ("function_tools", &tool.entrypoint));
    let hooks = card.tool_hooks.iter().map(|(_, function)| ("tool_hooks", function));
    let lifecycle = card.lifecycle_hooks.iter().map(|(_, function)| ("lifecycle_hooks", function));
    tools.chain(hooks).chain(lifecycle)
}
