//! Tools that ran at the provider: citations and uses, collected from a response.

use std::borrow::Cow;

use rowmill_types::{Citation, HostedToolUse};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Collects citations and uses.
#[derive(Debug, Default)]
pub(crate) struct HostedUseCollector(HostedToolUse);

impl HostedUseCollector {
    /// Adds a source; the same passage is added only once.
    pub(crate) fn add_citation(&mut self, url: Option<&str>, title: Option<&str>, text: Option<&str>) {
        let Some(url) = url.filter(|url| !url.is_empty()) else { return };
        let owned = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let citation = Citation { url: url.to_owned(), title: owned(title), text: owned(text) };
        if !self.0.citations.contains(&citation) {
            self.0.citations.push(citation);
        }
    }

    /// Adds a source without a passage, unless a passage of it has been cited.
    pub(crate) fn add_source(&mut self, url: &str, title: Option<&str>) {
        if !self.0.citations.iter().any(|citation| citation.url == url) {
            self.add_citation(Some(url), title, None);
        }
    }

    /// Adds uses of a tool.
    pub(crate) fn add_use(&mut self, tool: &str, times: u64) {
        if times == 0 {
            return;
        }
        match self.0.uses.iter_mut().find(|(name, _)| name == tool) {
            Some((_, count)) => *count = count.saturating_add(times),
            None => self.0.uses.push((tool.to_owned(), times)),
        }
    }

    /// Returns what was collected, if anything.
    pub(crate) fn into_hosted_use(self) -> Option<Box<HostedToolUse>> {
        let is_empty = self.0.citations.is_empty() && self.0.uses.is_empty();
        (!is_empty).then(|| Box::new(self.0))
    }
}

/// A source in OpenAI's protocols: chat completions nest it in an object, Responses does not.
#[derive(Deserialize)]
struct Annotation<'a> {
    #[serde(default, borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    title: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    url_citation: Option<&'a RawValue>,
}

/// Collects the sources in annotations; undocumented forms are ignored.
pub(crate) fn collect_annotations(gathered: &mut HostedUseCollector, raw: Option<&RawValue>) {
    let Some(raw) = raw.map(RawValue::get).filter(|raw| !matches!(*raw, "null" | "[]")) else { return };
    let Ok(all) = serde_json::from_str::<Vec<Annotation<'_>>>(raw) else { return };
    for one in all {
        let inner = one.url_citation.and_then(|raw| serde_json::from_str::<Annotation<'_>>(raw.get()).ok());
        let reported = inner.as_ref().unwrap_or(&one);
        gathered.add_citation(
            reported.url.as_deref(),
            reported.title.as_deref(),
            reported.content.as_deref(),
        );
    }
}

/// How often tools were used, as reported in the usage of Anthropic and OpenRouter.
#[derive(Deserialize)]
struct UsageFields {
    #[serde(default)]
    server_tool_use: Option<ToolUseCounts>,
}

#[derive(Deserialize)]
struct ToolUseCounts {
    #[serde(default)]
    web_search_requests: Option<u64>,
    #[serde(default)]
    web_fetch_requests: Option<u64>,
}

/// Collects the tool uses that a usage reports.
pub(crate) fn collect_uses(gathered: &mut HostedUseCollector, usage: Option<&RawValue>) {
    let usage_fields = usage.and_then(|raw| serde_json::from_str::<UsageFields>(raw.get()).ok());
    if let Some(counts) = usage_fields.and_then(|used| used.server_tool_use) {
        gathered.add_use("web_search", counts.web_search_requests.unwrap_or(0));
        gathered.add_use("web_fetch", counts.web_fetch_requests.unwrap_or(0));
    }
}
