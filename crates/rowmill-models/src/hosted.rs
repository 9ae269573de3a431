//! What tools that run at the provider did: citations and uses, gathered from an answer.

use std::borrow::Cow;

use rowmill_types::{Citation, Hosted};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Gathers citations and uses.
#[derive(Debug, Default)]
pub(crate) struct Gathered(Hosted);

impl Gathered {
    /// A source; the same passage is told once.
    pub(crate) fn cite(&mut self, url: Option<&str>, title: Option<&str>, text: Option<&str>) {
        let Some(url) = url.filter(|url| !url.is_empty()) else { return };
        let owned = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let citation = Citation { url: url.to_owned(), title: owned(title), text: owned(text) };
        if !self.0.citations.contains(&citation) {
            self.0.citations.push(citation);
        }
    }

    /// A source without a passage, unless a passage of it has been cited.
    pub(crate) fn source(&mut self, url: &str, title: Option<&str>) {
        if !self.0.citations.iter().any(|citation| citation.url == url) {
            self.cite(Some(url), title, None);
        }
    }

    /// So many uses of a tool.
    pub(crate) fn used(&mut self, tool: &str, times: u64) {
        if times == 0 {
            return;
        }
        match self.0.uses.iter_mut().find(|(name, _)| name == tool) {
            Some((_, count)) => *count = count.saturating_add(times),
            None => self.0.uses.push((tool.to_owned(), times)),
        }
    }

    /// What was gathered, if anything was.
    pub(crate) fn done(self) -> Option<Box<Hosted>> {
        let is_empty = self.0.citations.is_empty() && self.0.uses.is_empty();
        (!is_empty).then(|| Box::new(self.0))
    }
}

/// What OpenAI's protocols say of a source: chat completions inside an object, Responses beside it.
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

/// Gathers the sources that annotations tell; those in a form that nobody documents are left out.
pub(crate) fn annotations(gathered: &mut Gathered, raw: Option<&RawValue>) {
    let Some(raw) = raw.map(RawValue::get).filter(|raw| !matches!(*raw, "null" | "[]")) else { return };
    let Ok(all) = serde_json::from_str::<Vec<Annotation<'_>>>(raw) else { return };
    for one in all {
        let inner = one.url_citation.and_then(|raw| serde_json::from_str::<Annotation<'_>>(raw.get()).ok());
        let told = inner.as_ref().unwrap_or(&one);
        gathered.cite(told.url.as_deref(), told.title.as_deref(), told.content.as_deref());
    }
}

/// How often tools were used, as the usage of Anthropic and OpenRouter tells it.
#[derive(Deserialize)]
struct Used {
    #[serde(default)]
    server_tool_use: Option<Counts>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    web_search_requests: Option<u64>,
    #[serde(default)]
    web_fetch_requests: Option<u64>,
}

/// Gathers the uses that a usage tells.
pub(crate) fn uses(gathered: &mut Gathered, usage: Option<&RawValue>) {
    let told = usage.and_then(|raw| serde_json::from_str::<Used>(raw.get()).ok());
    if let Some(counts) = told.and_then(|used| used.server_tool_use) {
        gathered.used("web_search", counts.web_search_requests.unwrap_or(0));
        gathered.used("web_fetch", counts.web_fetch_requests.unwrap_or(0));
    }
}
