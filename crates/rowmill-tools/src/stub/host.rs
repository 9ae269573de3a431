//! Fixed and recorded answers, and the host that returns them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_types::settings::STUB;
use rowmill_types::{Problem, ProblemCode, RowId, ToolOutput, ToolSpec};
use serde_json::{Map, Value, json};

use super::lines::{StubLine, canonical_arguments};

/// The condition of a line: a row or all rows; arguments or any.
type LineCondition = (Option<RowId>, Option<String>);

/// A tool that answers without being called.
///
/// Of the lines that match a call, those with row and arguments take precedence, then those with only the
/// arguments, then those with only the row, then those without a condition. A row is identified by its id, or
/// if it has none by its number. Of the best such group the lines are used one after the other for each row,
/// and the last one repeatedly.
#[derive(Debug)]
pub struct StubTool {
    name: String,
    source: String,
    answers: Vec<ToolOutput>,
    lines: HashMap<LineCondition, Vec<usize>>,
}

impl StubTool {
    /// Reads the answers of the tool `name`: `text:` and a fixed answer, or the path of a JSONL
    /// file with one answer per line.
    ///
    /// ```
    /// # use rowmill_tools::StubTool;
    /// let stub = StubTool::read("weather", "text:It is sunny").unwrap();
    /// assert_eq!(stub.name(), "weather");
    /// ```
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line is not an answer.
    pub fn read(name: &str, source: &str) -> Result<Self, Problem> {
        if let Some(text) = source.strip_prefix("text:") {
            let mut stub = Self::empty(name, "text:…");
            stub.add((None, None), ToolOutput::from_text(text));
            return Ok(stub);
        }
        let problem = |message: String| Problem::new(ProblemCode::StubUnusable, message);
        let text = std::fs::read_to_string(Path::new(source)).map_err(|error| {
            problem(format!("cannot read the answers for the tool `{name}`: `{source}`"))
                .cause(error)
                .hint(format!("check the path given to {STUB}, or write the answer itself with `text:`"))
        })?;
        let mut stub = Self::empty(name, source);
        for (number, line) in text.trim_start_matches('\u{FEFF}').lines().enumerate() {
            if !line.trim().is_empty() {
                stub.read_line(line).map_err(|what| {
                    problem(format!("line {} of `{source}` is not an answer: {what}", number + 1)).hint(
                        "expected a line such as `{\"arguments\": {…}, \"result\": …}`, `{\"id\": \"…\", \
                         \"result\": …}`, `{\"row\": N, \"result\": …}` or `{\"result\": …}`",
                    )
                })?;
            }
        }
        if stub.answers.is_empty() {
            let message = format!("`{source}` has no answers for the tool `{name}`");
            return Err(problem(message).hint("write one answer per line, such as `{\"result\": \"sunny\"}`"));
        }
        Ok(stub)
    }

    fn empty(name: &str, source: &str) -> Self {
        let (name, source) = (name.to_owned(), source.to_owned());
        Self { name, source, answers: Vec::new(), lines: HashMap::new() }
    }

    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let line: StubLine<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let by_id = line.id.map(|id| RowId::Text(id.into()));
        let row = by_id.or(line.row.map(RowId::Number));
        let condition = (row, line.arguments.as_ref().map(canonical_arguments));
        self.add(condition, StubLine::to_tool_output(line.result, line.is_error, line.attachments)?);
        Ok(())
    }

    fn add(&mut self, condition: LineCondition, answer: ToolOutput) {
        self.lines.entry(condition).or_default().push(self.answers.len());
        self.answers.push(answer);
    }

    /// The name of the tool that it replaces.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description for models if nothing is known about the tool: it accepts any arguments.
    #[must_use]
    pub fn permissive_spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": true});
        ToolSpec { name: self.name.clone(), description: None, schema }
    }

    /// The lines that match this call.
    fn fitting(&self, request: ToolRequest<'_>, arguments: &Map<String, Value>) -> Option<&[usize]> {
        let arguments = canonical_arguments(arguments);
        let (id, number) = (request.id.clone(), RowId::Number(request.row));
        let conditions = [
            (Some(id.clone()), Some(arguments.clone())),
            (Some(number.clone()), Some(arguments.clone())),
            (None, Some(arguments)),
            (Some(id), None),
            (Some(number), None),
            (None, None),
        ];
        conditions.iter().find_map(|condition| self.lines.get(condition)).map(Vec::as_slice)
    }
}

/// How often the lines of each condition were used for a row: tool and first line identify the group.
type LineUseCounts = HashMap<(String, usize), usize>;

/// A host of tools that answer without being called.
#[derive(Debug)]
pub struct StubHost {
    tools: HashMap<String, StubTool>,
    used: Mutex<HashMap<u64, LineUseCounts>>,
}

impl StubHost {
    /// A host of all these tools; each is identified by its name.
    #[must_use]
    pub fn new(tools: Vec<StubTool>) -> Self {
        let tools = tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
        Self { tools, used: Mutex::default() }
    }

    /// The tools, in arbitrary order.
    pub fn tools(&self) -> impl Iterator<Item = &StubTool> {
        self.tools.values()
    }

    fn answer(&self, request: ToolRequest<'_>) -> Result<ToolOutput, ToolFailure> {
        let Some(tool) = self.tools.get(request.tool) else {
            let message = format!("there are no answers for the tool `{}`", request.tool);
            return Err(ToolFailure { message, may_have_run: false });
        };
        let arguments = serde_json::from_str(request.arguments).unwrap_or_default();
        let Some((lines, first)) =
            tool.fitting(request, &arguments).and_then(|lines| Some((lines, *lines.first()?)))
        else {
            let message =
                format!("no answer in `{}` fits these arguments: {}", tool.source, request.arguments);
            return Ok(ToolOutput::error(message));
        };
        let turn = if lines.len() == 1 { 0 } else { self.turn(request.row, &tool.name, first) };
        let line = lines.get(turn).or(lines.last());
        let answer = line.and_then(|line| tool.answers.get(*line));
        Ok(answer.cloned().unwrap_or_default())
    }

    /// How often these lines have been used for this row.
    fn turn(&self, row: u64, tool: &str, first: usize) -> usize {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let count = used.entry(row).or_default().entry((tool.to_owned(), first)).or_default();
        *count += 1;
        *count - 1
    }
}

impl ToolHost for StubHost {
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(std::future::ready(self.answer(request)))
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).remove(&row);
        Box::pin(std::future::ready(()))
    }
}
