//! A small MCP test server, with faults on demand.

/// The command line of the test server, over stdio unless `--http 0` is added. It needs only Python;
/// `mcp/server.py` lists its tools and flags.
#[must_use]
pub fn mcp_server() -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/mcp/server.py");
    // In isolated mode and without site packages it starts in a fraction of the time.
    ["python3", "-I", "-S", script].map(str::to_owned).to_vec()
}
