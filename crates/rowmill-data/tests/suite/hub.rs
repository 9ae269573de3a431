//! Datasets of the hub: which file is selected, who may read it, and whether it arrived intact.

use crate::remote_support::{Machine, bytes, header};
use rowmill_data::{FetchEventKind, FetchPurpose, Fetcher, load_text};
use rowmill_http::HttpClient;
use rowmill_testkit::hub::{AnswerDamage, FileKind, HubPort};
use rowmill_types::{ProblemCode, Setting};

const SET: &str = "datasets/o/n";
const ROWS: &[u8] = b"{\"n\":1}\n";

#[tokio::test]
async fn small_and_large_files_come_by_their_paths_with_the_token_for_the_hub_alone() {
    for kind in [FileKind::Small, FileKind::Large] {
        let machine = Machine::new().with_token("hf_secret");
        machine.hub.put(SET, "data/rows é.jsonl", ROWS, kind);
        machine.hub.protect(SET, "hf_secret");
        let (name, content) = machine.content("hf://datasets/o/n/data/rows é.jsonl").await;
        assert_eq!((name.as_str(), content.as_slice()), ("data/rows é.jsonl", ROWS));
        let requests = machine.hub.requests();
        assert_eq!(requests.iter().any(|request| request.host == HubPort::Store), kind == FileKind::Large);
        for request in requests {
            let expected = (request.host == HubPort::Hub).then_some("Bearer hf_secret");
            assert_eq!(request.seen.header("authorization"), expected, "{}", request.seen.path);
        }
    }
}

#[tokio::test]
async fn a_file_is_fetched_again_only_when_it_changed() {
    let machine = Machine::new();
    let first = machine.hub.put(SET, "rows.jsonl", ROWS, FileKind::Large);
    let address = "hf://datasets/o/n/rows.jsonl";
    let list = machine.rows(address).await.unwrap();
    assert_eq!(list.name, address);
    assert!(machine.asked().iter().any(|asked| asked.starts_with("GET")));

    // A commit that changes another file changes nothing here.
    machine.hub.put(SET, "README.md", "hi", FileKind::Small);
    assert_eq!(machine.rows(address).await.unwrap(), list);
    assert_eq!(machine.asked(), ["HEAD /datasets/o/n/resolve/main/rows.jsonl"]);

    machine.hub.put(SET, "rows.jsonl", "{}\n", FileKind::Large);
    let changed = machine.rows(address).await.unwrap();
    assert_ne!(changed.identity, list.identity);
    machine.asked();

    // The content of a commit never changes, so no request is sent.
    let pinned = machine.rows(&format!("{address}?revision={first}")).await.unwrap();
    assert_eq!((pinned.identity, pinned.files), (list.identity, list.files));
    assert!(machine.asked().is_empty());
}

#[tokio::test]
async fn revisions_are_branches_tags_and_commits() {
    let machine = Machine::new();
    let commit = machine.hub.put(SET, "rows.jsonl", "1", FileKind::Small);
    machine.hub.tag(SET, "v/1");
    machine.hub.put(SET, "rows.jsonl", "2", FileKind::Small);
    for (address, expected) in [
        ("hf://datasets/o/n/rows.jsonl", "2"),
        ("hf://datasets/o/n/rows.jsonl?revision=v/1", "1"),
        ("hf://datasets/o/n@v%2F1/rows.jsonl", "1"),
        ("hf://datasets/o/n?revision=v/1", "1"),
        (&format!("hf://datasets/o/n@{commit}"), "1"),
    ] {
        assert_eq!(machine.content(address).await.1, expected.as_bytes(), "{address}");
    }
    machine.asked();
    assert_eq!(machine.content(&format!("hf://datasets/o/n@{commit}")).await.1, b"1");
    assert!(machine.asked().is_empty());
}

#[tokio::test]
async fn the_one_file_with_rows_is_the_dataset() {
    for (files, expected) in [
        (&["README.md", "data/rows.csv.gz", "dataset_infos.json"][..], "data/rows.csv.gz"),
        (&["a.tsv", "labels.json", ".cache/b.jsonl"], "a.tsv"),
        (&["rows.json", "dataset_info.json"], "rows.json"),
    ] {
        let machine = Machine::new();
        machine.hub.list_in_pages_of(1);
        for path in files {
            machine.hub.put(SET, path, path, FileKind::Small);
        }
        machine.hub.convert(SET, "default", "train", &[b"never"]);
        let (name, content) = machine.content("hf://datasets/o/n").await;
        assert_eq!((name.as_str(), content.as_slice()), (expected, expected.as_bytes()));
    }
    let machine = Machine::new();
    machine.hub.put("datasets/squad", "rows.jsonl", ROWS, FileKind::Large);
    assert_eq!(machine.content("hf://datasets/squad").await.1, ROWS);
}

#[tokio::test]
async fn several_files_with_rows_are_listed_and_one_must_be_chosen() {
    let machine = Machine::new();
    machine.hub.list_in_pages_of(3);
    for at in 1..=7 {
        machine.hub.put(SET, &format!("data/{at}.jsonl"), at.to_string(), FileKind::Large);
    }
    let problem = machine.refused("hf://datasets/o/n").await;
    assert_eq!(problem.code, ProblemCode::InputAmbiguous);
    assert_eq!(
        problem.message,
        "`hf://datasets/o/n` has 7 files with rows: `data/1.jsonl`, `data/2.jsonl`, `data/3.jsonl`, \
         `data/4.jsonl`, `data/5.jsonl`, and 2 more"
    );
    let hint = problem.hint.unwrap();
    assert!(
        hint.contains("`hf://datasets/o/n/data/1.jsonl`") && hint.contains("?config=…&split=…"),
        "{hint}"
    );

    let list = machine.rows("hf://datasets/o/n/data/[1-5].jso*").await.unwrap();
    let names: Vec<_> = list.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["data/1.jsonl", "data/2.jsonl", "data/3.jsonl", "data/4.jsonl", "data/5.jsonl"]);
    for (at, file) in list.files.iter().enumerate() {
        assert_eq!(std::fs::read_to_string(&file.path).unwrap(), (at + 1).to_string());
    }
    assert!(machine.refused("hf://datasets/o/n/*.jsonl").await.message.contains("no file of `o/n` matches"));
}

#[tokio::test]
async fn a_split_of_the_converted_dataset_is_all_its_files_in_order() {
    let machine = Machine::new();
    machine.hub.put(SET, "script.py", "", FileKind::Small);
    machine.hub.convert(SET, "default", "train", &[b"P0", b"P1", b"P2"]);
    for (address, purpose) in [
        ("hf://datasets/o/n", FetchPurpose::Rows),
        ("hf://datasets/o/n?split=train", FetchPurpose::Rows),
        ("hf://datasets/o/n?config=default", FetchPurpose::Sql),
    ] {
        let list = machine.bring(address, purpose).await.unwrap();
        let names: Vec<_> = list.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["default/train/0.parquet", "default/train/1.parquet", "default/train/2.parquet"]);
        for (at, file) in list.files.iter().enumerate() {
            assert_eq!(std::fs::read_to_string(&file.path).unwrap(), format!("P{at}"));
            assert_eq!(file.path.extension().unwrap(), "parquet");
        }
    }
    machine.hub.put(SET, "rows.jsonl", ROWS, FileKind::Small);
    assert_eq!(machine.bring("hf://datasets/o/n", FetchPurpose::Sql).await.unwrap().files.len(), 3);
    assert_eq!(machine.bring("hf://datasets/o/n", FetchPurpose::Rows).await.unwrap().files.len(), 1);
    assert_eq!(
        machine.bring("hf://datasets/o/n/rows.jsonl", FetchPurpose::Sql).await.unwrap().files.len(),
        1
    );
}

#[tokio::test]
async fn configurations_and_splits_are_chosen_and_never_guessed() {
    let machine = Machine::new();
    machine.hub.convert(SET, "en", "train", &[b"1"]);
    machine.hub.convert(SET, "en", "test", &[b"2"]);
    machine.hub.convert(SET, "de", "train", &[b"3"]);
    machine.hub.convert(SET, "big", "partial-train", &[b"4"]);
    for (query, expected) in
        [("?config=en&split=test", "2"), ("?config=de", "3"), ("?split=train&config=big", "4")]
    {
        let (_, content) = machine.content(&format!("hf://datasets/o/n{query}")).await;
        assert_eq!(content, expected.as_bytes(), "{query}");
    }
    assert!(
        machine
            .steps()
            .iter()
            .any(|step| matches!(step, FetchEventKind::Warning(text) if text.contains("only the beginning")))
    );
    for (query, why) in [
        ("?split=train", "has several configurations"),
        ("?config=en", "has several splits in configuration `en`"),
        ("?config=fr", "has no configuration `fr`"),
        ("?config=de&split=test", "has no split `test` in configuration `de`"),
    ] {
        let problem = machine.refused(&format!("hf://datasets/o/n{query}")).await;
        assert_eq!(problem.code, ProblemCode::InputAmbiguous);
        assert!(problem.message.contains(why), "{}", problem.message);
        assert!(
            problem
                .message
                .contains("`config=en&split=train`, `config=en&split=test`, `config=de&split=train`")
        );
        assert!(problem.hint.unwrap().contains("`hf://datasets/o/n?config=en&split=train`"));
    }
    let problem = machine.refused("hf://datasets/o/n?config=de&revision=v1").await;
    assert!(problem.message.contains("only the newest one"), "{}", problem.message);
}

#[tokio::test]
async fn what_is_not_there_or_not_allowed_is_reported_with_what_to_do() {
    let machine = Machine::new();
    machine.hub.put(SET, "rows.jsonl", ROWS, FileKind::Small);
    machine.hub.put("datasets/o/private", "rows.jsonl", ROWS, FileKind::Small);
    machine.hub.protect("datasets/o/private", "hf_right");
    machine.hub.put("datasets/o/gated", "rows.jsonl", ROWS, FileKind::Small);
    machine.hub.gate("datasets/o/gated");
    let cases = [
        (
            "hf://datasets/o/n/no.jsonl",
            "`o/n` has no file `no.jsonl` at revision `main`",
            "for what is available",
        ),
        ("hf://datasets/o/n@v9/rows.jsonl", "`o/n` has no revision `v9`", "for what is available"),
        ("hf://datasets/o/n?revision=v9", "`o/n` has no revision `v9`", "for what is available"),
        (
            "hf://datasets/o/private",
            "denied access to `hf://datasets/o/private` with status 401",
            "set `HF_TOKEN`",
        ),
        ("hf://datasets/o/none/a.csv", "with status 401", "check the name"),
        (
            "hf://datasets/o/gated/rows.jsonl",
            "accept its conditions",
            "/datasets/o/gated, then set `HF_TOKEN`",
        ),
        (
            "hf://datasets/o/n?split=train",
            "no converted Parquet for a dataset `o/n`",
            "give one of its files",
        ),
    ];
    for (address, message, hint) in cases {
        let problem = machine.refused(address).await;
        assert!(problem.message.contains(message), "{address}: {}", problem.message);
        assert!(problem.hint.as_ref().unwrap().contains(hint), "{address}: {problem:?}");
    }

    let machine = machine.with_token("hf_wrong");
    for (address, message, hint) in [
        (
            "hf://datasets/o/private/rows.jsonl",
            "there is no repository `o/private`",
            "private repositories of others look the same",
        ),
        ("hf://datasets/o/gated", "accept its conditions", "with the account that the token belongs to"),
    ] {
        let problem = machine.refused(address).await;
        assert!(problem.message.contains(message), "{address}: {}", problem.message);
        assert!(problem.hint.as_ref().unwrap().contains(hint), "{address}: {problem:?}");
        assert!(!format!("{problem:?}").contains("hf_wrong"));
    }
}

#[tokio::test]
async fn a_cut_transfer_of_a_large_file_goes_on_and_is_verified() {
    let machine = Machine::new().with_token("hf_secret");
    let whole = bytes(80_000);
    machine.hub.put(SET, "rows.jsonl", &whole, FileKind::Large);
    machine.trouble(HubPort::Store, "/", AnswerDamage::CutAfter(15_000), Some(3));
    assert_eq!(machine.content("hf://datasets/o/n").await.1, whole);
    assert_eq!(machine.sent(HubPort::Store, "range"), ["-", "bytes=15000-", "bytes=30000-", "bytes=45000-"]);

    let machine = Machine::new();
    machine.hub.put(SET, "rows.jsonl", &whole, FileKind::Large);
    machine.trouble(HubPort::Store, "/", AnswerDamage::StopAt(60_000), None);
    let problem = machine.refused("hf://datasets/o/n/rows.jsonl").await;
    assert_eq!(
        problem.message,
        "the download of `hf://datasets/o/n/rows.jsonl` was interrupted after 60,000 of 80,000 bytes"
    );
    machine.hub.stop_damage();
    machine.hub.forget_requests();
    assert_eq!(machine.content("hf://datasets/o/n/rows.jsonl").await.1, whole);
    assert_eq!(machine.sent(HubPort::Store, "range"), ["bytes=60000-"]);
}

#[tokio::test]
async fn the_client_that_knows_proxies_does_the_same() {
    let mut machine = Machine::new().with_token("hf_secret");
    machine.proxied = true;
    let whole = bytes(30_000);
    machine.hub.put(SET, "rows.jsonl", &whole, FileKind::Large);
    machine.trouble(HubPort::Store, "/", AnswerDamage::CutAfter(15_000), Some(1));
    assert_eq!(machine.content("hf://datasets/o/n").await.1, whole);
    assert_eq!(machine.sent(HubPort::Store, "range"), ["-", "bytes=15000-"]);
    assert_eq!(machine.sent(HubPort::Store, "authorization"), ["-", "-"]);
    assert_eq!(machine.sent(HubPort::Store, "accept-encoding"), ["identity", "identity"]);
}

#[tokio::test]
async fn wrong_bytes_are_thrown_away() {
    for (kind, host, path) in
        [(FileKind::Large, HubPort::Store, "/"), (FileKind::Small, HubPort::Hub, "resolve-cache")]
    {
        let machine = Machine::new();
        machine.hub.put(SET, "rows.jsonl", ROWS, kind);
        machine.trouble(host, path, AnswerDamage::WrongByte, Some(1));
        let problem = machine.refused("hf://datasets/o/n/rows.jsonl").await;
        assert_eq!(problem.code, ProblemCode::FetchFailed);
        assert!(
            problem.message.contains("is not what the server announced: its digest is"),
            "{}",
            problem.message
        );
        assert_eq!(machine.content("hf://datasets/o/n/rows.jsonl").await.1, ROWS);
        assert!(machine.sent(host, "range").iter().all(|range| range == "-"));
    }
}

#[tokio::test]
async fn the_hubs_limit_is_waited_for_and_then_reported() {
    let machine = Machine::new();
    machine.hub.put(SET, "rows.jsonl", ROWS, FileKind::Small);
    let limited = || AnswerDamage::Status(429, vec![header("ratelimit", "\"api\";r=0;t=0")]);
    machine.trouble(HubPort::Hub, "/revision/", limited(), Some(2));
    machine.trouble(
        HubPort::Hub,
        "/tree/",
        AnswerDamage::Status(429, vec![header("retry-after", "0")]),
        Some(1),
    );
    assert_eq!(machine.content("hf://datasets/o/n").await.1, ROWS);
    machine.trouble(HubPort::Hub, "/revision/", limited(), None);
    let problem = machine.refused("hf://datasets/o/n").await;
    assert!(problem.message.contains("the hub is limiting requests"), "{}", problem.message);
}

#[tokio::test]
async fn offline_only_what_was_fetched_is_used() {
    let mut machine = Machine::new();
    machine.hub.put(SET, "rows.jsonl", ROWS, FileKind::Large);
    machine.hub.convert(SET, "default", "train", &[b"P0", b"P1"]);
    let addresses = ["hf://datasets/o/n", "hf://datasets/o/n/rows.jsonl", "hf://datasets/o/n?split=train"];
    let mut before = Vec::new();
    for address in addresses {
        before.push(machine.rows(address).await.unwrap());
    }
    machine.asked();
    machine.settings.hub.offline = true;
    for (address, list) in addresses.iter().zip(before) {
        assert_eq!(machine.rows(address).await.unwrap(), list);
    }
    for address in ["hf://datasets/o/n?config=default", "hf://datasets/o/n/other.csv"] {
        assert!(
            machine.refused(address).await.hint.unwrap().contains("without `HF_HUB_OFFLINE`"),
            "{address}"
        );
    }
    assert!(machine.asked().is_empty());
}

#[tokio::test]
async fn texts_come_from_repositories_of_every_kind() {
    let machine = Machine::new();
    let http = HttpClient::new(&|_| None);
    let fetcher = Fetcher { settings: &machine.settings, http: &http, on_event: &|_| {} };
    for (repository, address) in [
        ("datasets/o/n", "hf://datasets/o/n/p/t.md"),
        ("spaces/o/n", "hf://spaces/o/n/p/t.md"),
        ("o/n", "hf://o/n/p/t.md"),
    ] {
        machine.hub.put(repository, "p/t.md", format!("\u{feff}from {repository}"), FileKind::Small);
        assert_eq!(
            load_text(address, Setting::Template.into(), &fetcher).await.unwrap(),
            format!("from {repository}")
        );
    }
    for (address, why) in [
        ("hf://datasets/o/n", "names a repository but no file"),
        ("hf://o/n/missing.md", "`o/n` has no file `missing.md`"),
    ] {
        let problem = load_text(address, Setting::Template.into(), &fetcher).await.unwrap_err();
        assert_eq!(problem.code, ProblemCode::TextUnreadable);
        assert!(problem.message.starts_with("cannot get the text for `template`: "), "{}", problem.message);
        assert!(problem.message.contains(why), "{}", problem.message);
    }
}
