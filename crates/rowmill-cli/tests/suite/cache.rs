//! `rowmill cache`, with stores that were created through the library.

use std::fs;
use std::sync::Arc;

use crate::support::{Place, keys};
use rowmill_core::answer_key::answer_key;
use rowmill_core::ports::{AnswerStore, StoredAnswer};
use rowmill_store::answers::SqliteAnswerStore;
use rowmill_types::{Message, TokenUsage};
use rusqlite::Connection;
use serde_json::{Value, json};

/// A place with a store of 1,000 answers in `answers/`.
fn filled() -> Place {
    let place = Place::new();
    let store =
        SqliteAnswerStore::open(&place.path("answers"), Arc::new(|message| panic!("{message}"))).unwrap();
    for number in 0..1_000 {
        let key = answer_key("simulated", &[Message::user(format!("row {number}"))]);
        let usage = TokenUsage { input: 1_000, output: 20, ..TokenUsage::default() };
        let text = format!("{number:0500}");
        store.store(key, &StoredAnswer { text, usage: Some(usage), model: Some("small".to_owned()) });
    }
    place
}

fn file(place: &Place) -> Connection {
    Connection::open(place.path("answers/answers.sqlite")).unwrap()
}

fn shown(place: &Place) -> Value {
    place.rowmill(&["cache", "show", "answers", "--json"]).ok().summary()
}

#[test]
fn show_tells_how_much_is_kept_how_old_it_is_and_what_it_saves() {
    let place = filled();
    file(&place)
        .execute_batch(
            "UPDATE answers SET created_at = 1700000000 WHERE id = 1;
             UPDATE answers SET created_at = 1800000000 WHERE id > 1;
             INSERT INTO uses VALUES (1, 1800000000, 2), (2, 1800000000, 1)",
        )
        .unwrap();
    let ended = place.rowmill(&["cache", "show", "answers/"]).ok();
    assert_eq!(ended.stderr, "");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "cache:   answers/");
    assert!(lines[1].starts_with("answers: 1,000 (521 kB of text, file size "), "{}", lines[1]);
    assert_eq!(
        lines[2..],
        [
            "stored:  2023-11-14T22:13:20Z to 2027-01-15T08:00:00Z",
            "tokens:  1,000,000 in, 20,000 out, saved if every answer is reused once",
            "hits:    3; tokens saved: 3,000 in, 60 out",
        ]
    );
}

#[test]
fn show_as_json_has_every_number() {
    let place = filled();
    let whole = shown(&place);
    assert_eq!(keys(&whole), ["entries", "bytes", "file_bytes", "oldest", "newest", "hits", "kept", "saved"]);
    assert_eq!(
        (&whole["entries"], &whole["bytes"], &whole["hits"]),
        (&json!(1000), &json!(521_000), &json!(0))
    );
    assert_eq!(
        whole["kept"],
        json!({"input": 1_000_000, "cached": 0, "cache_write": 0, "output": 20_000, "reasoning": 0})
    );
    let size = fs::metadata(place.path("answers/answers.sqlite")).unwrap().len();
    assert_eq!(whole["file_bytes"], json!(size));
}

#[test]
fn prune_removes_what_it_is_asked_to_and_reports_what_was_removed() {
    let place = filled();
    let message = |arguments: &[&str]| {
        let ended = place.rowmill(&[&["cache", "prune", "answers"], arguments].concat()).ok();
        assert_eq!(ended.stderr, "");
        ended.stdout
    };
    assert!(message(&["--older-than", "30d"]).starts_with("nothing removed; 1,000 answers left, file size "));
    file(&place)
        .execute("UPDATE answers SET created_at = created_at - 31 * 86400 WHERE id <= 10", [])
        .unwrap();
    let removed = "removed 10 answers (5.2 kB of text); 990 answers left, file size ";
    assert!(message(&["--older-than", "30d"]).starts_with(removed));

    message(&["--older-than", "8w", "--max-size", "200kB"]);
    let left = shown(&place);
    assert!(left["file_bytes"].as_u64().unwrap() <= 200_000, "{left}");
    assert!((200..990).contains(&left["entries"].as_u64().unwrap()), "{left}");

    assert!(message(&["--all"]).contains("; 0 answers left, file size "));
    assert_eq!(shown(&place)["entries"], json!(0));
    assert_eq!(place.rowmill(&["cache", "show", "answers"]).ok().stdout.lines().count(), 2);
}

#[test]
fn prune_wants_to_know_what_to_remove() {
    let place = filled();
    let prune = |arguments: &[&str]| place.rowmill(&[&["cache", "prune", "answers"], arguments].concat());
    prune(&[]).code(2).says("--older-than <TIME>|--max-size <SIZE>|--all");
    prune(&["--all", "--max-size", "1GB"]).code(2).says("cannot be used with");
    prune(&["--older-than", "old"]).code(2).says("must be a duration such as `12h`, `30d` or `8w`");
    prune(&["--max-size", "big"]).code(2).says("must be a size such as `500MB`");
    assert_eq!(shown(&place)["entries"], json!(1000));
}

#[test]
fn a_folder_without_a_store_is_reported_and_nothing_is_made() {
    let place = Place::new();
    for arguments in [["cache", "show", "answers"].as_slice(), &["cache", "prune", "answers", "--all"]] {
        place.rowmill(arguments).code(1).says("error[RM1501]: there is no answer cache in `answers`");
    }
    assert!(!place.exists("answers"));
    place.write("answers/answers.sqlite", "something else, and quite long at that\n".repeat(200));
    let ended = place.rowmill(&["cache", "show", "answers"]).code(1);
    ended.says("`answers/answers.sqlite` is not an answer cache").says("help: choose another folder");
}

#[test]
fn every_part_of_the_command_has_help_with_examples() {
    let place = Place::new();
    for (command, example) in [
        ("show", "rowmill cache show answers/ --json"),
        ("prune", "rowmill cache prune answers/ --older-than 30d"),
    ] {
        for flag in ["--help", "-h"] {
            let help = place.rowmill(&["cache", command, flag]).ok().stdout;
            assert!(help.contains("Examples:") && help.contains(example), "{help}");
        }
    }
}
