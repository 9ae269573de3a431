//! The cards of the examples and of the documentation work as written, without a key.

use std::fs;
use std::path::{Path, PathBuf};

use crate::agents_support::with_programs;
use crate::support::Place;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder with a copy of the examples' cards, and rows.
fn with_examples() -> Place {
    let mut place = Place::new();
    with_programs(&mut place);
    for entry in fs::read_dir(root().join("examples/cards")).unwrap() {
        let path = entry.unwrap().path();
        place.write(
            &format!("cards/{}", path.file_name().unwrap().to_str().unwrap()),
            fs::read(&path).unwrap(),
        );
    }
    place.write("rows.jsonl", "{\"review\":\"It broke.\"}\n{\"review\":\"I like it.\"}\n");
    place
}

#[test]
fn every_card_of_the_examples_runs_with_built_in_models() {
    let place = with_examples();
    let mut workers = Vec::new();
    for name in place.names("cards") {
        let stem = name.rsplit_once('.').unwrap();
        let is_card = matches!(stem.1, "md" | "yaml") && stem.0 != "README";
        if is_card && !place.read(&format!("cards/{name}")).contains("tool_only: true") {
            workers.push(stem.0.to_owned());
        }
    }
    assert_eq!(workers.len(), 11, "{workers:?}");
    for worker in workers {
        let flags = ["--agent-card", "cards", "--agent", &worker, "-p", "{{review}}", "--overwrite"];
        place.run_rows(&[&flags[..], &["-m", "simulated"]].concat()).ok();
        assert_eq!(place.json("out.jsonl").len(), 2, "{worker}");
        // Agents that choose, judge or plan need a model that keeps to a schema.
        if !["frontdoor", "plan", "polished", "step-by-step"].contains(&worker.as_str()) {
            place.run_rows(&[&flags[..], &["-m", "passthrough"]].concat()).ok();
        }
    }
}

/// The cards and card fields that the page shows, in order.
fn blocks(language: &str) -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/agent-cards.md")).unwrap();
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_cards_of_the_page_about_cards_run() {
    let mut place = with_examples();
    place.set("DOCS_TOKEN", "secret");
    let server: Vec<String> = rowmill_testkit::mcp_server();
    let mut table = String::from("[mcp.servers.files]\n");
    table.push_str(&format!("command = {:?}\nargs = {:?}\n", server[0], &server[1..]));
    place.write("rowmill.toml", table);
    let cards = blocks("md");
    assert_eq!(cards.len(), 1);
    place.write("shown/card.md", &cards[0]);
    place.run_rows(&["--agent-card", "shown/card.md", "-m", "simulated", "-p", "{{review}}"]).ok();
    let snippets = blocks("yaml");
    assert_eq!(snippets.len(), 2);
    for (number, snippet) in snippets.iter().enumerate() {
        // A child that the worker does not use is parsed but not started.
        place.write(
            &format!("forms/part{number}.yaml"),
            format!("{snippet}\ntool_only: true\n{}", servers(snippet)),
        );
    }
    place.write("forms/worker.yaml", "instruction: Hi.\n");
    place.run_rows(&["--agent-card", "forms", "-m", "simulated", "-p", "{{review}}", "--overwrite"]).ok();
}

/// What a snippet about tools needs to become a complete card.
fn servers(snippet: &str) -> &'static str {
    if snippet.starts_with("tool_policy") { "servers: [files, notes]\n" } else { "" }
}
