//! The inputs of all contenders: rows, a schema, and a project of the competitor with the same rows.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::TaskFailure;

/// The instruction of every request, before the text of its row.
const INSTRUCTION: &str = "Classify the ticket:";
/// The name of the workflow in the competitor's project.
pub(super) const WORKFLOW: &str = "triage";
/// The name of its only action.
pub(super) const ACTION: &str = "classify";

const SCHEMA: &str = r#"{"type":"object","properties":{"label":{"type":"string","description":"one word"},"score":{"type":"number","description":"from 0 to 1"}},"required":["label","score"],"additionalProperties":false}"#;

const PROJECT: &str = "project_name: bench\n\
    schema_path: schema\n\
    tool_path: [tools]\n\
    default_agent_config:\n\
    \x20 api_key: OPENAI_API_KEY\n\
    \x20 run_mode: batch\n";
const WORKFLOW_SCHEMA: &str = "name: classify\n\
    description: the class of a ticket\n\
    fields:\n\
    \x20 - {id: label, type: string, description: one word}\n\
    \x20 - {id: score, type: number, description: from 0 to 1}\n\
    required: [label, score]\n";

/// The model that answers the competitor's requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct RivalModel {
    /// Its vendor, in the competitor's words.
    pub(super) vendor: &'static str,
    pub(super) name: &'static str,
}

/// The prompt of rowmill, which is that of the competitor, too.
pub(super) fn prompt() -> String {
    format!("{INSTRUCTION} {{{{text}}}}")
}

/// Makes an empty folder; what was in it is removed.
pub(super) fn renew_folder(folder: &Path) -> Result<(), TaskFailure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    Ok(fs::create_dir_all(folder)?)
}

/// Writes the schema of the answers, and rows as JSON lines.
pub(super) fn write_rows(folder: &Path, count: u64) -> Result<(), TaskFailure> {
    fs::write(folder.join("schema.json"), SCHEMA)?;
    let mut out = BufWriter::new(File::create(folder.join("rows.jsonl"))?);
    for number in 1..=count {
        writeln!(out, "{}", row(number))?;
    }
    Ok(out.flush()?)
}

/// Writes a project of the competitor; an earlier one, with everything that it has made, is removed.
pub(super) fn write_project(folder: &Path, model: RivalModel, count: u64) -> Result<(), TaskFailure> {
    renew_folder(folder)?;
    let workflow = folder.join("agent_workflow").join(WORKFLOW);
    let (input, prompts, schemas) = (
        workflow.join("agent_io/staging"),
        folder.join("prompt_store"),
        folder.join("schema").join(WORKFLOW),
    );
    let config = workflow.join("agent_config");
    for made in [&input, &prompts, &schemas, &config, &folder.join("tools"), &folder.join("home")] {
        fs::create_dir_all(made)?;
    }
    fs::write(folder.join("agent_actions.yml"), PROJECT)?;
    let text = format!("{{prompt Classify}}\n{INSTRUCTION} {{{{ source.text }}}}\n{{end_prompt}}\n");
    fs::write(prompts.join(format!("{WORKFLOW}.md")), text)?;
    fs::write(schemas.join(format!("{ACTION}.yml")), WORKFLOW_SCHEMA)?;
    fs::write(config.join(format!("{WORKFLOW}.yml")), workflow_text(model))?;
    let mut out = BufWriter::new(File::create(input.join("tickets.json"))?);
    for number in 1..=count {
        write!(out, "{}{}", if number == 1 { '[' } else { ',' }, row(number))?;
    }
    write!(out, "]")?;
    Ok(out.flush()?)
}

fn workflow_text(model: RivalModel) -> String {
    let RivalModel { vendor, name } = model;
    format!(
        "name: {WORKFLOW}\n\
         description: classify tickets\n\
         defaults:\n\
         \x20 json_mode: true\n\
         \x20 granularity: Record\n\
         \x20 run_mode: batch\n\
         \x20 model_vendor: {vendor}\n\
         \x20 model_name: {name}\n\
         \x20 data_source: {{type: local, folder: ./staging, file_type: [json]}}\n\
         actions:\n\
         \x20 - name: {ACTION}\n\
         \x20   intent: classify a ticket\n\
         \x20   schema: classify\n\
         \x20   prompt: $triage.Classify\n\
         \x20   context_scope: {{observe: [source.text], passthrough: [source.ticket_id]}}\n"
    )
}

fn row(number: u64) -> String {
    format!(
        r#"{{"ticket_id":"ticket-{number}","text":"The handle of kettle {} broke after {} weeks of light use, order {number}."}}"#,
        number * 7919 % 100_003,
        number % 13,
    )
}
