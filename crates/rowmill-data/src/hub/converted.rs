//! Datasets in the hub's conversion to Parquet.

use rowmill_http::Url;
use rowmill_types::settings::INPUT_FORMAT;
use rowmill_types::{Problem, ProblemCode};
use serde_json::{Map, Value};

use super::client::HubClient;
use super::refusal::RequestSubject;
use super::selection::HubFile;
use crate::download::ExpectedFile;
use crate::fetch::FetchEventKind;

/// How many choices a message lists.
const NAMED: usize = 20;

/// The prefix of a split of which only the beginning was converted.
const PARTIAL: &str = "partial-";

/// The files of the configuration and split that the address selects.
pub(super) async fn converted_files(hub: &HubClient<'_>) -> Result<Vec<HubFile>, Problem> {
    let address = hub.address;
    if let Some(revision) = &address.revision {
        let message = format!(
            "`{address}` asks for revision `{revision}`, but the hub converts only the newest one to Parquet"
        );
        return Err(Problem::new(ProblemCode::InputNotFound, message)
            .hint("omit the revision, or give the path of one of its files"));
    }
    let listing = hub.document(hub.api_url(&["parquet"]), RequestSubject::Converted).await?;
    let configs = listing.value.as_object().filter(|configs| !configs.is_empty()).ok_or_else(|| none(hub))?;
    let (config, splits) = chosen_config(hub, configs)?;
    let (split, files) = chosen_split(hub, configs, config, splits)?;
    if split.starts_with(PARTIAL) {
        let warning = format!(
            "the hub has converted only the beginning of split `{}`; give the paths of its files to read all \
             of it",
            split.trim_start_matches(PARTIAL)
        );
        hub.fetcher.emit(&address.to_string(), FetchEventKind::Warning(warning));
    }
    let files = files.as_array().ok_or_else(|| none(hub))?.iter().filter_map(Value::as_str);
    let files: Vec<_> = files
        .enumerate()
        .filter_map(|(at, address)| {
            let url = hub.endpoint().join(address).ok().filter(Url::has_host)?;
            let name = format!("{config}/{split}/{at}.parquet");
            let key = url.to_string();
            Some(HubFile {
                name,
                key,
                url,
                revision: String::new(),
                path: None,
                expected: ExpectedFile::default(),
            })
        })
        .collect();
    if files.is_empty() { Err(none(hub)) } else { Ok(files) }
}

fn chosen_config<'v>(
    hub: &HubClient<'_>,
    configs: &'v Map<String, Value>,
) -> Result<(&'v str, &'v Map<String, Value>), Problem> {
    let found = match &hub.address.config {
        Some(config) => configs.get_key_value(config),
        None if configs.len() == 1 => configs.iter().next(),
        None => return Err(choose(hub, configs, "several configurations")),
    };
    let Some((config, splits)) = found else {
        let config = hub.address.config.as_deref().unwrap_or_default();
        return Err(choose(hub, configs, &format!("no configuration `{config}`")));
    };
    let splits = splits.as_object().ok_or_else(|| none(hub))?;
    Ok((config, splits))
}

fn chosen_split<'v>(
    hub: &HubClient<'_>,
    configs: &Map<String, Value>,
    config: &str,
    splits: &'v Map<String, Value>,
) -> Result<(&'v str, &'v Value), Problem> {
    let found = match &hub.address.split {
        Some(split) => {
            splits.get_key_value(split).or_else(|| splits.get_key_value(&format!("{PARTIAL}{split}")))
        }
        None if splits.len() == 1 => splits.iter().next(),
        None => return Err(choose(hub, configs, &format!("several splits in configuration `{config}`"))),
    };
    let split = hub.address.split.as_deref().unwrap_or_default();
    let missing = || choose(hub, configs, &format!("no split `{split}` in configuration `{config}`"));
    found.map(|(split, files)| (split.as_str(), files)).ok_or_else(missing)
}

/// Lists the choices in the spelling that selects them.
fn choose(hub: &HubClient<'_>, configs: &Map<String, Value>, why: &str) -> Problem {
    let pairs: Vec<(&str, &str)> = configs
        .iter()
        .flat_map(|(config, splits)| {
            let splits = splits.as_object().into_iter().flat_map(Map::keys);
            splits.map(move |split| (config.as_str(), split.trim_start_matches(PARTIAL)))
        })
        .collect();
    let named: Vec<_> =
        pairs.iter().take(NAMED).map(|(config, split)| format!("`config={config}&split={split}`")).collect();
    let rest = match pairs.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let message = format!("`{}` has {why}; available: {}{rest}", hub.address, named.join(", "));
    let (config, split) = pairs.first().copied().unwrap_or_default();
    Problem::new(ProblemCode::InputAmbiguous, message)
        .hint(format!("choose one, as in `{}`", hub.address.address_of_split(config, split)))
}

fn none(hub: &HubClient<'_>) -> Problem {
    let message = format!("`{}` has no converted Parquet, and no file with a known extension", hub.address);
    Problem::new(ProblemCode::InputNotFound, message).hint(format!(
        "give the path of one of its files, with {INPUT_FORMAT} if its name does not show the format"
    ))
}
