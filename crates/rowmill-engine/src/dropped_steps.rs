//! Dropped steps of a row: their calls are reported all the same.

use rowmill_core::record::{CallReport, ToolCallReport};
use rowmill_types::{CallTiming, Money, RowError, RowErrorKind};
use tokio::time::Instant;

use crate::call_report::unanswered_call_report;
use crate::model_turn::{ModelTurn, TurnCalls};
use crate::row_context::RowContext;
use crate::tool_call::ToolCallStep;

/// The calls that were under way when steps of a row were dropped, and the earlier calls of these steps.
#[derive(Debug, Default)]
pub(crate) struct DroppedSteps {
    pub(crate) calls: Vec<CallReport>,
    /// Calls without an answer that may have been billed.
    pub(crate) unknown: u64,
    /// What the provider's cache saved.
    pub(crate) saved: Money,
    pub(crate) tools: Vec<DroppedToolCall>,
}

/// A tool that had not returned.
#[derive(Debug)]
pub(crate) struct DroppedToolCall {
    pub(crate) node: usize,
    /// The id of the call.
    pub(crate) call: String,
    pub(crate) report: ToolCallReport,
}

impl DroppedSteps {
    /// The error of an aborted row; `None` if nothing was under way for it.
    pub(crate) fn aborted_error(&self) -> Option<RowError> {
        let asked = self.calls.iter().any(|call| call.error == Some(RowErrorKind::Interrupted));
        let message = match (self.tools.first(), asked) {
            (None, false) => return None,
            (None, true) => {
                "the run was aborted during the call; it is unknown whether it was billed".to_owned()
            }
            (Some(DroppedToolCall { report, .. }), asked) => {
                let called = if asked { "during a model call and " } else { "" };
                let billed = if asked { "the call was billed or the tool" } else { "it" };
                format!(
                    "the run was aborted {called}while the tool `{}` was running; it is unknown whether \
                     {billed} took effect",
                    report.tool
                )
            }
        };
        Some(RowError::new(RowErrorKind::Interrupted, message))
    }
}

impl RowContext<'_> {
    /// Adds the calls of a dropped turn.
    fn cut_turn(&self, agent_index: usize, mut calls: TurnCalls) {
        self.add_agent_name(agent_index, &mut calls.reports);
        self.record_dropped(|cut| {
            cut.calls.append(&mut calls.reports);
            cut.unknown += calls.unknown;
            cut.saved += calls.saved;
        });
    }
}

impl Drop for ModelTurn<'_> {
    fn drop(&mut self) {
        let mut calls = std::mem::take(&mut self.calls);
        if let Some(sent) = self.sent.take() {
            let timing = CallTiming { first_token: None, response: sent.elapsed() };
            // A step that a panic dropped was not dropped by the user.
            let kind =
                if std::thread::panicking() { RowErrorKind::Internal } else { RowErrorKind::Interrupted };
            calls.reports.push(unanswered_call_report(kind, None, timing));
            calls.unknown += 1;
            self.row.mark_maybe_billed(true);
        }
        if !calls.reports.is_empty() {
            self.row.cut_turn(self.agent_index, calls);
        }
    }
}

/// A tool call in progress. If this is dropped before the tool has returned, the call is reported.
pub(crate) struct RunningToolCall<'a> {
    row: &'a RowContext<'a>,
    step: Option<(&'a ToolCallStep, Instant)>,
}

impl<'a> RunningToolCall<'a> {
    pub(crate) fn begin(row: &'a RowContext<'a>, step: &'a ToolCallStep) -> Self {
        Self { row, step: Some((step, Instant::now())) }
    }

    /// The tool has returned, or was given up.
    pub(crate) fn end(mut self) {
        self.step = None;
    }
}

impl Drop for RunningToolCall<'_> {
    fn drop(&mut self) {
        let Some((step, began)) = self.step.take() else { return };
        let report = self.row.tool_report(step, began.elapsed());
        let tool = DroppedToolCall { node: step.node, call: step.call.id.clone(), report };
        self.row.record_dropped(|cut| cut.tools.push(tool));
    }
}
