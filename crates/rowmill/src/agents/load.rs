//! Loads agent cards with everything that they name.

use std::path::{Path, PathBuf};

use rowmill_cards::{
    Card, CardSet, CardText, IncludeFrom, MessageForm, Origin, PythonFunction, parse, parse_messages,
};
use rowmill_core::variables::Variables;
use rowmill_data::{Fetcher, load_text};
use rowmill_types::{Problem, ProblemCode};

use super::load_digest::digest;
use super::load_sources::{Found, find};

/// What the flags say about cards.
#[derive(Debug)]
pub(crate) struct CardFlags<'a> {
    /// The values of `--agent-card`: files, folders and addresses.
    pub(crate) sources: &'a [String],
    /// The value of `--agent`.
    pub(crate) agent: Option<&'a str>,
    /// `--var`, `--var-file` and `--vars-json`.
    pub(crate) variables: &'a Variables,
}

/// Cards that are ready for use.
#[derive(Debug)]
pub(crate) struct LoadedCards {
    /// All cards. Those that the worker needs are complete: includes, variables and messages are in.
    pub(crate) set: CardSet,
    /// The name of the card that works on rows.
    pub(crate) worker: String,
    /// A digest of everything in the worker and its children that shapes answers, without secrets.
    pub(crate) digest: String,
    /// Variables of the flags that no instruction uses.
    pub(crate) unused_variables: Vec<String>,
    /// Fields that have no meaning in a batch, each with the card that has it.
    pub(crate) ignored: Vec<(String, String)>,
}

/// Looks up a variable of the environment.
pub(crate) type Environment = dyn Fn(&str) -> Option<String> + Sync;

/// Loads the cards that the flags name.
///
/// # Errors
///
/// A card cannot be read or used, the cards do not fit together, or it is not clear which one works
/// on rows.
pub(crate) async fn load(
    flags: &CardFlags<'_>,
    environment: &Environment,
    fetcher: &Fetcher<'_>,
) -> Result<LoadedCards, Problem> {
    let home = environment("HOME").map(PathBuf::from);
    let (mut cards, mut folders) = (Vec::new(), Vec::new());
    for Found { shown, text, folder } in find(flags.sources, fetcher).await? {
        let origin = if folder.is_some() { Origin::Local { environment } } else { Origin::Remote };
        let mut card = parse(&CardText { source: &shown, text: &text, origin })?;
        if let Some(folder) = &folder {
            card.resolve_paths(folder, home.as_deref());
        }
        cards.push(card);
        folders.push(folder);
    }
    let mut set = CardSet::new(cards)?;
    let worker = set.worker(flags.agent)?.name.clone();
    let members: Vec<String> = set.members(&worker).into_iter().map(|card| card.name.clone()).collect();
    let mut used = Vec::new();
    for (card, folder) in set.cards_mut().iter_mut().zip(&folders) {
        // A card that the worker does not need may lack what it would need itself.
        if members.contains(&card.name) {
            used.extend(complete(card, folder.as_deref(), flags.variables, fetcher).await?);
        }
    }
    let members = set.members(&worker);
    let digest = digest(&members)?;
    let ignored = members
        .iter()
        .flat_map(|card| card.ignored.iter().map(|field| (card.name.clone(), field.clone())))
        .collect();
    let unused = flags.variables.names().filter(|name| !used.iter().any(|known| known == name));
    let unused_variables = unused.map(str::to_owned).collect();
    Ok(LoadedCards { worker, digest, unused_variables, ignored, set })
}

/// Brings what a card names, and returns the variables that its instruction uses.
async fn complete(
    card: &mut Card,
    folder: Option<&Path>,
    variables: &Variables,
    fetcher: &Fetcher<'_>,
) -> Result<Vec<String>, Problem> {
    let mut texts = Vec::new();
    for include in card.includes() {
        let text = match include.from {
            IncludeFrom::Url(url) => load_text(&url, "{{url:…}}", fetcher).await?,
            IncludeFrom::File { path, optional } => {
                let path = folder.unwrap_or(Path::new("")).join(path);
                if optional && !path.exists() {
                    String::new()
                } else {
                    load_text(&path.to_string_lossy(), "{{file:…}}", fetcher).await?
                }
            }
        };
        texts.push((include.placeholder, text));
    }
    card.inline(&texts)?;
    let used = card.fill(variables)?;
    for path in &card.messages {
        let name = path.to_string_lossy();
        let text = load_text(&name, "messages", fetcher).await?;
        card.history.extend(parse_messages(&text, MessageForm::of(&name), &name)?);
    }
    check_paths(card)?;
    Ok(used)
}

/// Says before the first row that something is not there.
fn check_paths(card: &Card) -> Result<(), Problem> {
    for (field, function) in functions(card) {
        if !function.file.is_file() {
            return Err(missing(card, field, "file", &function.file));
        }
    }
    let folders =
        card.skills.iter().map(|path| ("skills", path)).chain(card.cwd.iter().map(|path| ("cwd", path)));
    for (field, path) in folders {
        if !path.is_dir() {
            return Err(missing(card, field, "folder", path));
        }
    }
    Ok(())
}

/// The functions that a card names, with the fields that name them.
pub(super) fn functions(card: &Card) -> impl Iterator<Item = (&'static str, &PythonFunction)> {
    let tools = card.function_tools.iter().map(|tool| ("function_tools", &tool.entrypoint));
    let hooks = card.tool_hooks.iter().map(|(_, function)| ("tool_hooks", function));
    let lifecycle = card.lifecycle_hooks.iter().map(|(_, function)| ("lifecycle_hooks", function));
    tools.chain(hooks).chain(lifecycle)
}

fn missing(card: &Card, field: &str, what: &str, path: &Path) -> Problem {
    let message =
        format!("`{}`: `{field}` names a {what} that is not there: `{}`", card.source, path.display());
    Problem::new(ProblemCode::InvalidCard, message).hint("relative paths begin at the card's folder")
}
