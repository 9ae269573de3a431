//! Lists of jobs and files in the vendors' pages. The newest come first.

use serde_json::{Value, json};

use super::route::BatchRoute;
use super::vendor::BatchVendor;
use crate::protocol::RequestRefusal;

/// An entry of a list: its id and its shape.
pub(super) type ListEntry = (String, Value);

/// What a list contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    Jobs,
    Files,
}

/// The page that a request asks for.
pub(super) fn page(
    route: &BatchRoute<'_>,
    listed: Listed,
    entries: Vec<ListEntry>,
) -> Result<Value, RequestRefusal> {
    match route.vendor {
        BatchVendor::Together => {
            let all: Value = entries.into_iter().map(|(_, entry)| entry).collect();
            Ok(if listed == Listed::Files { json!({"data": all}) } else { all })
        }
        BatchVendor::Mistral => Ok(numbered(route, entries)),
        BatchVendor::Gemini => tokens(route, listed, entries),
        BatchVendor::Anthropic => anthropic(route, entries),
        _ => openai(route, listed, entries),
    }
}

fn openai(route: &BatchRoute<'_>, listed: Listed, entries: Vec<ListEntry>) -> Result<Value, RequestRefusal> {
    let (usual, most) = if listed == Listed::Jobs { (20, 100) } else { (10_000, 10_000) };
    let limit = checked_limit(route, usual, most)?;
    let start = match route.parameter("after") {
        Some(id) => position(&entries, id)? + 1,
        None => 0,
    };
    let mut page = cut(entries, start, limit);
    page["object"] = json!("list");
    Ok(page)
}

fn anthropic(route: &BatchRoute<'_>, entries: Vec<ListEntry>) -> Result<Value, RequestRefusal> {
    let limit = checked_limit(route, 20, 1_000)?;
    if let Some(id) = route.parameter("before_id") {
        let end = position(&entries, id)?;
        let start = end.saturating_sub(limit);
        let mut page = cut(entries, start, end - start);
        page["has_more"] = json!(start > 0);
        return Ok(page);
    }
    let start = match route.parameter("after_id") {
        Some(id) => position(&entries, id)? + 1,
        None => 0,
    };
    Ok(cut(entries, start, limit))
}

fn checked_limit(route: &BatchRoute<'_>, usual: usize, most: usize) -> Result<usize, RequestRefusal> {
    let limit = route.number("limit", usual);
    match (1..=most).contains(&limit) {
        true => Ok(limit),
        false => Err(RequestRefusal::invalid(format!("Invalid 'limit': expected a value from 1 to {most}."))),
    }
}

fn position(entries: &[ListEntry], id: &str) -> Result<usize, RequestRefusal> {
    let found = entries.iter().position(|(held, _)| held == id);
    found.ok_or_else(|| RequestRefusal::invalid(format!("No such object: {id}")))
}

/// Entries from `start`, at most `limit` of them.
fn cut(entries: Vec<ListEntry>, start: usize, limit: usize) -> Value {
    let has_more = entries.len() > start.saturating_add(limit);
    let page: Vec<ListEntry> = entries.into_iter().skip(start).take(limit).collect();
    let id = |entry: Option<&ListEntry>| entry.map(|(id, _)| id.clone());
    let (first, last) = (id(page.first()), id(page.last()));
    let data: Value = page.into_iter().map(|(_, entry)| entry).collect();
    json!({"data": data, "first_id": first, "last_id": last, "has_more": has_more})
}

/// Mistral's pages have numbers from 0.
fn numbered(route: &BatchRoute<'_>, entries: Vec<ListEntry>) -> Value {
    let wanted: Vec<&str> = route.parameters("status").collect();
    let entries = entries.into_iter().map(|(_, entry)| entry).filter(|entry| {
        wanted.is_empty() || entry["status"].as_str().is_some_and(|state| wanted.contains(&state))
    });
    let entries: Vec<Value> = entries.collect();
    let (page, size) = (route.number("page", 0), route.number("page_size", 100));
    let total = entries.len();
    let data: Value = entries.into_iter().skip(page.saturating_mul(size)).take(size).collect();
    json!({"object": "list", "data": data, "total": total})
}

/// Google's pages have tokens: the number of the first entry.
fn tokens(route: &BatchRoute<'_>, listed: Listed, entries: Vec<ListEntry>) -> Result<Value, RequestRefusal> {
    let size = route.number("pageSize", 50).clamp(1, 1_000);
    let start = match route.parameter("pageToken").filter(|token| !token.is_empty()) {
        Some(token) => token.parse().map_err(|_| RequestRefusal::invalid("Invalid page token."))?,
        None => 0_usize,
    };
    let end = start.saturating_add(size);
    let has_more = entries.len() > end;
    let data: Value = entries.into_iter().skip(start).take(size).map(|(_, entry)| entry).collect();
    let name = if listed == Listed::Jobs { "operations" } else { "files" };
    let mut list = json!({name: data});
    if has_more {
        list["nextPageToken"] = json!(end.to_string());
    }
    Ok(list)
}
