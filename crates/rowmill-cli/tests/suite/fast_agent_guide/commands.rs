//! The command lines as printed in the guide, and the files that they name.

pub(crate) const FIRST: &str = r#"
fast-agent batch run \
  --input rows.jsonl \
  --output results.jsonl \
  --limit 10 \
  --model "responses.gpt-5.4-mini?reasoning=low"
"#;
pub(crate) const FLEX: &str = r#"
fast-agent batch run \
  --input rows.jsonl \
  --output results.jsonl \
  --model "responses.gpt-5.4-mini?service_tier=flex"
"#;
pub(crate) const REVIEWS: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --model "responses.gpt-5.5"
"#;
pub(crate) const INCLUDE_INPUT: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --include-input \
  --id-field id \
  --model "responses.gpt-5.5"
"#;
pub(crate) const INSTRUCTION: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --instruction sentiment-instructions.md \
  --model "responses.gpt-5.5"
"#;
pub(crate) const AGENT_CARD: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --agent-card ./review-worker.md \
  --agent reviewer \
  --model "responses.gpt-5.5"
"#;
pub(crate) const TEMPLATE: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --instruction sentiment-instructions.md \
  --template review-template.md \
  --model "responses.gpt-5.5"
"#;
pub(crate) const PROMPT: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --instruction sentiment-instructions.md \
  --prompt "Classify this {{product}} review into positive, neutral, or negative: {{review}}" \
  --model "responses.gpt-5.5"
"#;
pub(crate) const SCHEMA: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --instruction sentiment-instructions.md \
  --template review-template.md \
  --json-schema sentiment.schema.json \
  --model "responses.gpt-5.5"
"#;
pub(crate) const PARALLEL: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --instruction sentiment-instructions.md \
  --template review-template.md \
  --json-schema sentiment.schema.json \
  --parallel 4 \
  --model "responses.gpt-5.5?transport=auto"
"#;
pub(crate) const WORK_DIR: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --parallel 4 \
  --work-dir .batch/reviews \
  --model "responses.gpt-5.5"
"#;
pub(crate) const RESUME: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --instruction sentiment-instructions.md \
  --template review-template.md \
  --json-schema sentiment.schema.json \
  --resume \
  --id-field id \
  --model "responses.gpt-5.5"
"#;
pub(crate) const RESUME_WORK_DIR: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --parallel 4 \
  --work-dir .batch/reviews \
  --resume \
  --id-field id \
  --model "responses.gpt-5.5"
"#;
pub(crate) const TELEMETRY: &str = r#"
fast-agent batch run \
  --input reviews.jsonl \
  --output review-results.jsonl \
  --instruction sentiment-instructions.md \
  --template review-template.md \
  --json-schema sentiment.schema.json \
  --telemetry-output review-telemetry.jsonl \
  --summary-output review-summary.json \
  --error-output review-errors.jsonl \
  --progress-every 100 \
  --model "responses.gpt-5.5"
"#;
pub(crate) const HUB_SPLIT: &str = r#"
fast-agent batch run \
  --input 'hf://datasets/evalstate/my-dataset?config=default&split=train' \
  --output results.jsonl \
  --template record-template.md \
  --model "responses.gpt-5.5?service_tier=flex"
"#;
pub(crate) const HUB_FILE: &str = r#"
fast-agent batch run \
  --input hf://datasets/evalstate/my-dataset/data/train.jsonl \
  --output results.jsonl \
  --model "responses.gpt-5.5"
"#;
pub(crate) const SQL: &str = r#"
fast-agent batch run \
  --input rows.parquet \
  --output results.jsonl \
  --sql "SELECT id, text FROM input WHERE split = 'eval'" \
  --model "responses.gpt-5.5"
"#;
pub(crate) const HUB_AGENT: &str = r#"
uvx fast-agent-mcp@latest batch run \
  --input hf://datasets/evalstate/fast-agent-batch-demo/hf-research-questions.jsonl \
  --output hf-research-results.jsonl \
  --agent-card hf://datasets/evalstate/fast-agent-batch-demo/hf-research-agent.md \
  --template hf://datasets/evalstate/fast-agent-batch-demo/hf-research-template.md \
  --limit 3 \
  --id-field id \
  --progress-every 1 \
  --model kimi26instant
"#;
/// The guide prints this example's schema and results, and leaves its command to the reader.
pub(crate) const COMPETITORS: &str = r#"
fast-agent batch run \
  --input products.jsonl \
  --output competitors.jsonl \
  --template competitor-template.md \
  --json-schema competitors.schema.json \
  --id-field id \
  --model "responses.gpt-5.5?web_search=true"
"#;

pub(crate) const HUB_QUESTIONS: &str = r#"{"id":"hf1","task":"Find a compact sentiment-analysis dataset suitable for a quick batch classification demo."}
{"id":"hf2","task":"Find a small text-generation model with recent activity and summarize why it is a useful baseline."}
{"id":"hf3","task":"Find a dataset for evaluating retrieval-augmented question answering and note the likely split to try first."}
{"id":"hf4","task":"Beyond the limit."}
"#;
pub(crate) const HUB_TEMPLATE: &str = "Research this Hugging Face task:\n{{task}}\nReturn a concise recommendation with the \
    repository id, what you found, and one\npractical next step.\n";
pub(crate) const HUB_CARD: &str = r#"---
name: hf_researcher
description: Research Hugging Face models and datasets for batch rows.
mcp_connect:
  - target: "https://huggingface.co/mcp?login"
    name: huggingface
---
You are a concise Hugging Face research assistant.
Use the Hugging Face MCP server when you need current model or dataset
information. Prefer concrete repository ids and keep each answer short enough to
fit in a JSONL result record.
"#;
pub(crate) const SENTIMENT_SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "sentiment": {
      "type": "string",
      "enum": ["positive", "neutral", "negative"]
    },
    "reason": {
      "type": "string"
    }
  },
  "required": ["sentiment", "reason"],
  "additionalProperties": false
}
"#;
pub(crate) const COMPETITORS_SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "competitors": {
      "type": "array",
      "minItems": 3,
      "maxItems": 3,
      "items": {
        "type": "object",
        "properties": {
          "manufacturer": {
            "type": "string"
          },
          "product": {
            "type": "string"
          }
        },
        "required": ["manufacturer", "product"],
        "additionalProperties": false
      }
    }
  },
  "required": ["competitors"],
  "additionalProperties": false
}
"#;
pub(crate) const INSTRUCTIONS: &str = "You classify customer reviews.\nReturn a concise answer with:\n\
    - sentiment: positive, neutral, or negative\n- reason: one short sentence\n";
