//! Where tool calls go: to the tool, to recorded answers, to the result, or nowhere.

use std::sync::Arc;

use rowmill_cards::{AgentCard, CardToolCallAction, ToolPolicy, ToolResultMode};
use rowmill_core::agent::{AgentGraphTool, ToolCallAction};
use rowmill_core::fingerprint::text_digest;
use rowmill_core::validate::ResultSchema;
use rowmill_tools::{HostToolNames, NameFilter, StubHost, StubTool};
use rowmill_types::settings::{DENY, PASSTHROUGH, STUB};
use rowmill_types::{Problem, ProblemCode};
use serde_json::json;

use super::tool_offers::{ToolOffer, ToolOffers};
use crate::agent_options::AgentOptions;

/// The flags about tools.
pub(super) struct ToolRoutes {
    deny: NameFilter,
    passthrough: NameFilter,
    /// Recorded answers, until a host has them.
    stubs: Vec<StubTool>,
    stubbed: Vec<String>,
}

/// The name under which a host knows recorded answers, as opposed to the tool itself.
fn stub_name(tool: &str) -> String {
    format!("stub/{tool}")
}

impl ToolRoutes {
    pub(super) fn from_options(flags: &AgentOptions) -> Result<Self, Problem> {
        let mut stubs = Vec::new();
        for entry in &flags.stubs {
            let Some((tool, source)) = entry.split_once('=').filter(|(tool, _)| !tool.is_empty()) else {
                return Err(Problem::new(
                    ProblemCode::Usage,
                    format!("{stub} names no answers", stub = STUB.with_value(entry)),
                )
                .hint(format!(
                    "write it as {stub} or {or_text}",
                    stub = STUB.with_value("tool=answers.jsonl"),
                    or_text = STUB.with_value("tool=text:…")
                )));
            };
            stubs.push(StubTool::read(tool, source)?);
        }
        let filter = |names: &[String]| NameFilter::Only(names.to_vec());
        let stubbed = stubs.iter().map(|stub: &StubTool| stub.name().to_owned()).collect();
        let (deny, passthrough) = (filter(&flags.deny), filter(&flags.passthrough));
        Ok(Self { deny, passthrough, stubs, stubbed })
    }

    /// Adds the tools that exist only as recorded answers to the worker.
    pub(super) fn add_stubs(mut self, offers: &mut ToolOffers) -> Self {
        let Some(worker) = offers.tools.first() else { return self };
        let unknown = self
            .stubs
            .iter()
            .filter(|stub| !offers.tools.iter().flatten().any(|offer| offer.spec.name == stub.name()));
        let known = worker.first().map_or(std::time::Duration::from_secs(60), |offer| offer.timeout);
        let made: Vec<ToolOffer> = unknown
            .map(|stub| ToolOffer {
                spec: stub.permissive_spec(),
                host_name: stub_name(stub.name()),
                idempotent: true,
                timeout: known,
            })
            .collect();
        if let Some(worker) = offers.tools.first_mut() {
            worker.extend(made);
        }
        let names = self
            .stubs
            .iter()
            .map(|stub| HostToolNames::As { name: stub_name(stub.name()), tool: stub.name().to_owned() });
        let names: Vec<HostToolNames> = names.collect();
        if !names.is_empty() {
            offers.hosts.push((names, Arc::new(StubHost::new(std::mem::take(&mut self.stubs)))));
        }
        self
    }

    /// Rejects names that no tool has: a rule for such a name would have no effect, although it may
    /// have been meant to forbid something.
    pub(super) fn check(
        &self,
        flags: &AgentOptions,
        members: &[&AgentCard],
        offers: &ToolOffers,
    ) -> Result<(), Problem> {
        let names =
            |tools: &[ToolOffer]| tools.iter().map(|offer| offer.spec.name.clone()).collect::<Vec<_>>();
        let all: Vec<String> = offers.tools.iter().flat_map(|tools| names(tools)).collect();
        for (setting, patterns) in [(DENY, &flags.deny), (PASSTHROUGH, &flags.passthrough)] {
            for pattern in patterns {
                let filter = NameFilter::Only(vec![pattern.clone()]);
                if !all.iter().any(|name| filter.allows(name)) {
                    let message = format!(
                        "{given} names a tool that no agent has",
                        given = setting.with_value(pattern)
                    );
                    return Err(
                        Problem::new(ProblemCode::Usage, message).hint(listed("the agents have", &all))
                    );
                }
            }
        }
        for (card, tools) in members.iter().zip(&offers.tools) {
            let own = names(tools);
            if let Some((unknown, _)) = card.tool_policy.iter().find(|(tool, _)| !own.contains(tool)) {
                let message = format!("`tool_policy` names a tool that the agent does not have: `{unknown}`");
                let problem = card.problem_at(("tool_policy", unknown), message);
                return Err(problem.hint(listed("the agent has", &own)));
            }
        }
        Ok(())
    }

    /// The maximum number of parallel calls of a tool, if the card sets it; recorded answers have no
    /// limit.
    pub(super) fn max_parallel(&self, card: &AgentCard, tool: &str) -> Option<usize> {
        let policy = card.tool_policy.iter().find(|(name, _)| name == tool)?.1;
        let most = policy.max_parallel.filter(|_| !self.stubbed.iter().any(|stub| stub == tool))?;
        usize::try_from(most.get()).ok()
    }

    /// A tool of an agent with the settings of the card and the flags. Flags win.
    pub(super) fn make_tool(&self, card: &AgentCard, offer: ToolOffer) -> AgentGraphTool {
        let name = offer.spec.name.clone();
        let policy = card.tool_policy.iter().find(|(tool, _)| *tool == name).map(|(_, policy)| *policy);
        let ToolPolicy { route, idempotent, timeout, .. } = policy.unwrap_or_default();
        let all_pass = card.request.tool_result_mode == ToolResultMode::Passthrough;
        let route = match route {
            _ if self.deny.allows(&name) => ToolCallAction::Deny,
            _ if self.passthrough.allows(&name) => ToolCallAction::Passthrough,
            CardToolCallAction::Deny => ToolCallAction::Deny,
            CardToolCallAction::Passthrough => ToolCallAction::Passthrough,
            CardToolCallAction::Call if all_pass && policy.is_none() => ToolCallAction::Passthrough,
            CardToolCallAction::Call => ToolCallAction::Call,
        };
        let is_stub = self.stubbed.contains(&name);
        AgentGraphTool {
            arguments: ResultSchema::parse(&offer.spec.schema.to_string(), &name).ok(),
            host_name: if is_stub { stub_name(&name) } else { offer.host_name },
            route,
            idempotent: is_stub || idempotent.unwrap_or(offer.idempotent),
            timeout: timeout.unwrap_or(offer.timeout),
            spec: offer.spec,
        }
    }
}

/// The available tools, for a hint.
fn listed(who: &str, names: &[String]) -> String {
    match names {
        [] => format!("{who} no tools"),
        names => format!("{who} these tools: `{}`", names.join("`, `")),
    }
}

/// The digest of agents including their tool routes: answers based on recorded results or denied tools
/// differ from those of the agents alone.
pub(crate) fn digest_with_routes(agents: &str, flags: &AgentOptions) -> String {
    let AgentOptions { passthrough, deny, shell, tool_result_limit, .. } = flags;
    let recorded = recorded_answers(flags);
    text_digest(&json!([agents, recorded, passthrough, deny, shell, tool_result_limit]).to_string())
}

/// The same contents as readable lines.
pub(crate) fn routes_text(flags: &AgentOptions) -> String {
    let AgentOptions { passthrough, deny, shell, tool_result_limit, .. } = flags;
    let mut text = format!(
        "passthrough: {}\ndeny: {}\nshell: {shell}\ntool result limit: {tool_result_limit}\n",
        passthrough.join(", "),
        deny.join(", ")
    );
    for (tool, answers) in recorded_answers(flags) {
        text.push_str(&format!("stub {tool}:\n{answers}\n"));
    }
    text
}

/// The tools that are not called, with their recorded answers.
fn recorded_answers(flags: &AgentOptions) -> Vec<(&str, String)> {
    // The content of a file counts, not its name; `text:…` is the content itself. What cannot be read
    // is rejected when the answers are loaded, with its position.
    let split = flags.stubs.iter().map(|stub| stub.split_once('=').unwrap_or((stub, "")));
    split
        .map(|(tool, source)| (tool, std::fs::read_to_string(source).unwrap_or_else(|_| source.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_calls_go_counts_by_text_that_no_change_of_the_code_changes() {
        let flags = AgentOptions {
            stubs: vec!["find=text:found \"it\"".into()],
            passthrough: vec!["a".into()],
            deny: vec!["b".into()],
            shell: true,
            tool_result_limit: 7,
            ..AgentOptions::default()
        };
        let text = r#"["cards",[["find","text:found \"it\""]],["a"],["b"],true,7]"#;
        assert_eq!(digest_with_routes("cards", &flags), text_digest(text));
    }
}
