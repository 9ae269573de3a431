//! Finds the row of the table that has the price of a model.

use std::borrow::Cow;

use crate::provider_table::PROVIDER_ROWS;

/// The canonical name of a provider, which may be given by an alias.
pub(super) fn provider(name: &str) -> &str {
    let row = PROVIDER_ROWS.iter().find(|row| row.name == name || row.aliases.contains(&name));
    row.map_or(name, |row| row.name)
}

/// Providers that offer the same models at the same prices.
pub(super) fn peers(provider: &str) -> &'static [&'static str] {
    match provider {
        "openai" | "responses" => &["openai", "responses"],
        "google" | "googleoai" => &["google", "googleoai"],
        _ => &[],
    }
}

/// The vendor whose price a provider charges for a model, and the vendor's name for it.
///
/// The names of Azure deployments are assumed to be model names. OpenRouter charges the vendors' prices for
/// models that only their vendor serves; the price of an open model depends on its route.
pub(super) fn vendor<'a>(provider: &'a str, model: &'a str) -> Option<(&'a str, Cow<'a, str>)> {
    let (vendor, model) = match provider {
        "openai" | "responses" | "azure" => ("openai", Cow::Borrowed(base_of_tuned(model))),
        "google" | "googleoai" => ("google", Cow::Borrowed(model.strip_prefix("models/").unwrap_or(model))),
        "openrouter" => {
            let (vendor, model) = model.split_once('/').filter(|(_, model)| !model.contains(':'))?;
            match vendor {
                "anthropic" => ("anthropic", Cow::Owned(model.replace('.', "-"))),
                "openai" | "google" => (vendor, Cow::Borrowed(model)),
                "x-ai" => ("xai", Cow::Borrowed(model)),
                "mistralai" => ("mistral", Cow::Borrowed(model)),
                _ => return None,
            }
        }
        _ => (provider, Cow::Borrowed(model)),
    };
    Some((vendor, model))
}

/// `ft:BASE` of `ft:BASE:organisation:name:id`, which is how fine-tuned models are priced.
fn base_of_tuned(model: &str) -> &str {
    let rest = model.strip_prefix("ft:").and_then(|tuned| tuned.split_once(':')).map(|(_, rest)| rest);
    rest.and_then(|rest| model.get(..model.len() - rest.len() - 1)).unwrap_or(model)
}

/// Whether the row `listed` has the price of `model`: the same name, or a snapshot of it.
///
/// A model never has the price of its smaller or larger relatives: `gpt-5` is not `gpt-5-mini`.
pub(super) fn covers(listed: &str, model: &str) -> bool {
    let Some((start, rest)) = model.split_at_checked(listed.len()) else { return false };
    start.eq_ignore_ascii_case(listed) && (rest.is_empty() || rest.strip_prefix('-').is_some_and(is_snapshot))
}

/// Whether a suffix names a snapshot and not another model: `2024-08-06`, `20250929`, `2508`, `001`,
/// `latest`, `preview`, `preview-09-2025`.
fn is_snapshot(suffix: &str) -> bool {
    let (preview, date) = match suffix.strip_prefix("preview") {
        None => (false, suffix),
        Some("") => return true,
        Some(rest) => (true, rest.strip_prefix('-').unwrap_or("?")),
    };
    let parts: Vec<&str> = date.split('-').collect();
    let digits = parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    match lengths.as_slice() {
        [8 | 4 | 3] | [4, 2, 2] => digits,
        [2, 2 | 4] => digits && preview,
        _ => date == "latest" && !preview,
    }
}
