//! The inputs of all contenders: rows, a card, a tool.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use rowmill_testkit::mcp_server;

use crate::TaskFailure;
use crate::bench::context::BenchContext;

/// The simulated model's call, which it makes three times for each row.
pub(super) const CALL: &str = r#"lookup {"key":"kettle"}"#;
/// The same for the tool of an MCP server.
pub(super) const MCP_CALL: &str = r#"stock__echo {"text":"kettle"}"#;
/// The prompt of every row.
pub(super) const PROMPT: &str = "Is there a spare part for this? {{review}}";

const CARD: &str = "---\n\
    name: clerk\n\
    function_tools:\n\
    - tools.py:lookup\n\
    ---\n\
    You answer customers of a shop. Look the part up before you answer.\n";
const TOOLS: &str = "def lookup(key: str) -> str:\n    \
    \"\"\"Looks a part up.\n\n    \
    Args:\n        \
    key: What the part is for.\n    \
    \"\"\"\n    \
    return f\"part for {key}: 12 in stock\"\n";
const STUB: &str = "{\"result\":\"part for kettle: 12 in stock\"}\n";
const LANGROID: &str = include_str!("langroid_rows.py");

/// The number of rows in `rows.jsonl` and in `many.jsonl`.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputSizes {
    pub(super) few: u64,
    pub(super) many: u64,
}

/// Writes all inputs into a folder of their own, and returns it.
pub(super) fn write(context: &BenchContext, inputs: InputSizes) -> Result<PathBuf, TaskFailure> {
    let folder = context.folder.join("agents");
    fs::create_dir_all(&folder)?;
    write_rows(&folder.join("rows.jsonl"), inputs.few)?;
    write_rows(&folder.join("many.jsonl"), inputs.many)?;
    for (name, text) in
        [("clerk.md", CARD), ("tools.py", TOOLS), ("stub.jsonl", STUB), ("langroid_rows.py", LANGROID)]
    {
        fs::write(folder.join(name), text)?;
    }
    let (program, arguments) = match mcp_server().as_slice() {
        [program, arguments @ ..] => (program.clone(), serde_json::json!(arguments)),
        [] => return Err(TaskFailure::new("there is no MCP server to measure with")),
    };
    let card = format!(
        "---\nname: clerk\nmcp_connect:\n  stock:\n    command: {program}\n    args: {arguments}\n    \
         tools: [echo]\n---\nYou answer customers of a shop. Look the part up before you answer.\n"
    );
    fs::write(folder.join("clerk-mcp.md"), card)?;
    Ok(folder)
}

fn write_rows(path: &Path, count: u64) -> Result<(), TaskFailure> {
    let mut out = BufWriter::new(File::create(path)?);
    for number in 1..=count {
        let days = number % 13;
        writeln!(
            out,
            r#"{{"id":"review-{number}","review":"The handle of kettle {} broke after {days} weeks of light use; the seller answered after {days} days."}}"#,
            number * 7919 % 100_003,
        )?;
    }
    Ok(out.flush()?)
}
