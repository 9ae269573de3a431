//! Tools that ran at the provider: what an answer is based on, and how often they were used.

use std::borrow::Cow;

use rowmill_types::HostedToolUse;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::hosted_use::HostedUseCollector;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroundingMetadata<'a> {
    #[serde(default, borrow)]
    web_search_queries: Option<Vec<Cow<'a, str>>>,
    #[serde(default, borrow)]
    grounding_chunks: Option<Vec<GroundingChunk<'a>>>,
    #[serde(default, borrow)]
    grounding_supports: Option<Vec<GroundingSupport<'a>>>,
}

#[derive(Deserialize)]
struct GroundingChunk<'a> {
    #[serde(default, borrow)]
    web: Option<GroundingSite<'a>>,
}

#[derive(Deserialize)]
struct GroundingSite<'a> {
    #[serde(default, borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    title: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroundingSupport<'a> {
    #[serde(default, borrow)]
    segment: Option<GroundingSegment<'a>>,
    #[serde(default)]
    grounding_chunk_indices: Option<Vec<usize>>,
}

#[derive(Deserialize)]
struct GroundingSegment<'a> {
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FetchedPages<'a> {
    #[serde(default, borrow)]
    url_metadata: Option<Vec<FetchedPage<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FetchedPage<'a> {
    #[serde(default, borrow)]
    retrieved_url: Option<Cow<'a, str>>,
}

/// Collects the sources that searches found, with the passages of the answer based on them, and the pages
/// that were read.
pub(super) fn collect_hosted_use(
    grounding: Option<&RawValue>,
    pages: Option<&RawValue>,
) -> Option<Box<HostedToolUse>> {
    let mut gathered = HostedUseCollector::default();
    let read = grounding.and_then(|raw| serde_json::from_str::<GroundingMetadata<'_>>(raw.get()).ok());
    let grounding = read.unwrap_or_default();
    gathered.add_use("web_search", grounding.web_search_queries.map_or(0, |queries| queries.len() as u64));
    let sites: Vec<Option<GroundingSite<'_>>> =
        grounding.grounding_chunks.unwrap_or_default().into_iter().map(|chunk| chunk.web).collect();
    for support in grounding.grounding_supports.unwrap_or_default() {
        let passage = support.segment.and_then(|segment| segment.text);
        for index in support.grounding_chunk_indices.unwrap_or_default() {
            if let Some(Some(site)) = sites.get(index) {
                gathered.add_citation(site.uri.as_deref(), site.title.as_deref(), passage.as_deref());
            }
        }
    }
    for site in sites.into_iter().flatten() {
        if let Some(url) = &site.uri {
            gathered.add_source(url, site.title.as_deref());
        }
    }
    let read = pages.and_then(|raw| serde_json::from_str::<FetchedPages<'_>>(raw.get()).ok());
    let pages = read.unwrap_or_default().url_metadata.unwrap_or_default();
    gathered.add_use("web_fetch", pages.len() as u64);
    for url in pages.iter().filter_map(|page| page.retrieved_url.as_deref()) {
        gathered.add_source(url, None);
    }
    gathered.into_hosted_use()
}
