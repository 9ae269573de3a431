//! Runs each example of this crate, and checks its output and its maximum length.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must fail")]

#[path = "../examples/analyse_code.rs"]
mod analyse_code;
#[path = "../examples/own_provider.rs"]
mod own_provider;
#[path = "../examples/own_source.rs"]
mod own_source;
#[path = "../examples/own_tool_host.rs"]
mod own_tool_host;
#[path = "../examples/stateful_handler.rs"]
mod stateful_handler;
#[path = "../examples/typed_answers.rs"]
mod typed_answers;
#[path = "../examples/worker_per_item.rs"]
mod worker_per_item;

use std::error::Error;
use std::io::Write;

use rowmill_testkit::conformance::{
    AfterRelease, CountingTool, DatasetFacts, ModelFacts, RowNumbering, ToolCase, ToolFacts, check_dataset,
    check_program_model, check_tool_host,
};
use serde_json::json;

type Show = fn(&mut dyn Write) -> Result<(), Box<dyn Error>>;

fn shown(show: Show) -> String {
    let mut out = Vec::new();
    show(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn code_files_are_analysed_with_a_typed_tool() {
    assert_eq!(shown(analyse_code::show), "file1: strcpy\nfile2: nothing\nfile3: gets\n");
}

#[test]
fn questions_have_typed_answers() {
    assert_eq!(shown(typed_answers::show), "4 (1)\nParis (0.99)\nno answer\n");
}

#[test]
fn a_stateful_handler_counts_the_failures_of_every_item() {
    let message =
        "`the rows of `SELECT users`` in 2 turns\n`the rows of `SELECT orders`` in 2 turns\n`` in 3 turns\n";
    assert_eq!(shown(stateful_handler::show), message);
}

#[test]
fn every_item_has_a_worker_that_was_made_for_it() {
    let message = "small: Translate into Norwegian. Hello!
large: Translate into French. Thank you for all the fish.
item 2 failed: nobody speaks the language of letter 2
";
    assert_eq!(shown(worker_per_item::show), message);
}

#[test]
fn an_own_provider_answers_items() {
    let events = "The crier says: GOOD MORNING (2 words heard)
The crier says: GOOD NIGHT (2 words heard)
2 items, 10 words answered
";
    assert_eq!(shown(own_provider::show), events);
}

#[test]
fn an_own_source_gives_rows() {
    let message = "\"Dear Ada,\"
item 1 failed: the paragraph has 97 bytes
\"It is quiet at night.\"
\"Yours, Bo\"
";
    assert_eq!(shown(own_source::show), message);
}

#[test]
fn an_own_tool_host_keeps_the_notes_of_items_apart() {
    assert_eq!(shown(own_tool_host::show), "done after note 3: salt\ndone after note 1: oil\n");
}

#[test]
fn the_mains_of_the_examples_work() {
    let mains = [
        analyse_code::main,
        own_provider::main,
        own_source::main,
        own_tool_host::main,
        stateful_handler::main,
        typed_answers::main,
        worker_per_item::main,
    ];
    mains.into_iter().for_each(|main| main().unwrap());
}

#[test]
fn the_four_examples_of_the_guide_have_less_than_40_lines() {
    for (name, text) in [
        ("analyse_code", include_str!("../examples/analyse_code.rs")),
        ("typed_answers", include_str!("../examples/typed_answers.rs")),
        ("stateful_handler", include_str!("../examples/stateful_handler.rs")),
        ("worker_per_item", include_str!("../examples/worker_per_item.rs")),
    ] {
        assert!(text.lines().count() < 40, "`{name}` has {} lines", text.lines().count());
    }
}

#[tokio::test]
async fn the_own_provider_keeps_the_contract_of_models() {
    let custom_model =
        own_provider::CustomModel { address: own_provider::provider(0).unwrap(), role: String::new() };
    let belongs = |prompt: &str, answer: &str| answer.trim() == prompt.to_uppercase();
    let facts = ModelFacts { belongs: Box::new(belongs), ..ModelFacts::default() };
    assert_eq!(check_program_model(&custom_model, &facts).await, Vec::<String>::new());
}

#[test]
fn the_own_source_keeps_the_contract_of_datasets() {
    let facts = DatasetFacts {
        rows: Some(4),
        bad: Some(vec![2]),
        numbering: RowNumbering::FromOne,
        ..DatasetFacts::default()
    };
    let paragraphs = own_source::Paragraphs(own_source::LETTER);
    assert_eq!(check_dataset(&paragraphs, &facts), Vec::<String>::new());
}

#[tokio::test]
async fn the_own_tool_host_keeps_the_contract_of_hosts() {
    let write = |note: &str| ToolCase::new("write", &json!({"note": note}));
    let facts = ToolFacts {
        fails: Some(write("")),
        counts: Some(CountingTool { case: write("bread"), after_release: AfterRelease::Forgotten }),
        echoes: Some(Box::new(move |number| (write(&format!("echo {number}.")), format!("echo {number}.")))),
        ..ToolFacts::of(write("salt"))
    };
    let host = own_tool_host::Notebooks::default();
    assert_eq!(check_tool_host(&host, &facts).await, Vec::<String>::new());
}
