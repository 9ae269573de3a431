//! The formats of answers that agents are asked for.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnswerFormat {
    /// Text.
    Text,
    /// JSON that satisfies the schema of the run's results.
    Result,
    /// A router's choice of an agent.
    Route,
    /// An evaluator's rating.
    Rating,
    /// All steps of a plan.
    Plan,
    /// The next step of a plan, or that it is complete.
    NextStep,
}

impl AnswerFormat {
    /// The schema, if the format has a fixed one.
    #[must_use]
    pub fn schema(self) -> Option<&'static Value> {
        match self {
            Self::Text | Self::Result => None,
            Self::Route => Some(&ROUTE),
            Self::Rating => Some(&RATING),
            Self::Plan => Some(&PLAN),
            Self::NextStep => Some(&NEXT_STEP),
        }
    }
}

static ROUTE: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {
            "agent": {"type": "string", "description": "The name of the agent that is to answer."},
            "confidence": {"type": "string", "enum": ["high", "medium", "low"]},
            "reasoning": {"type": "string", "description": "Why this agent, in a few words."}
        },
        "required": ["agent", "confidence", "reasoning"],
        "additionalProperties": false
    })
});

static RATING: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {
            "rating": {"type": "string", "enum": ["POOR", "FAIR", "GOOD", "EXCELLENT"]},
            "feedback": {"type": "string", "description": "What is good and what should be better."},
            "needs_improvement": {"type": "boolean"},
            "focus_areas": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["rating", "feedback", "needs_improvement", "focus_areas"],
        "additionalProperties": false
    })
});

static PLAN: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {
            "steps": {"type": "array", "items": step()},
            "is_complete": {"type": "boolean", "description": "Whether nothing is left to do."}
        },
        "required": ["steps", "is_complete"],
        "additionalProperties": false
    })
});

static NEXT_STEP: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = step();
    schema["properties"]["is_complete"] =
        json!({"type": "boolean", "description": "Whether nothing is left to do."});
    schema["required"] = json!(["description", "tasks", "is_complete"]);
    schema
});

fn step() -> Value {
    json!({
        "type": "object",
        "properties": {
            "description": {"type": "string", "description": "What the step is for."},
            "tasks": {"type": "array", "description": "Tasks that can be done at the same time.", "items": {
                "type": "object",
                "properties": {
                    "description": {"type": "string", "description": "What the agent is to do."},
                    "agent": {"type": "string", "description": "The name of the agent."}
                },
                "required": ["description", "agent"],
                "additionalProperties": false
            }}
        },
        "required": ["description", "tasks"],
        "additionalProperties": false
    })
}
