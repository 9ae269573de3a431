//! Tools that ran at the provider: what they cited, and how often they were used.

use std::borrow::Cow;

use rowmill_types::HostedToolUse;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::AnswerBlock;
use crate::hosted_use::{HostedUseCollector, collect_uses};
use crate::tool_calls::AnswerTerms;

/// Collects the sources of a response.
#[derive(Debug, Default)]
pub(super) struct CitationCollector {
    gathered: HostedUseCollector,
    /// The titles and addresses of the pages that were read.
    pages: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct CitationFields<'a> {
    #[serde(default, borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    title: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    document_title: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    cited_text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct PageFields<'a> {
    #[serde(default, borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    content: Option<DocumentFields<'a>>,
}

#[derive(Deserialize)]
struct DocumentFields<'a> {
    #[serde(default, borrow)]
    title: Option<Cow<'a, str>>,
}

impl CitationCollector {
    /// Processes a block, if tools run at the provider.
    pub(super) fn take(&mut self, block: &AnswerBlock<'_>, terms: &AnswerTerms) {
        if !terms.hosts {
            return;
        }
        match block.kind.as_deref() {
            Some("text") => {
                let citations = block.citations.map(RawValue::get).unwrap_or("null");
                let all = serde_json::from_str::<Option<Vec<CitationFields<'_>>>>(citations).ok().flatten();
                all.unwrap_or_default().iter().for_each(|cited| self.cite(cited));
            }
            Some("web_fetch_tool_result") => {
                let content =
                    block.content.and_then(|raw| serde_json::from_str::<PageFields<'_>>(raw.get()).ok());
                if let Some(PageFields { url: Some(url), content }) = content {
                    let title = content.and_then(|document| document.title).unwrap_or_default();
                    self.pages.push((title.into_owned(), url.into_owned()));
                }
            }
            _ => {}
        }
    }

    /// Adds a citation. A passage of a search result contains its address; a passage of a page that was read
    /// contains only the page's title, which is mapped to the address.
    fn cite(&mut self, cited: &CitationFields<'_>) {
        let title = cited.title.as_deref().or(cited.document_title.as_deref());
        let url = cited.url.as_deref().or_else(|| match self.pages.as_slice() {
            [(_, url)] => Some(url.as_str()),
            pages => {
                let page = pages.iter().find(|(name, _)| title == Some(name.as_str()));
                page.map(|(_, url)| url.as_str())
            }
        });
        self.gathered.add_citation(url, title, cited.cited_text.as_deref());
    }

    /// Returns everything, with the tool uses that the usage reports.
    pub(super) fn into_hosted_use(
        mut self,
        usage: Option<&RawValue>,
        terms: &AnswerTerms,
    ) -> Option<Box<HostedToolUse>> {
        if terms.hosts {
            collect_uses(&mut self.gathered, usage);
        }
        self.gathered.into_hosted_use()
    }
}
