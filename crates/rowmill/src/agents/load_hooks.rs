//! Detects hooks that were written for fast-agent, before the first row. None of their code is run.

use std::fs;

use rowmill_cards::{AgentCard, LifecycleHook, PythonFunctionReference};
use rowmill_core::ports::HookKind;
use rowmill_types::Problem;

use super::load_paths::PathFinder;

/// Attributes that the argument of fast-agent's hooks has, and that of hooks here does not.
const ONLY_THERE: [&str; 13] = [
    "message",
    "message_history",
    "runner",
    "agent",
    "iteration",
    "is_turn_complete",
    "usage",
    "request_params",
    "agent_registry",
    "context",
    "config",
    "get_agent",
    "load_message_history",
];

/// The types of fast-agent's arguments.
const TYPES_THERE: [&str; 2] = ["HookContext", "AgentLifecycleContext"];

/// The hooks of a card that could not work here.
pub(super) fn find_hook_problems(card: &AgentCard, finder: &PathFinder<'_>) -> Vec<Problem> {
    let tools = card.tool_hooks.iter().map(|(kind, function)| ("tool_hooks", of_tools(*kind), function));
    let lifecycle = card
        .lifecycle_hooks
        .iter()
        .map(|(moment, function)| ("lifecycle_hooks", of_lifecycle(*moment), function));
    tools.chain(lifecycle).filter_map(|(field, hook, function)| {
        let used = used_of_fast_agent(function)?;
        let written = finder.path_as_written(&function.file);
        let name = format!("{written}:{}", function.function);
        let used: Vec<String> = used.iter().map(|used| format!("`{used}`")).collect();
        let message = format!(
            "the hook `{name}` is written for fast-agent: it uses {}, which is not available to hooks in \
             rowmill",
            used.join(", ")
        );
        let hint = format!(
            "in rowmill, a `{}` hook gets {}; rewrite it, or remove it from `{field}` (docs/python-tools.md, \
             Hooks of fast-agent)",
            hook.0, hook.1
        );
        Some(card.problem_at((field, &name), message).hint(hint))
    }).collect()
}

/// The name of a kind of hook, and what it receives and may do here.
fn of_tools(kind: HookKind) -> (&'static str, &'static str) {
    match kind {
        HookKind::BeforeModel => {
            ("before_llm_call", "the last message as `ctx.text` and may return a replacement")
        }
        HookKind::AfterModel => ("after_llm_call", "the answer as `ctx.text` and may return a replacement"),
        HookKind::BeforeTool => (
            "before_tool_call",
            "one call as `ctx.tool_name` and `ctx.arguments` and may return other arguments",
        ),
        HookKind::AfterTool => {
            ("after_tool_call", "one call and its result as `ctx.result` and may return a replacement")
        }
        HookKind::AfterTurn => {
            ("after_turn_complete", "the agent's answer as `ctx.text` and may return a replacement")
        }
    }
}

fn of_lifecycle(moment: LifecycleHook) -> (&'static str, &'static str) {
    let name = match moment {
        LifecycleHook::OnStart => "on_start",
        LifecycleHook::OnShutdown => "on_shutdown",
    };
    (name, "only `ctx.hook_type` and `ctx.agent_name`")
}

/// The features of fast-agent that a function uses, as written there. A file that cannot be read is
/// reported by other checks.
fn used_of_fast_agent(function: &PythonFunctionReference) -> Option<Vec<String>> {
    let text = fs::read_to_string(&function.file).ok()?;
    let used = used_in(&without_comments(&text), &function.function);
    (!used.is_empty()).then_some(used)
}

fn used_in(text: &str, function: &str) -> Vec<String> {
    let Some(definition) = FunctionDefinition::find(text, function) else { return Vec::new() };
    let is_typed = TYPES_THERE.iter().any(|name| definition.signature.contains(name));
    // A function with fast-agent's argument type may pass it on to other functions of the file.
    let searched = if is_typed { text } else { definition.body };
    let mut used = Vec::new();
    for (at, _) in searched.match_indices(&format!("{}.", definition.argument)) {
        let before = searched.get(..at).and_then(|before| before.chars().next_back());
        let behind = searched.get(at + definition.argument.len() + 1..).unwrap_or_default();
        let name = leading_name(behind);
        let is_argument = before.is_none_or(|letter| !is_name_letter(letter) && letter != '.');
        let shown = format!("{}.{name}", definition.argument);
        if is_argument && ONLY_THERE.contains(&name) && !used.contains(&shown) {
            used.push(shown);
        }
    }
    used
}

/// The source text of a function.
struct FunctionDefinition<'t> {
    /// The signature, from the bracket to the colon.
    signature: &'t str,
    /// The name of the first argument.
    argument: &'t str,
    body: &'t str,
}

impl<'t> FunctionDefinition<'t> {
    fn find(text: &'t str, function: &str) -> Option<Self> {
        let start = text.match_indices(&format!("def {function}")).find_map(|(at, found)| {
            let behind = text.get(at + found.len()..)?;
            behind.trim_start().starts_with('(').then_some(at + found.len())
        })?;
        let line_start = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
        let first_line = text.get(line_start..)?;
        let depth = first_line.len() - first_line.trim_start_matches(' ').len();
        let behind = text.get(start..)?;
        let end = behind.find("):").or_else(|| behind.find("->")).or_else(|| behind.find(':'))?;
        let (signature, rest) = behind.split_at_checked(end)?;
        let argument = leading_name(signature.trim_start().trim_start_matches('(').trim_start());
        let mut length = 0;
        for (index, line) in rest.split_inclusive('\n').enumerate() {
            let indent = line.len() - line.trim_start_matches(' ').len();
            if index > 0 && !line.trim().is_empty() && indent <= depth {
                break;
            }
            length += line.len();
        }
        let body = rest.get(..length)?;
        (!argument.is_empty()).then_some(Self { signature, argument, body })
    }
}

fn leading_name(text: &str) -> &str {
    let end = text.find(|letter: char| !is_name_letter(letter)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn is_name_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Python source without comments and texts in triple quotes, which may mention what the hook does not
/// do. Line numbers stay the same.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for quote in ["\"\"\"", "'''"] {
        let source = if out.is_empty() { text.to_owned() } else { std::mem::take(&mut out) };
        for (index, part) in source.split(quote).enumerate() {
            if index % 2 == 0 {
                out.push_str(part);
            } else {
                out.extend(part.chars().filter(|letter| *letter == '\n'));
            }
        }
    }
    let code = |line: &str| line.split(" #").next().unwrap_or_default().to_owned();
    let lines = out.lines().filter(|line| !line.trim_start().starts_with('#')).map(code);
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(text: &str, function: &str) -> Vec<String> {
        used_in(&without_comments(text), function)
    }

    #[test]
    fn a_hook_of_fast_agent_is_known_by_what_it_uses() {
        let guard = "async def guard(ctx: \"HookContext\") -> None:\n    for call in calls(ctx):\n        pass\n\n\
                     def calls(ctx):\n    return ctx.message.tool_calls or ctx.runner\n";
        assert_eq!(used(guard, "guard"), ["ctx.message", "ctx.runner"]);
        let plain = "def after(\n    context,\n):\n    return context.message.all_text()\n";
        assert_eq!(used(plain, "after"), ["context.message"]);
    }

    #[test]
    fn a_hook_that_works_here_is_let_be() {
        for text in [
            "def cap(ctx):\n    return {**ctx.arguments, 'limit': 1}\n",
            "async def log(ctx: HookContext) -> None:\n    print(ctx.hook_type, ctx.agent_name)\n",
            "def cap(ctx):\n    \"\"\"Unlike ctx.message.\"\"\"\n    return None  # not ctx.runner\n\n\
             def other(ctx):\n    return ctx.message\n",
            "def cap(ctx):\n    return self_ctx.message + a.ctx.runner\n",
            "from elsewhere import cap\n",
        ] {
            let name = if text.contains("def log") { "log" } else { "cap" };
            assert_eq!(used(text, name), [""; 0], "{text}");
        }
    }
}
