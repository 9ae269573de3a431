//! Maps requests to answers.

use std::sync::Arc;

use ring::digest::SHA256;
use rowmill_simulator::RecordedRequest;
use serde_json::{Map, Value, json};

use super::content::{FileKind, HubState, PlainPage, Repository, StoredFile, digest};
use super::hub_answer::{HubAnswer, file_answer, header};
use super::server::{HubAddresses, HubPort, HubRequest};

/// Answers a request as the hub, or as the host of large files.
pub(super) fn answer_hub_request(state: &HubState, hosts: HubAddresses, request: &HubRequest) -> HubAnswer {
    let HubRequest { host, seen: request } = request;
    let path = request.path.split('?').next().unwrap_or_default();
    if let Some(page) = state.pages.get(path).filter(|_| *host == HubPort::Hub) {
        return plain(page, request);
    }
    let parts: Vec<String> = path.split('/').skip(1).map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match (host, parts.as_slice()) {
        (HubPort::Store, [name]) => large(state, request, name),
        (HubPort::Hub, ["api", "resolve-cache", rest @ ..]) => small(state, request, rest),
        (HubPort::Hub, ["api", kind, rest @ ..]) => question(state, hosts, request, kind, rest),
        (HubPort::Hub, rest) => resolve(state, hosts, request, rest),
        _ => refusal(404, "", "no such path"),
    }
}

fn plain(page: &PlainPage, request: &RecordedRequest) -> HubAnswer {
    if page.status > 0 {
        return HubAnswer::new(page.status, page.headers.clone(), page.body.clone());
    }
    let mut request = request.clone();
    if !page.ranges {
        request.headers.retain(|(name, _)| name != "range");
    }
    file_answer(&request, page.headers.clone(), &page.body)
}

/// A repository, if the client may see it.
fn allowed<'s>(
    state: &'s HubState,
    request: &RecordedRequest,
    name: &str,
) -> Result<&'s Repository, HubAnswer> {
    let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let found = state.repositories.get(name);
    let found = found.filter(|found| found.token.is_none() || found.token.as_deref() == token);
    match found {
        // Without a token the hub does not reveal whether a repository exists.
        None if token.is_none() => Err(refusal(401, "RepoNotFound", "Invalid username or password.")),
        None => Err(refusal(404, "RepoNotFound", "Repository not found")),
        Some(found) if found.is_gated => {
            let status = if token.is_some() { 403 } else { 401 };
            Err(refusal(status, "GatedRepo", "Access to this dataset is restricted."))
        }
        Some(found) => Ok(found),
    }
}

/// `[datasets/]owner/name/resolve/revision/path…`
fn resolve(state: &HubState, hosts: HubAddresses, request: &RecordedRequest, parts: &[&str]) -> HubAnswer {
    let Some(at) = parts.iter().position(|part| *part == "resolve") else {
        return refusal(404, "", "no such path");
    };
    let (name, rest) = parts.split_at(at);
    let [_, revision, path @ ..] = rest else { return refusal(404, "", "no such path") };
    let (name, path) = (name.join("/"), path.join("/"));
    let repository = match allowed(state, request, &name) {
        Ok(repository) => repository,
        Err(refusal) => return refusal,
    };
    let Some((commit, tree)) = repository.at(revision) else {
        return refusal(404, "RevisionNotFound", "Invalid rev id");
    };
    let Some(found) = tree.get(&path) else { return refusal(404, "EntryNotFound", "Entry not found") };
    let location = match found.kind {
        FileKind::Small => format!("/api/resolve-cache/{name}/{commit}/{path}"),
        FileKind::Large => format!("http://{}/{}?signature=secret", hosts.store, found.tag()),
    };
    let headers = vec![
        header("location", location),
        header("x-repo-commit", commit),
        header("x-linked-etag", format!("\"{}\"", found.tag())),
        header("x-linked-size", found.bytes.len().to_string()),
    ];
    HubAnswer::new(302, headers, Vec::new())
}

/// `[datasets/]owner/name/commit/path…`, which small files are redirected to.
fn small(state: &HubState, request: &RecordedRequest, parts: &[&str]) -> HubAnswer {
    let found = state.repositories.iter().find_map(|(name, repository)| {
        let length = name.split('/').count();
        let (own, rest) = parts.split_at_checked(length)?;
        let [commit, path @ ..] = rest else { return None };
        let (commit, tree) = repository.at(commit).filter(|_| own.join("/") == *name)?;
        Some((commit, Arc::clone(tree.get(&path.join("/"))?)))
    });
    let Some((commit, found)) = found else { return refusal(404, "EntryNotFound", "Entry not found") };
    let headers = vec![header("etag", format!("\"{}\"", found.tag())), header("x-repo-commit", commit)];
    file_answer(request, headers, &found.bytes)
}

/// A large file, by its digest. Like the true host, it refuses credentials of others.
fn large(state: &HubState, request: &RecordedRequest, name: &str) -> HubAnswer {
    if request.header("authorization").is_some() {
        return refusal(400, "", "Only one auth mechanism allowed");
    }
    let is_named = |file: &&Arc<StoredFile>| digest(&SHA256, &[&file.bytes]) == name;
    let found = state.repositories.values().find_map(|repository| {
        let committed = repository.commits.iter().flat_map(|(_, tree)| tree.values());
        let converted = repository.converted.iter().flat_map(|(_, _, files)| files);
        committed.chain(converted).find(is_named)
    });
    let Some(found) = found else { return refusal(404, "", "no such file") };
    let tag: String = name.chars().take(8).collect();
    file_answer(request, vec![header("etag", format!("\"store-{tag}\""))], &found.bytes)
}

/// `api/datasets/owner/name/…`
fn question(
    state: &HubState,
    hosts: HubAddresses,
    request: &RecordedRequest,
    kind: &str,
    parts: &[&str],
) -> HubAnswer {
    let is_word = |part: &&str| matches!(*part, "revision" | "tree" | "parquet");
    let Some(at) = parts.iter().position(is_word) else { return refusal(404, "", "no such path") };
    let (name, rest) = parts.split_at(at);
    let name = if kind == "models" { name.join("/") } else { format!("{kind}/{}", name.join("/")) };
    let repository = match allowed(state, request, &name) {
        Ok(repository) => repository,
        Err(refusal) => return refusal,
    };
    match rest {
        ["revision", revision] => match repository.at(revision) {
            Some((commit, _)) => document(&json!({"id": name, "sha": commit}), Vec::new()),
            None => refusal(404, "RevisionNotFound", "Invalid rev id"),
        },
        ["tree", revision] => tree(state, hosts, request, repository, revision),
        ["parquet"] => converted(repository, hosts, &name),
        ["parquet", config, split, number] => {
            let number: usize = number.trim_end_matches(".parquet").parse().unwrap_or_default();
            let location =
                format!("/{name}/resolve/refs%2Fconvert%2Fparquet/{config}/{split}/{number:04}.parquet");
            HubAnswer::new(302, vec![header("location", location)], Vec::new())
        }
        _ => refusal(404, "", "no such path"),
    }
}

/// A page of the list of files.
fn tree(
    state: &HubState,
    hosts: HubAddresses,
    request: &RecordedRequest,
    repository: &Repository,
    revision: &str,
) -> HubAnswer {
    let Some((_, tree)) = repository.at(revision) else {
        return refusal(404, "RevisionNotFound", "Invalid rev id");
    };
    let start: usize =
        request.path.split("cursor=").nth(1).and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut entries: Vec<Value> = tree.iter().map(|(path, file)| entry(path, file)).collect();
    entries.insert(0, json!({"type": "directory", "oid": "0", "size": 0, "path": "data.csv"}));
    let end = start + state.page_length;
    let next = (end < entries.len()).then(|| {
        let path = request.path.split('?').next().unwrap_or_default();
        header("link", format!("<http://{}{path}?recursive=true&cursor={end}>; rel=\"next\"", hosts.hub))
    });
    let page: Vec<Value> = entries.into_iter().skip(start).take(state.page_length).collect();
    document(&Value::Array(page), next.into_iter().collect())
}

fn entry(path: &str, file: &StoredFile) -> Value {
    match file.kind {
        FileKind::Small => json!({"type": "file", "oid": file.tag(), "size": file.bytes.len(), "path": path}),
        FileKind::Large => {
            let large = json!({"oid": file.tag(), "size": file.bytes.len(), "pointerSize": 134});
            json!({"type": "file", "oid": "0", "size": file.bytes.len(), "path": path, "lfs": large})
        }
    }
}

fn converted(repository: &Repository, hosts: HubAddresses, name: &str) -> HubAnswer {
    let mut configs = Map::new();
    for (config, split, files) in &repository.converted {
        let urls: Vec<String> = (0..files.len())
            .map(|at| format!("http://{}/api/{name}/parquet/{config}/{split}/{at}.parquet", hosts.hub))
            .collect();
        let splits = configs.entry(config.clone()).or_insert_with(|| json!({}));
        if let Some(splits) = splits.as_object_mut() {
            splits.insert(split.clone(), json!(urls));
        }
    }
    if configs.is_empty() {
        return refusal(404, "", "The dataset has no converted files.");
    }
    document(&Value::Object(configs), Vec::new())
}

fn document(value: &Value, mut headers: Vec<(String, String)>) -> HubAnswer {
    headers.push(header("content-type", "application/json"));
    HubAnswer::new(200, headers, value.to_string().into_bytes())
}

fn refusal(status: u16, code: &str, message: &str) -> HubAnswer {
    let mut headers = vec![header("content-type", "application/json")];
    if !code.is_empty() {
        headers.push(header("x-error-code", code));
    }
    headers.push(header("x-error-message", message));
    HubAnswer::new(status, headers, json!({"error": message}).to_string().into_bytes())
}

/// A part of a path, with percent-encoding decoded.
fn decoded(part: &str) -> String {
    let mut text = Vec::new();
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits: String = rest.by_ref().take(2).map(char::from).collect();
            text.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
        } else {
            text.push(byte);
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}
