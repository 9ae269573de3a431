//! A folder of files as input: every file is a row, and the provider receives the file.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use crate::support::{KEY, Place, each, scripted};
use rowmill_testkit::sample_files::{docx, paragraph, pdf, png};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::Value;

use crate::support;

/// Files that cannot be sent, with the errors of their rows.
const BAD: [(&str, &str); 6] = [
    ("broken-header.pdf", "is broken"),
    ("cut.pdf", "is broken or truncated"),
    ("cut.png", "is broken or truncated"),
    ("empty.pdf", "is empty"),
    ("gone.pdf", "not found"),
    ("huge.png", "is too large"),
];

/// The size of the largest image that either provider takes.
const MOST_OF_IMAGE: u64 = 36 << 20;

/// Two hundred files in three folders: six of them bad, one of these removed by the first call.
fn folder(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for number in 0..97_u8 {
        let text = format!("Invoice {number}\nTotal {number}.50");
        files.insert(format!("papers/2024/invoice-{number}.pdf"), pdf(&[&text, "Terms"]));
        files.insert(format!("papers/scans/scan-{number}.png"), png(number));
    }
    files.insert("papers/broken-header.pdf".into(), b"no PDF at all, whatever it is called".to_vec());
    let whole = pdf(&["page"]);
    files.insert("papers/cut.pdf".into(), whole[..whole.len() / 2].to_vec());
    files.insert("papers/cut.png".into(), png(1)[..30].to_vec());
    files.insert("papers/empty.pdf".into(), Vec::new());
    files.insert("papers/gone.pdf".into(), pdf(&["soon gone"]));
    files.insert("papers/huge.png".into(), png(1));
    for (name, content) in &files {
        place.write(name, content);
    }
    // One that neither provider takes, and no larger: every file is read for its digest.
    let huge = fs::OpenOptions::new().append(true).open(place.path("papers/huge.png")).unwrap();
    huge.set_len(MOST_OF_IMAGE + 1).unwrap();
    files
}

/// A provider that removes `gone.pdf` when it is first called.
fn removing(place: &Arc<Place>) -> Simulator {
    let gone = place.path("papers/gone.pdf");
    let script = SimulatorScript::new().key(KEY).answer_prompts(move |_, _| {
        // It exists only at the first call.
        drop(fs::remove_file(&gone));
        SimulatedAnswer::Text("seen".into())
    });
    Simulator::start_blocking(script)
}

#[test]
fn each_of_two_hundred_files_is_one_row_and_what_was_sent_was_byte_for_byte_the_file() {
    for (model, base) in
        [("openai.gpt-5.4-mini", "OPENAI_BASE_URL"), ("anthropic.claude-haiku-4-5", "ANTHROPIC_BASE_URL")]
    {
        let mut place = Place::new();
        let files = folder(&place);
        place.set("OPENAI_API_KEY", KEY);
        place.set("ANTHROPIC_API_KEY", KEY);
        let place = Arc::new(place);
        let simulator = removing(&place);
        let url =
            if base.starts_with("OPENAI") { format!("{}/v1", simulator.url()) } else { simulator.url() };
        let arguments = ["run", "-i", "papers", "-o", "out.jsonl", "-m", model, "-p", "What is it?"];
        let mut command =
            place.command(&[&arguments[..], &["--parallel", "1", "--archive-inputs", "kept"]].concat());
        support::finish(command.env(base, url).spawn().unwrap()).code(3);

        let envelopes = place.json("out.jsonl");
        assert_eq!(envelopes.len(), 200);
        let bad = |id: &str| BAD.iter().find(|(name, _)| id == format!("papers/{name}"));
        for envelope in &envelopes {
            let id = envelope["id"].as_str().unwrap();
            let message = envelope["error"]["message"].as_str().unwrap_or("ok");
            match bad(id) {
                Some((_, text)) => assert!(message.contains(text), "{model} {id}: {message}"),
                None => assert_eq!(message, "ok", "{model} {id}"),
            }
        }
        let mut sent: Vec<String> =
            simulator.calls().iter().flat_map(|call| &call.files).map(|file| file.sha256.clone()).collect();
        let good = files.iter().filter(|(name, _)| bad(name).is_none());
        let mut expected: Vec<String> = good.clone().map(|(_, content)| digest(content)).collect();
        sent.sort();
        expected.sort();
        assert_eq!(sent, expected, "{model}");
        let kept: Vec<Value> = place.json("kept/index.jsonl");
        assert_eq!(kept.len(), 194);
        for (name, content) in good.take(3) {
            let digest = digest(content);
            let ending = name.rsplit_once('.').unwrap().1;
            let path = format!("kept/{}/{digest}.{ending}", digest.get(..2).unwrap());
            assert_eq!(&fs::read(place.path(&path)).unwrap(), content, "{name}");
        }
    }
}

#[test]
fn a_folder_that_grows_is_worked_on_where_it_is_new_and_copies_are_not_paid_for() {
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY));
    for number in 0..5_u8 {
        place.write(&format!("in/{number}.png"), png(number));
    }
    let run = |more: &[&str]| {
        let flags =
            ["-i", "in", "-o", "out.jsonl", "-m", "openai.gpt-5.4-mini", "-p", "?", "--id", "content"];
        place.run(&[&flags[..], more].concat())
    };
    run(&[]).ok();
    assert_eq!(simulator.calls().len(), 5);
    place.write("in/copy-of-3.png", png(3));
    place.write("in/new.png", png(9));
    fs::rename(place.path("in/1.png"), place.path("in/moved.png")).unwrap();
    run(&["--resume"]).ok().says("skipping 5 finished rows").says("skipped 1 duplicate file");
    assert_eq!(simulator.calls().len(), 6);
    let mut ids: Vec<String> =
        each(&place.json("out.jsonl"), "/id").iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    ids.sort();
    let mut expected: Vec<String> = [0, 1, 2, 3, 4, 9].map(|shade| digest(&png(shade))).to_vec();
    expected.sort();
    assert_eq!(ids, expected);
}

#[test]
fn the_text_of_files_is_sent_where_a_model_takes_none() {
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY));
    place.write("in/a.pdf", pdf(&["Total 12.50"]));
    place.write("in/b.docx", docx(&paragraph("Dear shop")));
    place.write("in/c.html", "<p>Pay <b>now</b></p>");
    place.write("in/d.png", png(1));
    let flags = ["-i", "in", "-o", "out.jsonl", "-m", "openai.gpt-5.4-mini", "-p", "?", "--extract", "text"];
    place.run(&flags).code(3);
    let outcomes: Vec<_> = each(&place.json("out.jsonl"), "/ok");
    assert_eq!(outcomes, [true, true, true, false]);
    let bodies: Vec<String> = simulator.requests().iter().map(|request| request.json().to_string()).collect();
    let all = bodies.join("\n");
    for text in ["Total 12.50", "Dear shop", "Pay now"] {
        assert!(all.contains(text), "{text} is not in {all}");
    }
    assert!(!all.contains("base64"), "{all}");
}

#[test]
fn a_file_that_a_model_does_not_take_is_sent_as_text_by_a_resume_as_its_error_advises() {
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY));
    place.write("in/b.docx", docx(&paragraph("Dear shop")));
    place.write("in/d.png", png(1));
    let flags = ["-i", "in", "-o", "out.jsonl", "-m", "openai.gpt-5.4-mini", "-p", "?"];
    place.run(&flags).code(3);
    assert_eq!(each(&place.json("out.jsonl"), "/error/type")[0], "AttachmentError");
    let as_text = [&flags[..], &["--extract", "text", "--resume"]].concat();
    place.run(&as_text).code(1).says("files: none -> `as text`").says("`--accept-changes`");
    place.run(&[&as_text[..], &["--accept-changes"]].concat()).ok();
    assert_eq!(each(&place.json("out.jsonl"), "/ok"), [true, true]);
    assert_eq!(simulator.stats().requests, 2);
}

#[test]
fn a_field_can_name_the_files_of_a_row_and_a_row_is_never_sent_without() {
    let (simulator, place) = scripted(SimulatorScript::new().key(KEY));
    place.write("data/scan.png", png(7));
    let rows = [
        r#"{"id":"one","scan":"scan.png"}"#,
        r#"{"id":"two","scan":["scan.png","scan.png"]}"#,
        r#"{"id":"none","scan":null}"#,
        r#"{"id":"lost","scan":"nowhere.png"}"#,
        r#"{"id":"bare"}"#,
    ];
    place.write("data/rows.jsonl", rows.join("\n"));
    let flags = ["-i", "data/rows.jsonl", "-o", "out.jsonl", "-m", "openai.gpt-5.4-mini", "-p", "{{id}}"];
    place.run(&[&flags[..], &["--attach", "scan", "--id-field", "id"]].concat()).code(3);
    let envelopes = place.json("out.jsonl");
    assert_eq!(each(&envelopes, "/ok"), [true, true, false, false, false]);
    for envelope in &envelopes[2..] {
        assert_eq!(envelope["error"]["type"], "AttachmentError");
    }
    let mut counts: Vec<_> =
        simulator.calls().iter().map(|call| (call.prompt.clone(), call.files.len())).collect();
    counts.sort();
    assert_eq!(counts, [("one".to_owned(), 1), ("two".to_owned(), 2)]);
}

#[test]
fn a_query_over_documents_sends_files_only_if_they_are_named() {
    let place = Place::new();
    place.write("in/a.png", png(1));
    place.write("in/b.md", "text");
    let flags = ["-i", "in", "-o", "out.jsonl", "-m", "passthrough", "-p", "?", "--overwrite"];
    let run = |more: &[&str]| place.run(&[&flags[..], more].concat());
    run(&["--where", "media_type LIKE 'image/%'"]).ok();
    assert_eq!(each(&place.json("out.jsonl"), "/id"), ["in/a.png"]);
    assert!(place.read("out.jsonl").contains("[file a.png image/png"));
    let query = "SELECT path FROM input WHERE size < 10";
    run(&["--sql", query]).code(2).says("rows without files").says("--attach path");
    run(&["--sql", query, "--attach", "path"]).ok();
    assert!(place.read("out.jsonl").contains("[file b.md"));
    run(&["--columns", "name"]).code(2).says("`--columns` omits");
}

#[cfg(unix)]
#[test]
fn a_file_that_can_be_read_at_last_has_one_envelope() {
    let place = Place::new();
    place.write("in/a.md", "one");
    std::os::unix::fs::symlink(place.path("later.md"), place.path("in/b.md")).unwrap();
    let flags = ["-i", "in", "-o", "out.jsonl", "-m", "passthrough", "-p", "?"];
    place.run(&flags).code(3);
    assert_eq!(each(&place.json("out.jsonl"), "/ok"), [true, false]);
    place.write("later.md", "two");
    place.run(&[&flags[..], &["--resume"]].concat()).ok();
    assert_eq!(each(&place.json("out.jsonl"), "/id"), ["in/a.md", "in/b.md"]);
}

fn digest(content: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
