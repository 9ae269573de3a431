use super::*;

fn environment(name: &str) -> Option<String> {
    matches!(name, "TOKEN" | "ID").then(|| format!("value of {name}"))
}

fn server(text: &str) -> Result<McpServerSettings, Problem> {
    let config: McpServerConfig = toml::from_str(text).unwrap();
    config.resolve_server(Some("s"), Path::new("/cards"), &environment)
}

fn problem(text: &str) -> String {
    let problem = server(text).unwrap_err();
    format!("{} ({})", problem.message, problem.hint.unwrap_or_default())
}

#[test]
fn a_process_gets_its_words_variables_and_folder() {
    let found = server(
        r#"
        command = "node"
        args = ["server.js", "--x"]
        env = { KEY = "a ${TOKEN} b ${ID}", PLAIN = "$HOME ${" }
        cwd = "here"
        timeout = 1.5
        start_timeout = "2m"
        per_row = true
        tools = ["read_*"]
        idempotent = ["read_*"]
        include_instructions = false
        "#,
    )
    .unwrap();
    let McpTransport::Stdio { command, args, env, cwd } = &found.transport else { panic!("{found:?}") };
    assert_eq!((command.as_str(), args.join(" ")), ("node", "server.js --x".to_owned()));
    let values: Vec<_> = env.iter().map(|(name, value)| format!("{name}={}", value.reveal())).collect();
    assert_eq!(values, ["KEY=a value of TOKEN b value of ID", "PLAIN=$HOME ${"]);
    assert_eq!(cwd.as_deref(), Some(Path::new("/cards/here")));
    assert_eq!((found.timeout, found.start_timeout), (Duration::from_millis(1500), Duration::from_secs(120)));
    assert!(found.per_row && !found.instructions);
    assert_eq!(found.idempotent, IdempotentTools::Only(vec!["read_*".to_owned()]));
    assert_eq!((found.resources, found.prompts), (NameFilter::Nothing, NameFilter::Nothing));
}

#[test]
fn a_server_on_the_network_gets_its_headers() {
    let found = server(
        r#"
        url = "https://example.org/mcp"
        headers = { X-Id = "${ID}", authorization = "gone" }
        access_token = "${TOKEN}"
        auth = { client_id = "${ID}", client_secret = "${TOKEN}", scopes = ["a"] }
        protocol_mode = "modern"
        idempotent = true
        "#,
    )
    .unwrap();
    let McpTransport::Http { headers, auth, .. } = &found.transport else { panic!("{found:?}") };
    let values: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {}", value.reveal())).collect();
    assert_eq!(values, ["Authorization: Bearer value of TOKEN", "X-Id: value of ID"]);
    assert_eq!(auth.as_ref().unwrap().client_secret.reveal(), "value of TOKEN");
    assert_eq!((found.protocol, found.idempotent), (McpProtocolChoice::Modern, IdempotentTools::All));
    assert!(!format!("{:?}", found.transport).contains("value of TOKEN"));
}

#[test]
fn a_target_is_a_command_line_a_package_or_an_address() {
    let place = |target: &str| server(&format!("target = '''{target}'''")).unwrap().transport.address_text();
    assert_eq!(place("uvx mcp-server-time --local"), "uvx mcp-server-time --local");
    assert_eq!(place("@scope/server@1 /tmp"), "npx -y @scope/server@1 /tmp");
    assert_eq!(place(" https://example.org/mcp "), "https://example.org/mcp");
    let target = r#"target = "run 'a b' \"c \\\" d\" e\\ f ''""#;
    let McpTransport::Stdio { args, .. } = server(target).unwrap().transport else { panic!("no process") };
    assert_eq!(args, ["a b", "c \" d", "e f", ""]);
}

#[test]
fn a_server_without_a_name_is_called_after_its_place() {
    let name = |target: &str| {
        let config = McpServerConfig { target: Some(target.to_owned()), ..McpServerConfig::default() };
        config.resolve_server(None, Path::new("."), &environment).unwrap().name
    };
    assert_eq!(name("npx -y @modelcontextprotocol/server-everything@2 stdio"), "server-everything");
    assert_eq!(name("python3 /opt/tools/server.py --x"), "server");
    assert_eq!(name("https://example.org:8080/mcp"), "example.org");
    let config =
        McpServerConfig { command: Some("x".to_owned()), name: Some("n".to_owned()), ..Default::default() };
    assert_eq!(config.resolve_server(None, Path::new("."), &environment).unwrap().name, "n");
}

#[test]
fn what_cannot_be_used_is_reported_with_what_to_do() {
    let cases = [
        (
            "url = 'https://x'\nheaders = { X-Key = 'a${MISSING}' }",
            "the MCP server `s` needs `MISSING` for the header `X-Key`, but it is not set (set the \
             environment variable `MISSING`)",
        ),
        (
            "url = 'https://x'\naccess_token = '${MISSING}'",
            "the MCP server `s` needs `MISSING` for `access_token`, but it is not set (set the environment \
             variable `MISSING`)",
        ),
        (
            "command = 'x'\nenv = { KEY = '${MISSING}' }",
            "the MCP server `s` needs `MISSING` for the variable `KEY`, but it is not set (set the \
             environment variable `MISSING`)",
        ),
        (
            "url = 'ftp://x'",
            "the MCP server `s` has an invalid `url` (it must start with `http://` or `https://`)",
        ),
        (
            "url = 'https://x'\nargs = ['y']",
            "the MCP server `s` is a network server and cannot have `args` (remove `args`)",
        ),
        (
            "command = 'x'\nheaders = { A = 'b' }",
            "the MCP server `s` is a process and cannot have `headers` (remove `headers`)",
        ),
        (
            "command = 'x'\ntimeout = 'soon'",
            "`timeout` of the MCP server `s` is not a duration: `soon` (use seconds, or a text such as \
             `500ms`, `30s` or `2m`)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(problem(text), expected);
    }
    assert!(problem("command = 'x'\nurl = 'https://x'").starts_with("the MCP server `s` must have one of"));
    assert!(problem("").starts_with("the MCP server `s` must have one of"));
    assert!(problem("target = \"a 'b\"").contains("a quote that is not closed"));
}

#[test]
fn unknown_fields_are_errors() {
    let error = toml::from_str::<McpServerConfig>("comand = 'x'").unwrap_err();
    assert!(error.message().contains("unknown field `comand`"), "{error}");
}
