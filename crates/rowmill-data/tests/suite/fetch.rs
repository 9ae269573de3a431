//! Files at plain addresses arrive complete, are downloaded once, and continue after an interruption.

use std::os::unix::fs::PermissionsExt;

use crate::remote_support::{Machine, bytes, header};
use rowmill_data::{
    FetchEventKind, FetchPurpose, FetchSettings, Fetcher, InputLocation, InputSpec, fetch_to_disk,
    open_dataset,
};
use rowmill_http::HttpClient;
use rowmill_testkit::hub::{AnswerDamage, HubPort, PlainPage};
use rowmill_types::ProblemCode;

fn page(body: impl AsRef<[u8]>, headers: &[(&str, &str)]) -> PlainPage {
    let headers = headers.iter().map(|(name, value)| header(name, value)).collect();
    PlainPage { headers, body: body.as_ref().to_vec(), ranges: true, ..PlainPage::default() }
}

fn at(machine: &Machine, path: &str) -> String {
    format!("{}{path}", machine.hub.url())
}

#[tokio::test]
async fn locations_of_this_machine_come_back_as_they_are() {
    let settings = FetchSettings::from_environment(&|_| None);
    let http = HttpClient::new(&|_| None);
    let fetcher = Fetcher { settings: &settings, http: &http, on_event: &|_| {} };
    for text in ["-", "rows.jsonl", "*.csv"] {
        let location = InputLocation::parse(text).unwrap();
        assert_eq!(fetch_to_disk(&location, FetchPurpose::Rows, &fetcher).await.unwrap(), location);
    }
}

#[tokio::test]
async fn a_file_is_fetched_once_and_asked_about_afterwards() {
    for (name, tag) in
        [("etag", "\"v1\""), ("etag", "W/\"v1\""), ("last-modified", "Mon, 02 Nov 2026 10:00:00 GMT")]
    {
        let machine = Machine::new();
        machine.hub.page("/a/rows.jsonl", page("{\"n\":1}\n", &[(name, tag)]));
        let address = at(&machine, "/a/rows.jsonl");
        let first = machine.rows(&address).await.unwrap();
        assert_eq!(first.name, address);
        assert_eq!(first.files[0].name, "rows.jsonl");
        assert_eq!(std::fs::read(&first.files[0].path).unwrap(), b"{\"n\":1}\n");
        assert_eq!(
            machine.steps(),
            [FetchEventKind::Started { done: 0, total: Some(8) }, FetchEventKind::Finished { bytes: 8 }]
        );

        assert_eq!(machine.rows(&address).await.unwrap(), first);
        assert_eq!(machine.steps(), [FetchEventKind::AlreadyCached { bytes: 8 }]);

        machine.hub.page("/a/rows.jsonl", page("{\"n\":2}\n", &[(name, "Tue, \"other\"")]));
        let changed = machine.rows(&address).await.unwrap();
        assert_ne!(changed.identity, first.identity);
        assert_eq!(std::fs::read(&changed.files[0].path).unwrap(), b"{\"n\":2}\n");
        // A run that started with the first version still finds it.
        assert_eq!(std::fs::read(&first.files[0].path).unwrap(), b"{\"n\":1}\n");
    }
}

#[tokio::test]
async fn a_file_without_a_version_is_fetched_each_time_and_is_the_same_input() {
    let machine = Machine::new();
    machine.hub.page("/rows.csv", page("a\n1\n", &[]));
    let first = machine.rows(&at(&machine, "/rows.csv")).await.unwrap();
    let second = machine.rows(&at(&machine, "/rows.csv")).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(machine.asked(), ["GET /rows.csv", "GET /rows.csv"]);
}

#[tokio::test]
async fn a_transfer_that_is_cut_three_times_goes_on_and_is_right_byte_for_byte() {
    let machine = Machine::new();
    let whole = bytes(100_000);
    machine.hub.page("/rows.jsonl", page(&whole, &[("etag", "\"v1\"")]));
    machine.trouble(HubPort::Hub, "/rows.jsonl", AnswerDamage::CutAfter(20_001), Some(3));
    let (_, content) = machine.content(&at(&machine, "/rows.jsonl")).await;
    assert_eq!(content, whole);
    let ranges = machine.sent(HubPort::Hub, "range");
    assert_eq!(ranges, ["-", "bytes=20001-", "bytes=40002-", "bytes=60003-"]);
    assert_eq!(machine.sent(HubPort::Hub, "if-range"), ["-", "\"v1\"", "\"v1\"", "\"v1\""]);
    assert_eq!(machine.sent(HubPort::Hub, "accept-encoding"), ["identity"; 4]);
}

#[tokio::test]
async fn what_a_command_could_not_finish_the_next_one_does() {
    let machine = Machine::new();
    let whole = bytes(50_000);
    machine.hub.page("/rows.jsonl", page(&whole, &[("etag", "\"v1\"")]));
    machine.trouble(HubPort::Hub, "/rows.jsonl", AnswerDamage::StopAt(30_000), None);
    let problem = machine.refused(&at(&machine, "/rows.jsonl")).await;
    assert_eq!(problem.code, ProblemCode::FetchFailed);
    assert!(problem.message.ends_with("was interrupted after 30,000 of 50,000 bytes"), "{}", problem.message);
    assert!(problem.hint.unwrap().contains("continues from there"));
    assert_eq!(machine.asked().len(), 5);

    machine.hub.stop_damage();
    let (_, content) = machine.content(&at(&machine, "/rows.jsonl")).await;
    assert_eq!(content, whole);
    assert_eq!(machine.sent(HubPort::Hub, "range"), ["bytes=30000-"]);
}

#[tokio::test]
async fn a_file_that_changed_after_a_cut_is_fetched_from_its_beginning() {
    let machine = Machine::new();
    let address = at(&machine, "/rows.jsonl");
    for (before, after) in [("\"v1\"", "\"v2\""), ("W/\"v1\"", "W/\"v1\"")] {
        machine.hub.page("/rows.jsonl", page(bytes(9000), &[("etag", before)]));
        machine.trouble(HubPort::Hub, "/rows.jsonl", AnswerDamage::StopAt(4000), None);
        machine.refused(&address).await;
        machine.hub.stop_damage();
        let changed = vec![b'x'; 9000];
        machine.hub.page("/rows.jsonl", page(&changed, &[("etag", after)]));
        assert_eq!(machine.content(&address).await.1, changed, "{before}");
    }
}

#[tokio::test]
async fn a_server_without_ranges_or_versions_sends_everything_again() {
    for (ranges, headers) in [(false, &[("etag", "\"v1\"")][..]), (true, &[])] {
        let machine = Machine::new();
        let whole = bytes(9000);
        machine.hub.page("/rows.jsonl", PlainPage { ranges, ..page(&whole, headers) });
        machine.trouble(HubPort::Hub, "/rows.jsonl", AnswerDamage::StopAt(4000), Some(2));
        assert_eq!(machine.content(&at(&machine, "/rows.jsonl")).await.1, whole);
    }
}

#[tokio::test]
async fn redirects_are_followed_and_passwords_stay_with_their_server() {
    let machine = Machine::new();
    let other = Machine::new();
    let moved =
        |to: &str| PlainPage { status: 302, headers: vec![header("location", to)], ..PlainPage::default() };
    other.hub.page("/c/rows.jsonl", page("{}\n", &[]));
    machine.hub.page("/a", moved("b?x=1"));
    machine.hub.page("/b", moved(&at(&other, "/c/rows.jsonl")));
    let address = at(&machine, "/a").replace("http://", "http://me:w%40rd@");
    let list = machine.rows(&address).await.unwrap();
    assert_eq!(list.name, at(&machine, "/a"));
    assert_eq!(machine.sent(HubPort::Hub, "authorization"), ["Basic bWU6d0ByZA=="; 2]);
    assert_eq!(other.sent(HubPort::Hub, "authorization"), ["-"]);

    machine.hub.page("/loop.csv", moved("/loop.csv"));
    machine.hub.forget_requests();
    let problem = machine.refused(&at(&machine, "/loop.csv")).await;
    assert!(problem.hint.unwrap().contains("form a loop"));
    assert_eq!(machine.asked().len(), 11);
}

#[tokio::test]
async fn headers_tell_the_format_where_the_address_does_not() {
    let machine = Machine::new();
    machine.hub.page("/export", page("a,b\n1,2\n", &[("content-type", "text/csv"), ("etag", "\"1\"")]));
    for _ in 0..2 {
        let list = machine.rows(&at(&machine, "/export?key=secret")).await.unwrap();
        assert_eq!(list.files[0].name, "export.csv");
        assert_eq!(list.name, at(&machine, "/export"));
        let spec = InputSpec::new(InputLocation::Files(list.clone()), None);
        let identity = open_dataset(&spec).unwrap().identity().unwrap();
        assert_eq!((identity.path, identity.probe), (list.name, list.identity));
    }
}

#[tokio::test]
async fn refusals_are_distinguished() {
    let machine = Machine::new();
    for (status, code, hint) in [
        (404, ProblemCode::InputNotFound, "check the URL"),
        (403, ProblemCode::FetchFailed, "without signing in"),
        (418, ProblemCode::FetchFailed, "check the URL"),
    ] {
        machine.hub.page("/rows.csv", PlainPage { status, ..PlainPage::default() });
        let problem = machine.refused(&at(&machine, "/rows.csv?key=secret")).await;
        let expected = format!("`{}` returned status {status}", at(&machine, "/rows.csv"));
        assert_eq!((problem.code, problem.message.as_str()), (code, expected.as_str()));
        assert!(problem.hint.unwrap().contains(hint));
        assert_eq!(machine.asked().len(), 1);
    }
    let nobody = machine.refused("http://127.0.0.1:1/rows.csv").await;
    assert_eq!(nobody.message, "no response from `127.0.0.1` for `http://127.0.0.1:1/rows.csv`");
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let machine = Machine::new();
    machine.hub.page("/rows.csv", page("a\n", &[]));
    let busy_failure = |wait: &str| AnswerDamage::Status(429, vec![header("retry-after", wait)]);
    machine.trouble(HubPort::Hub, "/rows.csv", busy_failure("0"), Some(2));
    machine.trouble(HubPort::Hub, "/rows.csv", AnswerDamage::Status(503, Vec::new()), Some(1));
    assert_eq!(machine.content(&at(&machine, "/rows.csv")).await.1, b"a\n");
    assert_eq!(machine.asked().len(), 4);

    machine.trouble(HubPort::Hub, "/rows.csv", busy_failure("0"), None);
    assert!(machine.refused(&at(&machine, "/rows.csv")).await.message.ends_with("status 429"));
    assert_eq!(machine.asked().len(), 5);

    machine.hub.stop_damage();
    machine.trouble(HubPort::Hub, "/rows.csv", busy_failure("3600"), None);
    assert!(machine.refused(&at(&machine, "/rows.csv")).await.hint.unwrap().contains("later"));
    assert_eq!(machine.asked().len(), 1);
}

#[tokio::test]
async fn only_the_owner_can_read_what_is_kept() {
    let machine = Machine::new();
    machine.hub.page("/rows.csv", page("a\n", &[]));
    let list = machine.rows(&at(&machine, "/rows.csv")).await.unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let file = &list.files[0].path;
    assert_eq!(mode(file), 0o600);
    for folder in file.ancestors().skip(1).take(3) {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_is_reported() {
    let mut machine = Machine::new();
    machine.hub.page("/rows.csv", page("a\n", &[]));
    let file = machine.folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    machine.settings.cache = file;
    let problem = machine.refused(&at(&machine, "/rows.csv")).await;
    assert!(problem.message.starts_with("cannot write the download to `"), "{}", problem.message);
    assert!(problem.hint.unwrap().contains("ROWMILL_CACHE_DIR"));
}

#[tokio::test]
async fn commands_that_fetch_the_same_file_at_once_fetch_it_once() {
    let machine = Machine::new();
    let whole = bytes(300_000);
    machine.hub.page("/rows.jsonl", page(&whole, &[("etag", "\"v1\"")]));
    let address = at(&machine, "/rows.jsonl");
    let (one, two, three) =
        tokio::join!(machine.content(&address), machine.content(&address), machine.content(&address));
    for (_, content) in [one, two, three] {
        assert_eq!(content, whole);
    }
    let finished = |step: &FetchEventKind| matches!(step, FetchEventKind::Finished { .. });
    assert_eq!(machine.steps().iter().filter(|step| finished(step)).count(), 1);
}
