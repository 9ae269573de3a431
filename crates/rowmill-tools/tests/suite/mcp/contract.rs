//! Servers satisfy the contract of tool hosts, as checked by the testkit's suite.

use rowmill_testkit::conformance::{ToolCase, ToolFacts, check_tool_host};
use serde_json::json;

use crate::mcp::kit::{ours, start};

#[tokio::test]
async fn mcp_servers_keep_the_contract_of_tool_hosts() {
    let mcp = start(ours(&[])).await;
    let facts = ToolFacts {
        fails: Some(ToolCase::new("t__fail", &json!({"message": "no luck"}))),
        echoes: Some(Box::new(|number| {
            let text = format!("n{number}.");
            (ToolCase::new("t__echo", &json!({"text": text})), text)
        })),
        hangs: Some(ToolCase::new("t__hang", &json!({"label": "x"}))),
        ..ToolFacts::of(ToolCase::new("t__echo", &json!({"text": "grün"})))
    };
    assert_eq!(check_tool_host(&mcp, &facts).await, Vec::<String>::new());
}
