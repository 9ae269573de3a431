//! The tools that are offered to models.

use rowmill_core::ports::ToolHost;
use rowmill_tools::{
    IdempotentTools, McpHost, McpParallelLimit, McpPrimitive, McpProtocolChoice, NameFilter,
};
use rowmill_types::ToolOutput;
use serde_json::json;

use crate::mcp::kit::{Network, call, ours, problem, settings, start, text};

fn names(mcp: &McpHost) -> Vec<&str> {
    mcp.tools().iter().map(|tool| tool.spec.name.as_str()).collect()
}

fn only(names: &[&str]) -> NameFilter {
    NameFilter::Only(names.iter().map(|name| (*name).to_owned()).collect())
}

#[tokio::test]
async fn tools_of_all_pages_are_offered_with_their_schemas() {
    let mcp = start(ours(&["--page", "3"])).await;
    assert_eq!(mcp.tools().len(), 21);
    let add = mcp.tools().iter().find(|tool| tool.spec.name == "t__add").unwrap();
    assert_eq!(add.spec.description.as_deref(), Some("Adds two numbers."));
    let expected =
        json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}});
    assert_eq!(add.spec.schema, expected);
    assert_eq!((add.tool.as_str(), add.server.as_str(), add.kind), ("add", "t", McpPrimitive::Tool));
    mcp.close().await;
}

#[tokio::test]
async fn filters_choose_tools_and_a_name_that_nobody_has_is_a_problem() {
    let mut server = ours(&[]);
    server.tools = only(&["add", "hang*"]);
    let mcp = start(server.clone()).await;
    assert_eq!(names(&mcp), ["t__add", "t__hang", "t__hang_twice"]);
    mcp.close().await;
    server.tools = only(&["add", "substract"]);
    let found = problem(vec![server]).await;
    assert_eq!(found.message, "the MCP server `t` has no tool `substract`");
    assert!(found.hint.unwrap().contains("`echo`, `add`"));
}

#[tokio::test]
async fn two_servers_have_their_tools_apart_and_cannot_have_one_name() {
    let (mut first, mut second) = (ours(&[]), ours(&[]));
    first.tools = only(&["echo"]);
    second.tools = only(&["echo"]);
    let found = problem(vec![first.clone(), second.clone()]).await;
    assert_eq!(found.message, "two MCP servers have the name `t`");
    second.name = "t.2".to_owned();
    let mcp = McpHost::start(vec![first, second], settings()).await.unwrap();
    assert_eq!(names(&mcp), ["t__echo", "t_2__echo"]);
    mcp.close().await;
}

#[tokio::test]
async fn resources_and_prompts_are_tools_when_they_are_asked_for() {
    let mut server = ours(&["--page", "1"]);
    server.tools = NameFilter::Nothing;
    let mcp = start(server.clone()).await;
    assert!(names(&mcp).is_empty());
    mcp.close().await;
    server.resources = only(&["first", "picture", "made"]);
    server.prompts = only(&["greet"]);
    let mcp = start(server).await;
    assert_eq!(names(&mcp), ["t__read_resource", "t__get_prompt"]);
    let described = |index: usize| mcp.tools()[index].spec.description.clone().unwrap();
    assert_eq!(
        described(0),
        "Reads a resource of t. Known resources:\n- test://notes/1 (first: The first note.)\n\
         - test://picture.png (picture)\n- test://made/{number} (made)"
    );
    assert_eq!(described(1), "Fetches a prompt of t. Known prompts:\n- greet(who, how?) (Greets.)");

    let read = async |uri: &str| call(&mcp, 1, "read_resource", json!({"uri": uri})).await.unwrap();
    assert_eq!(read("test://notes/1").await, ToolOutput::from_text("text of test://notes/1"));
    assert_eq!(read("test://made/7").await.text, "text of test://made/7");
    let picture = read("test://picture.png").await;
    assert_eq!(
        (picture.attachments[0].name.as_str(), picture.attachments[0].bytes.len()),
        ("picture.png", 70)
    );
    let refused = read("test://notes/2").await;
    assert_eq!(refused, ToolOutput::error("there is no resource `test://notes/2` that may be read"));
    let greeting = text(&mcp, 1, "get_prompt", json!({"name": "greet", "arguments": {"who": "you"}})).await;
    assert_eq!(greeting, "Hello, you!");
    let other = call(&mcp, 1, "get_prompt", json!({"name": "other"})).await.unwrap();
    assert_eq!(other, ToolOutput::error("there is no prompt `other`"));
    mcp.close().await;
}

#[tokio::test]
async fn which_tools_may_run_twice_is_declared_by_the_server_or_the_user() {
    let cases = [
        (IdempotentTools::ByServer, [true, false]),
        (IdempotentTools::All, [true, true]),
        (IdempotentTools::None, [false, false]),
        (IdempotentTools::Only(vec!["cou*".to_owned()]), [false, true]),
    ];
    for (idempotent, expected) in cases {
        let mut server = ours(&[]);
        server.tools = only(&["echo", "count"]);
        server.idempotent = idempotent;
        let mcp = start(server).await;
        let found: Vec<_> = mcp.tools().iter().map(|tool| tool.idempotent).collect();
        assert_eq!(found, expected);
        mcp.close().await;
    }
}

#[tokio::test]
async fn instructions_are_reported_unless_they_are_not_wanted() {
    let mut server = ours(&[]);
    let mcp = start(server.clone()).await;
    assert_eq!(mcp.instructions("t"), Some("Use it wisely."));
    assert_eq!(mcp.instructions("u"), None);
    mcp.close().await;
    server.instructions = false;
    let mcp = start(server).await;
    assert_eq!(mcp.instructions("t"), None);
    mcp.close().await;
}

#[tokio::test]
async fn the_list_of_tools_does_not_change_under_way() {
    let mcp = start(ours(&[])).await;
    let before = mcp.tools().len();
    assert_eq!(text(&mcp, 1, "grow", json!({})).await, "grown");
    assert_eq!(text(&mcp, 1, "echo", json!({"text": "after"})).await, "after");
    assert_eq!(mcp.tools().len(), before);
    let failure = call(&mcp, 1, "late", json!({})).await.unwrap_err();
    assert_eq!(
        (failure.message.as_str(), failure.may_have_run),
        ("no MCP server has a tool `t__late`", false)
    );
    mcp.close().await;
}

#[tokio::test]
async fn a_server_without_a_handshake_is_found_out_or_named() {
    for protocol in [McpProtocolChoice::Auto, McpProtocolChoice::Modern] {
        let mut server = ours(&["--modern"]);
        server.protocol = protocol;
        let mcp = start(server).await;
        assert_eq!(mcp.instructions("t"), Some("No handshake."));
        assert_eq!(text(&mcp, 1, "echo", json!({"text": "modern"})).await, "modern");
        mcp.close().await;
    }
}

#[tokio::test]
async fn a_tool_that_can_be_called_only_as_a_task_is_not_offered_and_that_is_reported() {
    let network = Network::new(&["--task", "add"]).await;
    let events = Network::new(&["--task", "add", "--sse"]).await;
    for server in [ours(&["--task", "add"]), network.server(), events.server()] {
        let mcp = start(server).await;
        assert_eq!(mcp.tools().len(), 20);
        assert!(!names(&mcp).contains(&"t__add") && names(&mcp).contains(&"t__echo"));
        let notices = mcp.notices();
        assert!(notices.len() == 1 && notices[0].ends_with("they are not offered: `add`"), "{notices:?}");
        mcp.close().await;
    }
}

#[tokio::test]
async fn limits_name_the_tools_that_they_are_for_and_must_be_of_the_server() {
    let mut server = ours(&[]);
    server.tools = only(&["echo", "add", "hang*"]);
    server.max_parallel = McpParallelLimit::ByTool(vec![("hang*".to_owned(), 1), ("add".to_owned(), 3)]);
    let mcp = start(server.clone()).await;
    let limits: Vec<_> = mcp.parallel_call_limits().collect();
    let expected =
        [(vec!["t__hang".to_owned(), "t__hang_twice".to_owned()], 1), (vec!["t__add".to_owned()], 3)];
    assert_eq!(limits, expected);
    mcp.close().await;
    server.max_parallel = McpParallelLimit::ByTool(vec![("substract".to_owned(), 1)]);
    let found = problem(vec![server]).await;
    assert_eq!(found.message, "`max_parallel` of the MCP server `t` names an unknown tool: `substract`");
}
