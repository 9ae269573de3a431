//! The sources of a run are not overwritten, wherever they are named: by a flag, a card, a server, a
//! row, or an earlier run.

use std::fs;

use serde_json::json;

use crate::paths::{ASK, contents, refused};
use crate::support::{Place, each};

const IO: &[&str] = &["-i", "rows.jsonl", "-o", "out.jsonl"];
const SIDES: [&str; 3] = ["--error-output", "--telemetry-output", "--summary-output"];

fn with_rows() -> Place {
    let place = Place::new();
    place.write_rows(2);
    place
}

#[test]
fn an_export_does_not_replace_the_input_of_the_run() {
    let place = with_rows();
    place.run(&[IO, ASK].concat()).ok();
    let before = place.read("rows.jsonl");
    let ended = place.rowmill(&["export", "out.jsonl", "-o", "rows.jsonl", "--overwrite"]).code(1);
    ended.says("error[RM1303]").says("the input of the run");
    assert_eq!(place.read("rows.jsonl"), before);
}

#[test]
fn files_that_skills_and_functions_may_read_are_not_written_over() {
    let place = with_rows();
    let card = "---\nname: worker\nfunction_tools: [tools.py:look]\nskills: [../skills]\n---\nWork.";
    place.write("cards/worker.md", card);
    place.write("cards/tools.py", "import helper\ndef look(x: str) -> str:\n    \"l\"\n    return x\n");
    place.write("cards/helper.py", "A = 1\n");
    place.write("skills/one/SKILL.md", "---\nname: one\ndescription: d\n---\nguide");
    place.write("skills/one/more/extra.txt", "extra");
    for file in ["cards/helper.py", "skills/one/more/extra.txt"] {
        for flag in SIDES {
            let io = [IO, &["--agent-card", "cards/worker.md", flag, file, "--overwrite"]].concat();
            refused(&place, &io, &["error[RM1303]", flag, file]);
        }
    }
}

#[test]
fn files_that_go_with_rows_are_not_written_over() {
    let place = Place::new();
    place.write("rows.jsonl", "{\"f\":\"a.txt\"}\n{\"f\":[\"a.txt\",\"b.txt\"]}\n");
    place.write("a.txt", "first");
    place.write("b.txt", "second");
    let io = ["-i", "rows.jsonl", "--attach", "f", "--overwrite"];
    refused(&place, &[&io[..], &["-o", "b.txt"]].concat(), &["error[RM1303]", "`--attach`"]);
    for flag in SIDES {
        let side = ["-o", "out.jsonl", flag, "b.txt"];
        refused(&place, &[&io[..], &side].concat(), &["error[RM1303]", flag, "`--attach`"]);
    }
}

#[test]
fn files_that_mcp_servers_are_started_with_are_not_written_over() {
    let place = with_rows();
    place.write("servers/server.py", "print()");
    place.write("servers/conf.json", "{}");
    place.write("main.py", "print()");
    let entry = "[mcp.servers.shop]\ncommand = \"python3\"\nargs = [\"server.py\", \"--config=conf.json\"]\n";
    place.write("rowmill.toml", format!("{entry}cwd = \"servers\"\n"));
    place.write("shop.md", "---\nname: worker\nservers: [shop]\n---\nWork.");
    place.write("own.md", "---\nname: worker\nmcp_connect:\n  own: {target: python3 main.py}\n---\nWork.");
    for (card, server, file) in [
        ("shop.md", "shop", "servers/server.py"),
        ("shop.md", "shop", "servers/conf.json"),
        ("own.md", "own", "main.py"),
    ] {
        let whose = format!("the same file as a file that the MCP server `{server}` is started with");
        let agent = ["-i", "rows.jsonl", "--agent-card", card, "--overwrite"];
        refused(&place, &[&agent[..], &["-o", file]].concat(), &["error[RM1303]: `--output`", &whose]);
        let side = ["-o", "out.jsonl", SIDES[file.len() % 3], file];
        refused(&place, &[&agent[..], &side].concat(), &["error[RM1303]", &whose]);
    }
}

#[test]
fn files_that_go_with_rows_of_a_stream_or_far_down_are_not_written_over() {
    let place = Place::new();
    place.write("b.txt", "mine");
    place.write("c.txt", "other");
    let far = format!(
        "{}{{\"f\":\"file://{}\"}}\n",
        "{\"f\":\"c.txt\"}\n".repeat(100_001),
        place.path("b.txt").display()
    );
    place.write("far.jsonl", &far);
    let attach = ["--attach", "f", "--overwrite", "--parallel", "1"];
    let far = [&["-i", "far.jsonl", "-o", "b.txt"], &attach[..]].concat();
    refused(&place, &far, &["error[RM1303]: `--output`", "`--attach`"]);
    let stream = b"{\"f\":\"c.txt\"}\n{\"f\":\"b.txt\"}\n";
    for output in [&["-o", "b.txt"][..], &["-o", "out.jsonl", "--summary-output", "b.txt"]] {
        let before = contents(&place);
        let ended =
            place.pipe(stream, &[output, &attach, &["--input-format", "jsonl"], ASK].concat()).code(1);
        ended.says("error[RM1303]").says("`--attach`");
        assert!(contents(&place) == before, "a stream is looked through before anything is replaced");
    }
}

#[test]
fn a_row_that_would_send_what_the_run_writes_fails_and_says_so() {
    let place = Place::new();
    place.write("c.txt", "other");
    let rows = b"{\"f\":\"c.txt\"}\n{\"f\":\"out.jsonl\"}\n";
    let attach = ["--attach", "f", "-o", "out.jsonl", "--input-format", "jsonl"];
    place.pipe(rows, &[&attach[..], ASK].concat()).code(3);
    let errors = each(&place.json("out.jsonl"), "/error/message");
    assert_eq!(errors[0], json!(null));
    assert_eq!(errors[1], json!("`--output` must not point to the same file as `--attach`: `out.jsonl`"));
}

#[test]
fn an_export_does_not_replace_what_the_run_was_made_from() {
    let place = with_rows();
    place.write("parts/a.jsonl", "{\"n\":1}\n");
    place.write("t.md", "Say {{n}}");
    place.write("instruction.md", "Be kind.");
    place.write("schema.json", "{}");
    place.write("cards/worker.md", "---\nname: worker\n---\nUse {{file:shared.md}}.");
    place.write("cards/shared.md", "what is shared");
    place.write("rowmill.toml", "[run]\nmodel = \"passthrough\"\n");
    let texts = ["--template", "t.md", "--instruction", "instruction.md", "--json-schema", "schema.json"];
    place.run(&[&["-i", "parts/*.jsonl", "-o", "plain.jsonl"], &texts[..], ASK].concat());
    place.run(&[IO, &["--agent-card", "cards", "--agent", "worker"], ASK].concat()).ok();
    let before = contents(&place);
    for (run, file) in [
        ("plain.jsonl", "t.md"),
        ("plain.jsonl", "instruction.md"),
        ("plain.jsonl", "schema.json"),
        ("plain.jsonl", "parts/a.jsonl"),
        ("plain.jsonl", "rowmill.toml"),
        ("out.jsonl", "cards/worker.md"),
        ("out.jsonl", "cards/shared.md"),
    ] {
        let export = [
            "export",
            &place.path(run).display().to_string(),
            "--overwrite",
            "-o",
            &place.path(file).display().to_string(),
            "--output-format",
            "jsonl",
        ];
        // From another folder, because paths are stored in full and not as written.
        let ended = place.rowmill_in("tmp", &export).code(1);
        ended.says("error[RM1303]: `--output` must not point to the same file as").says("the run");
        assert!(contents(&place) == before, "{file}");
    }
}

#[test]
fn the_log_of_the_simulator_replaces_nothing_but_such_a_log() {
    let place = Place::new();
    place.write("notes.md", "mine\n");
    let ended = place.rowmill(&["simulate", "--log-requests", "notes.md"]).code(1);
    ended.says("error[RM1301]: `notes.md`, given to `--log-requests`, is not a log of calls");
    assert_eq!(fs::read(place.path("notes.md")).unwrap(), b"mine\n");
}

#[test]
fn an_export_does_not_replace_files_that_went_with_rows() {
    let place = Place::new();
    place.write("rows.jsonl", "{\"f\":\"a.txt\"}\n{\"f\":[\"a.txt\",\"b.txt\"]}\n");
    place.write("a.txt", "first");
    place.write("b.txt", "second");
    let attach = ["--attach", "f"];
    place.run(&[&["-i", "rows.jsonl", "-o", "out.jsonl"], &attach[..], ASK].concat()).ok();
    let stream = [&["-o", "streamed.jsonl", "--input-format", "jsonl"], &attach[..], ASK].concat();
    place.pipe(place.read("rows.jsonl").as_bytes(), &stream).ok();
    let before = contents(&place);
    for run in ["out.jsonl", "streamed.jsonl"] {
        for file in ["a.txt", "b.txt"] {
            let export = ["export", run, "--overwrite", "-o", file, "--output-format", "csv"];
            let ended = place.rowmill(&export).code(1).says("error[RM1303]: `--output` must not point");
            assert!(contents(&place) == before, "{run} {file}: {}", ended.stderr);
        }
    }
}
