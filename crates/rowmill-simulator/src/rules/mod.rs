//! Rules from a file that define how calls are answered.

mod fill;
mod read;

use rowmill_types::Citation;
use serde_json::Value;

use self::fill::{fill_text, fill_value};
use crate::answer::SimulatedAnswer;
use crate::conversation::SimulatedCallView;
use crate::fault::SimulatedFault;
use crate::turn::ScriptedTurn;

/// An ordered list of rules: the first that matches a call defines how it is answered.
///
/// ```
/// # use rowmill_simulator::SimulatedAnswerRules;
/// let rules = SimulatedAnswerRules::read(
///     "rules.jsonl",
///     r#"{"when": {"turn": 1, "tool": "search"}, "then": {"calls": [{"name": "search", "arguments": {"query": "{{prompt}}"}}]}}
///        {"when": {"turn": 2}, "then": {"text": "It says: {{last}}"}}"#,
/// );
/// assert_eq!(rules.unwrap().len(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SimulatedAnswerRules(Vec<AnswerRule>);

impl SimulatedAnswerRules {
    /// Parses rules from the text of a file: a JSON array, or one rule per line.
    ///
    /// # Errors
    ///
    /// A rule cannot be used; the message names the file, the rule and what to write.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        read::rules(text).map(Self).map_err(|error| format!("`{file}`, {error}"))
    }

    /// The number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The answer of the first rule that matches.
    pub(crate) fn answer(&self, seen: &SimulatedCallView<'_>) -> Option<SimulatedAnswer> {
        let rule = self.0.iter().find(|rule| rule.when.fits(seen) && rule.then.is_left(seen))?;
        Some(rule.then.answer(seen))
    }
}

#[derive(Debug, Clone, PartialEq)]
struct AnswerRule {
    when: RuleCondition,
    then: RuleAction,
}

/// The conditions of a rule; absent ones always match.
#[derive(Debug, Clone, Default, PartialEq)]
struct RuleCondition {
    system: Option<String>,
    prompt: Option<String>,
    last: Option<String>,
    turn: Option<u64>,
    model: Option<String>,
    tool: Option<String>,
    schema: Option<bool>,
}

impl RuleCondition {
    fn fits(&self, seen: &SimulatedCallView<'_>) -> bool {
        let holds =
            |part: &Option<String>, text: &str| part.as_ref().is_none_or(|part| text.contains(part.as_str()));
        holds(&self.system, seen.system)
            && holds(&self.prompt, seen.prompt)
            && holds(&self.last, seen.last)
            && self.turn.is_none_or(|turn| turn == seen.turn)
            && self.model.as_ref().is_none_or(|model| model == seen.model)
            && self.schema.is_none_or(|schema| schema == seen.schema.is_some())
            && self.tool.as_ref().is_none_or(|name| {
                seen.tools.iter().any(|tool| tool.name == *name) || seen.hosted.contains(name)
            })
    }
}

/// The answer of a rule.
#[derive(Debug, Clone, Default, PartialEq)]
struct RuleAction {
    text: Option<String>,
    json: Option<Value>,
    calls: Vec<(String, Value)>,
    thinks: bool,
    pauses: bool,
    cites: Vec<Citation>,
    /// A fault, and how often it occurs in each conversation if that is limited.
    fault: Option<(SimulatedFault, Option<u64>)>,
}

impl RuleAction {
    /// Whether a limited fault still occurs.
    fn is_left(&self, seen: &SimulatedCallView<'_>) -> bool {
        !matches!(&self.fault, Some((_, Some(times))) if seen.conversation_count > *times)
    }

    fn answer(&self, seen: &SimulatedCallView<'_>) -> SimulatedAnswer {
        if let Some((fault, _)) = &self.fault {
            return SimulatedAnswer::Fail(fault.clone());
        }
        let json = self.json.as_ref().map(|value| fill_value(value, seen).to_string());
        let turn = ScriptedTurn {
            text: self.text.as_ref().map(|text| fill_text(text, seen)).or(json),
            calls: self.calls.iter().map(|(name, value)| (name.clone(), fill_value(value, seen))).collect(),
            thinks: self.thinks,
            pauses: self.pauses,
            cites: self.cites.clone(),
        };
        turn.into()
    }
}
