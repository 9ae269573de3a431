//! Tool calls of a row, and the hooks around tools and turns.

use std::time::Duration;

use rowmill_core::agent::{StepEvent, ToolCallDetails};
use rowmill_core::ports::{HookCall, HookKind, ToolFailure, ToolRequest};
use rowmill_core::record::ToolCallReport;
use rowmill_types::settings::ROW_TIMEOUT;
use rowmill_types::{
    Attachment, Completion, DiagnosticText, Message, RowError, RowErrorKind, RowId, ToolCall, ToolOutput,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::RowWorker;
use crate::dropped_steps::RunningToolCall;
use crate::row_context::RowContext;
use crate::run_account::RunHalt;

/// A host measures the time of its tools, and may have to queue, reconnect and call again. One that does not return is
/// given up after this multiple of the tool's time limit, plus a grace time.
const PATIENCE: u32 = 6;
const RECONNECTS: Duration = Duration::from_secs(60);

/// How much of a call's arguments is kept, for users who must find out what the call did.
const KEPT_ARGUMENTS: usize = 1024;

/// A tool call of a row.
pub(crate) struct ToolCallStep {
    pub(crate) node: usize,
    pub(crate) index: usize,
    pub(crate) tool: usize,
    pub(crate) call: ToolCall,
    /// The number of the model call of the row that requested it.
    pub(crate) turn: u32,
    /// The number of that model call within the node.
    pub(crate) turn_of_node: u32,
    /// The agent, by its index in the agent graph.
    pub(crate) agent_index: usize,
    /// The model role that gets the result.
    pub(crate) model_role: usize,
    /// How long it waited for its turn, which does not count as the tool's time.
    pub(crate) waited: Duration,
}

impl ToolCallStep {
    /// The event to record in case the call never returns.
    fn started(&self) -> StepEvent {
        let ToolCall { id, name, arguments } = &self.call;
        let end = arguments.floor_char_boundary(KEPT_ARGUMENTS);
        StepEvent::ToolStarted {
            node: self.node,
            index: self.index,
            tool: name.clone(),
            call: id.clone(),
            arguments: arguments.get(..end).unwrap_or_default().to_owned(),
            turn: self.turn,
        }
    }
}

/// The result.
pub(crate) struct ToolCallEnd {
    pub(crate) output: Result<ToolOutput, ToolCallStop>,
    pub(crate) report: ToolCallReport,
    /// What is recorded of it, if anything.
    pub(crate) note: Option<ToolCallDetails>,
}

/// Why a tool call ends the row.
pub(crate) enum ToolCallStop {
    Halt(RunHalt),
    Failed(RowError),
}

impl RowContext<'_> {
    /// Calls a tool. Its failures are reported to the model.
    pub(crate) async fn run_tool_call(&self, step: &mut ToolCallStep) -> ToolCallEnd {
        let (start, sent) = (self.shared.began.elapsed(), Instant::now());
        let output = self.call_tool(step).await;
        let (start, took) = (start + step.waited, sent.elapsed().saturating_sub(step.waited));
        self.add_work(took);
        let end = self.shared.began.elapsed();
        let ok = output.as_ref().is_ok_and(|output| !output.is_error);
        let report = ToolCallReport { ok, ..self.tool_report(step, took) };
        let worker = &self.shared.worker;
        let note =
            (worker.checkpoint || self.row_worker.graph.keeps_transcripts()).then(|| ToolCallDetails {
                call: step.call.id.clone(),
                tool: step.call.name.clone(),
                start,
                end,
                is_error: !ok,
            });
        ToolCallEnd { output, report, note }
    }

    /// The report of a call without a result.
    pub(crate) fn tool_report(&self, step: &ToolCallStep, duration: Duration) -> ToolCallReport {
        let agent = self.agent_name(step.agent_index).to_owned();
        ToolCallReport { agent, tool: step.call.name.clone(), ok: false, duration }
    }

    async fn call_tool(&self, step: &mut ToolCallStep) -> Result<ToolOutput, ToolCallStop> {
        let RowWorker { graph, tools, .. } = &*self.row_worker;
        let (Some(tool), Some(tools)) = (graph.tools().get(step.tool), tools) else {
            return Ok(ToolOutput::error("the tool is gone"));
        };
        self.hook_before_tool(step).await?;
        let (node, index, of_node) = (step.node, step.index, step.turn_of_node);
        let arguments = step.call.arguments.clone();
        let key = self.key.tool_key((node, of_node, index), (&tool.host_name, &arguments));
        let unnamed = RowId::Number(self.number);
        let request = ToolRequest {
            row: self.number,
            id: self.id.as_ref().unwrap_or(&unnamed),
            key: &key,
            tool: &tool.host_name,
            arguments: &arguments,
            idempotent: tool.idempotent,
            timeout: Some(tool.timeout),
        };
        let asked = Instant::now();
        let ready = tools.host.wait_until_ready(request).await;
        step.waited = asked.elapsed();
        let output = match ready {
            Ok(permit) => {
                self.time_for_call().map_err(ToolCallStop::Failed)?;
                if !tool.idempotent {
                    // Not earlier: a call that still waits cannot have run.
                    self.record_event(&step.started()).await.map_err(ToolCallStop::Halt)?;
                    self.mark_tool_called();
                }
                let acting = RunningToolCall::begin(self, step);
                let output = self.in_time(tools.host.call(request), tool.timeout).await;
                acting.end();
                drop(permit);
                output
            }
            Err(failure) => ToolOutput::error(failure_text_for_model(&failure)),
        };
        let output = self.hook_after_tool(step, output).await?;
        Ok(self.fit(step.model_role, output, tools.result_limit))
    }

    /// The result of a call. A host measures the time of its tools; one that does not return is given up.
    async fn in_time(
        &self,
        call: impl Future<Output = Result<ToolOutput, ToolFailure>>,
        timeout: Duration,
    ) -> ToolOutput {
        let patience = timeout.saturating_mul(PATIENCE).saturating_add(RECONNECTS);
        let left = self.time_left().filter(|left| *left < patience);
        let limit = left.unwrap_or(patience);
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(output)) => output,
            Ok(Err(failure)) => ToolOutput::error(failure_text_for_model(&failure)),
            Err(_) => {
                let whose =
                    if left.is_some() { format!(" that {ROW_TIMEOUT} leaves") } else { String::new() };
                let seconds = (limit.as_secs_f64() * 1e3).round() / 1e3;
                let what = format!("the tool did not answer within {seconds} s{whose}");
                let what = DiagnosticText::from(format!("{what}; whether it took effect is unknown"));
                ToolOutput::error(what.render(self.shared.worker.vocabulary))
            }
        }
    }

    /// Fits a result to the model: limits its length, and keeps only files that the model can read.
    fn fit(&self, model_role: usize, mut output: ToolOutput, limit: usize) -> ToolOutput {
        let length = output.text.len();
        if length > limit {
            let end = output.text.floor_char_boundary(limit);
            output.text.truncate(end);
            output.text.push_str(&format!("\n[cut: the first {end} of {length} bytes]"));
        }
        let Some(rules) = self.row_worker.model_roles.get(model_role).map(|model_role| &model_role.files)
        else {
            return output;
        };
        for Attachment { name, media_type, bytes, .. } in output.attachments.extract_if(.., |file| {
            rules.check(&file.name, &file.media_type, file.bytes.len() as u64).is_err()
        }) {
            if !output.text.is_empty() {
                output.text.push('\n');
            }
            output.text.push_str(&format!(
                "[{name}: {media_type}, {} bytes, which this model cannot be shown]",
                bytes.len()
            ));
        }
        output
    }

    pub(crate) fn agent_name(&self, agent_index: usize) -> &str {
        self.row_worker.graph.agents().get(agent_index).map_or("", |agent_index| agent_index.name.as_str())
    }

    async fn hook(
        &self,
        kind: HookKind,
        agent_index: usize,
        turn: u32,
        about: &Value,
    ) -> Result<Option<Value>, RowError> {
        let hooks = self.row_worker.tools.as_ref().and_then(|tools| tools.hooks.as_ref());
        let Some(hooks) = hooks else { return Ok(None) };
        let agent = self.agent_name(agent_index);
        let call = HookCall { kind, row: self.number, agent, turn, about };
        hooks
            .call(call)
            .await
            .map_err(|what| RowError::new(RowErrorKind::Hook, format!("a hook of `{agent}` failed: {what}")))
    }

    pub(crate) fn has_hooks(&self) -> bool {
        self.row_worker.tools.as_ref().is_some_and(|tools| tools.hooks.is_some())
    }

    /// Lets a hook change the last message before a turn; returns the changed message.
    pub(crate) async fn run_before_model_hook(
        &self,
        agent_index: usize,
        turn: u32,
        messages: &mut [Message],
    ) -> Result<Option<String>, RowError> {
        let Some(last) = messages.last_mut() else { return Ok(None) };
        let about = json!(last.text);
        let Some(text) = text_of(self.hook(HookKind::BeforeModel, agent_index, turn, &about).await?) else {
            return Ok(None);
        };
        last.text.clone_from(&text);
        Ok(Some(text))
    }

    /// Lets hooks change an answer.
    pub(crate) async fn run_after_model_hook(
        &self,
        agent_index: usize,
        turn: u32,
        completion: &mut Completion,
    ) -> Result<(), RowError> {
        let mut kinds = vec![HookKind::AfterModel];
        if completion.calls.is_empty() {
            kinds.push(HookKind::AfterTurn);
        }
        for kind in kinds {
            let about = json!(completion.text);
            if let Some(text) = text_of(self.hook(kind, agent_index, turn, &about).await?) {
                // What is sent back to the provider must be the same text.
                completion.native = None;
                completion.text = text;
            }
        }
        Ok(())
    }

    async fn hook_before_tool(&self, step: &mut ToolCallStep) -> Result<(), ToolCallStop> {
        if !self.has_hooks() {
            return Ok(());
        }
        let arguments: Value = serde_json::from_str(&step.call.arguments).unwrap_or_default();
        let about = json!({"name": step.call.name, "arguments": arguments});
        let changed = self.hook(HookKind::BeforeTool, step.agent_index, step.turn, &about).await;
        if let Some(arguments) = changed.map_err(ToolCallStop::Failed)?.filter(Value::is_object) {
            step.call.arguments = arguments.to_string();
        }
        Ok(())
    }

    async fn hook_after_tool(
        &self,
        step: &ToolCallStep,
        mut output: ToolOutput,
    ) -> Result<ToolOutput, ToolCallStop> {
        if !self.has_hooks() {
            return Ok(output);
        }
        let arguments: Value = serde_json::from_str(&step.call.arguments).unwrap_or_default();
        let about = json!({
            "name": step.call.name, "arguments": arguments,
            "result": output.text, "is_error": output.is_error,
        });
        let changed = self.hook(HookKind::AfterTool, step.agent_index, step.turn, &about).await;
        if let Some(text) = text_of(changed.map_err(ToolCallStop::Failed)?) {
            output.text = text;
        }
        Ok(output)
    }
}

fn text_of(value: Option<Value>) -> Option<String> {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

fn failure_text_for_model(failure: &ToolFailure) -> String {
    let unknown = if failure.may_have_run { "; whether it took effect is unknown" } else { "" };
    format!("the tool failed: {}{unknown}", failure.message)
}
