//! Servers that do not start stop the run before its first row.

use rowmill_testkit::{Simulator, SimulatorScript};

use crate::mcp::kit::{OwnServer, card, entry, files, home, own_entry, processes, run};

/// An address without a server: a port that was found to be free may be taken a moment later.
const NOBODY: &str = "127.0.0.1:1";

const SECRET: &str = "planted-4711-secret";

/// Runs two rows with a server that works and one that does not; checks that the only effect is this
/// error.
#[track_caller]
fn refused(bad: &str, texts: &[&str]) {
    let config = [own_entry("good", &[], ""), bad.to_owned()].concat();
    let home = home(2, &config, &card("servers: [good, bad]"));
    let simulator = Simulator::start_blocking(SimulatorScript::new());

    let ended = run(&home, &simulator).env("SECRET", SECRET).ends_with(1);

    ended.says(texts);
    assert_eq!(ended.err.matches("error[").count(), 1, "{}", ended.err);
    assert!(!ended.err.contains(SECRET), "{}", ended.err);
    assert_eq!(simulator.stats().requests, 0);
    assert_eq!(processes(&home), []);
    let left = files(&home.path("")).len();
    assert_eq!(left, 3, "the rows, the configuration and the card: {:?}", files(&home.path("")));
}

#[test]
fn a_program_that_is_not_there_or_does_not_work_is_one_error_before_the_first_row() {
    refused(
        &entry("bad", &["/no/such/program"], ""),
        &["the MCP server `bad` cannot be started: `/no/such/program`", "No such file or directory"],
    );
    refused(
        &own_entry("bad", &["--exit", "7"], "env = { TEST_SECRET = \"${SECRET}\" }"),
        &[
            "the MCP server `bad` exited before it answered",
            "it exited with code 7",
            "cannot open the database (token ***)",
        ],
    );
    refused(
        &own_entry("bad", &["--silent"], "start_timeout = \"200ms\""),
        &["the MCP server `bad` did not answer within 200 ms", "raise `start_timeout` of `bad`"],
    );
    refused(&own_entry("bad", &[], "tools = [\"ehco\"]"), &["`bad`", "ehco"]);
}

#[test]
fn an_address_where_nothing_is_or_that_refuses_is_one_error_before_the_first_row() {
    let nobody = format!("[mcp.servers.bad]\nurl = \"http://{NOBODY}/mcp\"\n");
    refused(&nobody, &["the MCP server `bad` does not answer", "start the server or correct its `url`"]);

    let server = OwnServer::start(&["--token", "another"]);
    let entry = format!("[mcp.servers.bad]\nurl = \"{}\"\naccess_token = \"${{SECRET}}\"\n", server.url);
    refused(&entry, &["the MCP server `bad` asks for a credential (HTTP 401)", "set `access_token`"]);
    refused(&entry.replace("SECRET", "NOT_SET"), &["`bad`", "access_token", "NOT_SET"]);
}

#[test]
fn what_a_card_wants_and_nobody_has_is_reported_with_what_there_is() {
    let home = home(1, &own_entry("notes", &[], ""), &card("servers: [notes]\ntools: {notes: [ehco]}"));
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let ended = run(&home, &simulator).ends_with(1);
    ended.says(&["the MCP server `notes` has no tool `ehco`", "`echo`"]);
    assert_eq!((simulator.stats().requests, processes(&home)), (0, Vec::new()));

    home.write("worker.md", &card("servers: [nodes]"));
    let ended = run(&home, &simulator).ends_with(1);
    ended.says(&["line 3: uses the MCP server `nodes`, which is not in the configuration", "defined: notes"]);
    assert_eq!(simulator.stats().requests, 0);
}

#[test]
fn errors_show_no_query_user_argument_or_header_that_came_from_a_variable() {
    let url = format!("http://${{WHO}}:${{SECRET}}@{NOBODY}/mcp?key=${{SHORT}}&more=${{SECRET}}");
    let network = format!("mcp_connect:\n  bad:\n    url: {url}\n    headers: {{X-Shop: \"${{SHOP}}\"}}");
    let program = "mcp_connect:\n  bad:\n    command: /no/such/program\n    args: [--dsn, \"${SHOP}/db\", --api-key, \"${SHORT}\"]";
    let path = format!("mcp_connect:\n  bad:\n    url: http://{NOBODY}/${{SHORT}}/${{SECRET}}/mcp");
    for (fields, place) in [
        (network.as_str(), format!("does not answer: `http://{NOBODY}/mcp?***`")),
        (path.as_str(), format!("does not answer: `http://{NOBODY}/***/***/mcp`")),
        (program, "cannot be started: `/no/such/program --dsn ***/db --api-key ***`".to_owned()),
    ] {
        let home = home(1, "", &card(fields));
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let variables =
            [("SECRET", SECRET), ("WHO", "ann-from-sales"), ("SHORT", "x7q"), ("SHOP", "corner-shop")];
        let run = variables.iter().fold(run(&home, &simulator), |run, (name, value)| run.env(name, value));
        let ended = run.ends_with(1);
        ended.says(&[&place]);
        for (name, value) in variables {
            assert!(!ended.err.contains(value), "{name} is in {}", ended.err);
        }
    }
}

#[test]
fn a_header_that_came_from_a_variable_is_not_shown_where_the_server_repeats_it() {
    // As an answer in the protocol, and as an HTML page.
    for flags in [&["--repeat", "X-Shop"][..], &["--repeat", "X-Shop", "--status", "400"]] {
        let server = OwnServer::start(flags);
        let fields = format!("    url: {}\n    headers: {{X-Shop: \"${{SHOP}}\"}}", server.url);
        let home = home(1, "", &card(&format!("mcp_connect:\n  bad:\n{fields}")));
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let ended = run(&home, &simulator).env("SHOP", "corner-shop").ends_with(1);
        ended.says(&["the MCP server `bad`", "nothing is known of ***"]);
        assert!(!ended.err.contains("corner-shop"), "{}", ended.err);
        assert_eq!(simulator.stats().requests, 0);
    }
}

#[test]
fn what_stands_in_the_wrong_field_is_not_shown() {
    let text = "mcp_connect:\n  bad:\n    command: \"true\"\n    args: \"--api-key ${SECRET}\"";
    let number =
        "mcp_connect:\n  bad:\n    url: http://x/mcp\n    auth: {client_id: me, client_secret: 47114711}";
    let address = "mcp_connect:\n  bad:\n    url: ${SECRET}";
    let written = format!("[mcp.servers.bad]\nurl = \"http://x/mcp\"\nheaders = \"X-Key: {SECRET}\"\n");
    for (config, fields, expected) in [
        ("", text, "write `args: […]`"),
        ("", number, "invalid type: integer, expected a string"),
        ("", address, "has an invalid `url`"),
        (written.as_str(), "servers: [bad]", "invalid type: string, expected a map"),
    ] {
        let home = home(1, config, &card(fields));
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        let ended = run(&home, &simulator).env("SECRET", SECRET).ends_with(1);
        ended.says(&[expected]);
        assert!(!ended.err.contains(SECRET) && !ended.err.contains("47114711"), "{}", ended.err);
    }
}

#[test]
fn what_a_variable_put_into_a_server_of_fast_agent_is_not_shown() {
    let home = home(1, "", &card("servers: [bad]"));
    let server =
        "mcp:\n  servers:\n    bad:\n      command: /no/such/program\n      args: [--dsn, \"${SHOP}/db\"]\n";
    home.write("fastagent.config.yaml", server);
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let ended = run(&home, &simulator).env("SHOP", "corner-shop").ends_with(1);
    ended.says(&["cannot be started: `/no/such/program --dsn ***/db`"]);
    assert!(!ended.err.contains("corner-shop"), "{}", ended.err);
}
