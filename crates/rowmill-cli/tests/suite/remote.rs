//! Inputs and texts from the hub and the web, through the command.

use crate::support::{Place, numbered_rows};
use rowmill_testkit::hub::{AnswerDamage, FileKind, HubPort, HubSimulator, PlainPage, ScriptedDamage};

const SET: &str = "datasets/o/n";

fn place_with(hub: &HubSimulator) -> Place {
    let mut place = Place::new();
    place.set("HF_ENDPOINT", &hub.url());
    place
}

fn bodies(hub: &HubSimulator) -> usize {
    hub.requests().iter().filter(|request| request.host == HubPort::Store).count()
}

#[test]
fn rows_of_a_dataset_are_fetched_once_and_counted() {
    let hub = HubSimulator::start();
    let place = place_with(&hub);
    hub.put(SET, "README.md", "about", FileKind::Small);
    hub.put(SET, "data/rows.jsonl", numbered_rows(300), FileKind::Large);
    for output in ["one.jsonl", "two.jsonl"] {
        let ended =
            place.run(&["-i", "hf://datasets/o/n", "-o", output, "-m", "passthrough", "-p", "{{n}}"]).ok();
        assert_eq!(ended.summary()["input"], "hf://datasets/o/n");
        let results: Vec<_> = place.json(output).iter().map(|row| row["result"].clone()).collect();
        assert_eq!(results.len(), 300);
        assert_eq!((&results[0], &results[299]), (&"1".into(), &"300".into()));
    }
    assert_eq!(bodies(&hub), 1);
    assert!(place.exists(".cache/rowmill/downloads"));
}

#[test]
fn a_cut_download_goes_on() {
    let hub = HubSimulator::start();
    let place = place_with(&hub);
    hub.put(SET, "rows.jsonl", numbered_rows(5000), FileKind::Large);
    hub.add_damage(ScriptedDamage {
        host: HubPort::Store,
        path: "/".into(),
        damage: AnswerDamage::CutAfter(20_000),
        times: Some(1),
    });
    place
        .run(&["-i", "hf://datasets/o/n/rows.jsonl", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"])
        .ok();
    assert_eq!(place.json("out.jsonl").len(), 5000);
    let requests = hub.requests();
    let bodies = requests.iter().filter(|request| request.host == HubPort::Store);
    let ranges: Vec<_> = bodies.map(|request| request.seen.header("range")).collect();
    assert_eq!(ranges, [None, Some("bytes=20000-")]);
}

#[test]
fn a_resume_notices_that_the_dataset_changed() {
    let hub = HubSimulator::start();
    let place = place_with(&hub);
    hub.put(SET, "rows.jsonl", numbered_rows(10), FileKind::Small);
    let run = ["-i", "hf://datasets/o/n", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"];
    place.run(&[&run[..], &["--limit", "4"]].concat()).ok();
    // Neither another file nor another cache counts as a change.
    hub.put(SET, "README.md", "about", FileKind::Small);
    place.run(&[&run[..], &["--limit", "6", "--resume"]].concat()).ok();
    assert_eq!(place.json("out.jsonl").len(), 6);
    hub.put(SET, "rows.jsonl", numbered_rows(11), FileKind::Small);
    place.run(&[&run[..], &["--resume"]].concat()).code(1).says("RM1306");
}

#[test]
fn what_is_ambiguous_or_missing_stops_the_command_before_anything_is_sent() {
    let hub = HubSimulator::start();
    let mut place = place_with(&hub);
    hub.put(SET, "a.csv", "n\n1\n", FileKind::Small);
    hub.put(SET, "b.csv", "n\n1\n", FileKind::Small);
    let run = |place: &Place, input: &str| {
        place.run(&["-i", input, "-o", "out.jsonl", "-m", "passthrough"]).code(1)
    };
    run(&place, "hf://datasets/o/n").says("RM1006").says("`a.csv`, `b.csv`").says("hf://datasets/o/n/a.csv");
    run(&place, "hf://datasets/o/n/c.csv").says("RM1001").says("`o/n` has no file `c.csv`");
    run(&place, "hf://models/o/n/c.csv").says("rows can only be read from datasets");
    place.set("HF_TOKEN", "hf_secret");
    let ended = run(&place, "hf://datasets/o/none").says("private repositories of others look the same");
    assert!(!ended.stderr.contains("hf_secret"));
    assert!(!place.exists("out.jsonl"));
}

#[test]
fn rows_come_from_the_web_too() {
    let hub = HubSimulator::start();
    let place = place_with(&hub);
    let headers = vec![("content-type".to_owned(), "text/csv".to_owned())];
    hub.page("/export", PlainPage { headers, body: b"n\n7\n8\n".to_vec(), ..PlainPage::default() });
    let input = format!("{}/export?key=secret", hub.url());
    let ended = place.run(&["-i", &input, "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"]).ok();
    assert_eq!(place.json("out.jsonl")[1]["result"], "8");
    assert!(!(ended.stdout + &ended.stderr).contains("secret"));
}

#[test]
fn a_template_of_the_hub_is_used() {
    let hub = HubSimulator::start();
    let place = place_with(&hub);
    hub.put("o/model", "prompts/ask.md", "Say {{n}}", FileKind::Small);
    place.write_rows(1);
    place.run_rows(&["-m", "passthrough", "--template", "hf://o/model/prompts/ask.md"]).ok();
    assert_eq!(place.json("out.jsonl")[0]["result"], "Say 1");
    place
        .run_rows(&["-m", "passthrough", "--overwrite", "--template", "hf://o/model/none.md"])
        .code(1)
        .says("cannot get the text for `--template`");
}
