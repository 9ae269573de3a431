//! The tools of each agent from all sources, and the hosts that call them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rowmill_cards::{AgentCard, LifecycleHook as CardHook};
use rowmill_core::limits::CallParallelism;
use rowmill_core::ports::{HookRunner, ToolHost};
use rowmill_core::redact::Redactor;
use rowmill_tools::{
    AgentHook, Entrypoint, HostToolNames, McpHost, McpSettings, ParallelLimits, ProcessMoment,
    PythonFunctionTool, PythonLifecycleHook, PythonSettings, PythonToolHost, ShellHost, SkillHost,
};
use rowmill_types::settings::PYTHON_PROCESSES;
use rowmill_types::{Problem, ToolSpec, group_digits};

use super::load::LoadedCards;
use super::servers::{AgentServers, check_servers_defined, resolve_servers, server_secrets};
use crate::control::RunNotice;
use crate::endpoints::ModelFactory;
use crate::environment::RunEnvironment;
use crate::work_spec::WorkSpec;

/// The maximum number of Python processes per core, with a lower and an upper bound, unless the user
/// sets a number. Functions mostly wait, so there may be many, but each process takes memory.
const PROCESSES_PER_CORE: usize = 8;
const FEWEST_PROCESSES: usize = 16;
const MOST_PROCESSES: usize = 64;

/// A tool that one agent is offered.
pub(super) struct ToolOffer {
    pub(super) spec: ToolSpec,
    pub(super) host_name: String,
    pub(super) idempotent: bool,
    pub(super) timeout: Duration,
}

/// Everything that agents can call, except each other.
pub(super) struct ToolOffers {
    /// By agent.
    pub(super) tools: Vec<Vec<ToolOffer>>,
    /// What the instruction of each agent says about its servers and skills.
    pub(super) server_texts: Vec<String>,
    pub(super) skill_texts: Vec<Option<String>>,
    pub(super) hosts: Vec<(Vec<HostToolNames>, Arc<dyn ToolHost>)>,
    pub(super) hooks: Option<Arc<dyn HookRunner>>,
    /// How many calls may run at once.
    pub(super) limits: ParallelLimits,
}

/// What is needed to create the tools of agents.
pub(super) struct ToolContext<'a> {
    pub(super) spec: &'a WorkSpec,
    pub(super) maker: &'a ModelFactory<'a>,
    pub(super) loaded: &'a LoadedCards,
    /// The model strings of the agents.
    pub(super) models: &'a [String],
    /// Learns secrets, which must not appear in any file.
    pub(super) redactor: &'a Redactor,
}

/// Starts what the agents need. If something fails, what was started before it is ended by being
/// dropped.
pub(super) async fn start_tool_hosts(
    with: ToolContext<'_>,
    members: &[&AgentCard],
) -> Result<ToolOffers, Problem> {
    let spec = with.spec;
    let mut offers = ToolOffers {
        tools: members.iter().map(|_| Vec::new()).collect(),
        server_texts: vec![String::new(); members.len()],
        skill_texts: vec![None; members.len()],
        hosts: Vec::new(),
        hooks: None,
        limits: ParallelLimits::default(),
    };
    // Checks that need no process come first.
    check_servers_defined(spec, members)?;
    for (index, card) in members.iter().enumerate() {
        offers.add_shell(&with, index, card)?;
        offers.add_skills(spec, index, card)?;
    }
    offers.add_functions(&with, members).await?;
    offers.add_servers(&with, members).await?;
    Ok(offers)
}

impl ToolOffers {
    fn add(&mut self, member: usize, offer: ToolOffer) {
        if let Some(tools) = self.tools.get_mut(member) {
            tools.push(offer);
        }
    }

    fn add_shell(&mut self, with: &ToolContext<'_>, member: usize, card: &AgentCard) -> Result<(), Problem> {
        let spec = with.spec;
        let wanted = card.shell || (spec.agents.shell && member == 0);
        if !wanted {
            return Ok(());
        }
        let folder = card.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        let shell = ShellHost::new(folder, spec.agents.tool_timeout, &with.maker.environment().lookup())?;
        let (spec_of_tool, host_name) = (shell.spec(), format!("{}/execute", card.name));
        let tool = spec_of_tool.name.clone();
        self.hosts.push((vec![HostToolNames::As { name: host_name.clone(), tool }], Arc::new(shell)));
        let timeout = spec.agents.tool_timeout;
        self.add(member, ToolOffer { spec: spec_of_tool, host_name, idempotent: false, timeout });
        Ok(())
    }

    fn add_skills(&mut self, spec: &WorkSpec, member: usize, card: &AgentCard) -> Result<(), Problem> {
        if card.skills.is_empty() {
            return Ok(());
        }
        let skills = SkillHost::read(&card.skills)?;
        let timeout = spec.agents.tool_timeout;
        let (spec, host_name) = (skills.spec(), format!("{}/read_skill", card.name));
        if let Some(text) = self.skill_texts.get_mut(member) {
            *text = Some(skills.instructions());
        }
        let tool = spec.name.clone();
        self.hosts.push((vec![HostToolNames::As { name: host_name.clone(), tool }], Arc::new(skills)));
        self.add(member, ToolOffer { spec, host_name, idempotent: true, timeout });
        Ok(())
    }

    async fn add_functions(&mut self, with: &ToolContext<'_>, members: &[&AgentCard]) -> Result<(), Problem> {
        let spec = with.spec;
        let environment = with.maker.environment();
        let mut settings = functions(spec, members, environment);
        if settings.is_empty() {
            return Ok(());
        }
        settings.secrets = environment.secrets();
        let is_kept_back =
            |name: &String| environment.variable(name).is_some() && !spec.agents.python_env.contains(name);
        let keys = with.maker.key_variables(with.models.iter().chain(&spec.fallback_models));
        settings.without = keys.into_iter().filter(is_kept_back).collect();
        python_notices(spec, &settings).into_iter().for_each(|notice| with.maker.notify_once(notice));
        let python = Arc::new(PythonToolHost::start(settings).await?);
        with.redactor.add_secrets(python.secrets())?;
        let mut names = Vec::new();
        for (member, card) in members.iter().enumerate() {
            for function in &card.function_tools {
                let host_name = entrypoint(card, &function.entrypoint).to_string();
                let known = python.tools().iter().find(|tool| tool.entrypoint.to_string() == host_name);
                let Some(tool) = known else { continue };
                let timeout = spec.agents.tool_timeout;
                names.push(HostToolNames::Exact(host_name.clone()));
                let idempotent = function.idempotent;
                self.add(member, ToolOffer { spec: tool.spec.clone(), host_name, idempotent, timeout });
            }
        }
        let has_hooks = members.iter().any(|card| !card.tool_hooks.is_empty());
        self.hooks = has_hooks.then(|| Arc::clone(&python) as Arc<dyn HookRunner>);
        self.hosts.push((names, python));
        Ok(())
    }

    async fn add_servers(&mut self, with: &ToolContext<'_>, members: &[&AgentCard]) -> Result<(), Problem> {
        let spec = with.spec;
        let AgentServers { all, views_by_agent: seen } =
            resolve_servers(spec, members, &with.loaded.from_variables, with.maker.environment())?;
        if all.is_empty() {
            return Ok(());
        }
        let timeouts: Vec<(String, Duration)> =
            all.iter().map(|server| (server.name.clone(), server.timeout)).collect();
        with.redactor.add_secrets(&server_secrets(&all))?;
        let settings = McpSettings::new(places(spec), &with.maker.environment().lookup())
            .with_redactor(with.redactor.clone())
            .with_person(with.maker.sign_in());
        let mcp = McpHost::start(all, settings).await?;
        mcp.notices().into_iter().for_each(|text| with.maker.notify_once(RunNotice::info(text)));
        mcp.parallel_call_limits().for_each(|(tools, most)| self.limits.add(tools, most));
        let mut names = Vec::new();
        for (member, views) in seen.iter().enumerate() {
            for tool in views.iter().flat_map(|(server, view)| mcp.offered_tools(server, view)) {
                let timeout = timeouts.iter().find(|(name, _)| *name == tool.server);
                let timeout = timeout.map_or(spec.agents.tool_timeout, |(_, timeout)| *timeout);
                names.push(HostToolNames::Exact(tool.host_name.clone()));
                let offer = ToolOffer {
                    spec: tool.spec.clone(),
                    host_name: tool.host_name.clone(),
                    idempotent: tool.idempotent,
                    timeout,
                };
                self.add(member, offer);
            }
            let texts: Vec<&str> = views.iter().filter_map(|(name, _)| mcp.instructions(name)).collect();
            if let Some(text) = self.server_texts.get_mut(member) {
                *text = texts.join("\n\n");
            }
        }
        self.hosts.push((names, Arc::new(mcp)));
        Ok(())
    }
}

/// How many rows there are at once, for hosts that keep state for each.
fn places(spec: &WorkSpec) -> usize {
    spec.parallel.max_calls().min(4096)
}

fn functions(spec: &WorkSpec, members: &[&AgentCard], environment: &RunEnvironment) -> PythonSettings {
    let mut settings = PythonSettings::new(interpreter(environment), PathBuf::from("."));
    settings.variables = Some(environment.variables());
    settings.processes = processes(spec);
    settings.timeout = Some(spec.agents.tool_timeout);
    for card in members {
        for tool in &card.function_tools {
            let function = PythonFunctionTool {
                entrypoint: entrypoint(card, &tool.entrypoint),
                idempotent: tool.idempotent,
                code_argument: tool.code.as_ref().map(|code| code.argument.clone()),
            };
            if !settings.functions.iter().any(|known| known.entrypoint == function.entrypoint) {
                settings.functions.push(function);
            }
        }
        settings.hooks.extend(card.tool_hooks.iter().map(|(kind, function)| AgentHook {
            agent: card.name.clone(),
            kind: *kind,
            entrypoint: entrypoint(card, function),
        }));
        settings.lifecycle.extend(card.lifecycle_hooks.iter().map(|(moment, function)| {
            PythonLifecycleHook {
                agent: card.name.clone(),
                moment: match moment {
                    CardHook::OnStart => ProcessMoment::Start,
                    CardHook::OnShutdown => ProcessMoment::Shutdown,
                },
                entrypoint: entrypoint(card, function),
            }
        }));
    }
    settings
}

/// How many Python processes there may be at once; more processes than rows would be idle.
fn processes(spec: &WorkSpec) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let usual = (cores * PROCESSES_PER_CORE).clamp(FEWEST_PROCESSES, MOST_PROCESSES);
    spec.agents.python_processes.unwrap_or(usual).min(spec.parallel.max_calls()).max(1)
}

/// Notices about how functions are run.
fn python_notices(spec: &WorkSpec, settings: &PythonSettings) -> Vec<RunNotice> {
    let mut notices = Vec::new();
    let most = settings.processes;
    if let CallParallelism::AtMost(rows) = spec.parallel
        && rows > most
        && spec.agents.python_processes.is_none()
    {
        let rows = group_digits(rows as u64);
        notices.push(RunNotice::info(format!(
            "Python functions run in at most {most} processes, so only {most} of {rows} rows can use them at \
             once; change this with {PYTHON_PROCESSES}"
        )));
    }
    if !settings.without.is_empty() {
        notices.push(RunNotice::info(format!(
            "Python functions do not get `{}`; list the variables they need under `python_env` in \
             `rowmill.toml`",
            settings.without.join("`, `")
        )));
    }
    notices
}

fn entrypoint(card: &AgentCard, function: &rowmill_cards::PythonFunctionReference) -> Entrypoint {
    let file = std::path::absolute(&function.file).unwrap_or_else(|_| function.file.clone());
    Entrypoint { file, function: function.function.clone(), named_by: card.source.clone() }
}

fn interpreter(environment: &RunEnvironment) -> PathBuf {
    environment.variable("ROWMILL_PYTHON").map_or_else(|| Path::new("python3").to_owned(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_processes_are_bounded_apart_from_the_rows_in_flight() {
        let with = |parallel, python_processes| {
            let mut spec = WorkSpec { parallel, ..WorkSpec::default() };
            spec.agents.python_processes = python_processes;
            processes(&spec)
        };
        let usual = with(CallParallelism::AtMost(10_000), None);
        assert!((FEWEST_PROCESSES..=MOST_PROCESSES).contains(&usual), "{usual}");
        assert_eq!(with(CallParallelism::AtMost(3), None), 3, "more than rows would be idle");
        assert_eq!(with(CallParallelism::AtMost(10_000), Some(200)), 200);
        assert_eq!(with(CallParallelism::AtMost(10_000), Some(0)), 1);
    }
}
