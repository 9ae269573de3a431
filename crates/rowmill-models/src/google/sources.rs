//! Tools that ran at the provider: what an answer is based on, and how often they were used.

use std::borrow::Cow;

use rowmill_types::Hosted;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::hosted::Gathered;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Grounding<'a> {
    #[serde(default, borrow)]
    web_search_queries: Option<Vec<Cow<'a, str>>>,
    #[serde(default, borrow)]
    grounding_chunks: Option<Vec<Chunk<'a>>>,
    #[serde(default, borrow)]
    grounding_supports: Option<Vec<Support<'a>>>,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    web: Option<Site<'a>>,
}

#[derive(Deserialize)]
struct Site<'a> {
    #[serde(default, borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    title: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Support<'a> {
    #[serde(default, borrow)]
    segment: Option<Segment<'a>>,
    #[serde(default)]
    grounding_chunk_indices: Option<Vec<usize>>,
}

#[derive(Deserialize)]
struct Segment<'a> {
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pages<'a> {
    #[serde(default, borrow)]
    url_metadata: Option<Vec<Page<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(default, borrow)]
    retrieved_url: Option<Cow<'a, str>>,
}

/// Collects the sources that searches found, with the passages of the answer based on them, and the pages
/// that were read.
pub(super) fn gather(grounding: Option<&RawValue>, pages: Option<&RawValue>) -> Option<Box<Hosted>> {
    let mut gathered = Gathered::default();
    let read = grounding.and_then(|raw| serde_json::from_str::<Grounding<'_>>(raw.get()).ok());
    let grounding = read.unwrap_or_default();
    gathered.used("web_search", grounding.web_search_queries.map_or(0, |queries| queries.len() as u64));
    let sites: Vec<Option<Site<'_>>> =
        grounding.grounding_chunks.unwrap_or_default().into_iter().map(|chunk| chunk.web).collect();
    for support in grounding.grounding_supports.unwrap_or_default() {
        let passage = support.segment.and_then(|segment| segment.text);
        for index in support.grounding_chunk_indices.unwrap_or_default() {
            if let Some(Some(site)) = sites.get(index) {
                gathered.cite(site.uri.as_deref(), site.title.as_deref(), passage.as_deref());
            }
        }
    }
    for site in sites.into_iter().flatten() {
        if let Some(url) = &site.uri {
            gathered.source(url, site.title.as_deref());
        }
    }
    let read = pages.and_then(|raw| serde_json::from_str::<Pages<'_>>(raw.get()).ok());
    let pages = read.unwrap_or_default().url_metadata.unwrap_or_default();
    gathered.used("web_fetch", pages.len() as u64);
    for url in pages.iter().filter_map(|page| page.retrieved_url.as_deref()) {
        gathered.source(url, None);
    }
    gathered.done()
}
