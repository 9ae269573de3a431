//! What users see: on a terminal, and when their input is probably a mistake.

use std::process::{Command, Stdio};

use crate::support::{Ended, KEY, Place, each, finish, numbered_rows, simulated};
use rowmill_testkit::{Simulator, SimulatorScript};
use serde_json::json;
use unicode_width::UnicodeWidthStr;

/// Runs a command on its own terminal and prints what it showed, then its exit code. With `stdout` the
/// terminal is standard output as well, otherwise that is a file.
const TERMINAL: &str = r#"
import fcntl, json, os, pty, select, struct, subprocess, sys, termios
widths, stdout, environment, command = json.loads(sys.argv[1])
ours, theirs = pty.openpty()
out = theirs if stdout is None else open(stdout, "wb")
resize = lambda columns: fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
resize(widths[0])
child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=theirs, env=environment)
shown, turn = b"", 0
while True:
    ended = child.poll() is not None
    if select.select([ours], [], [], 0 if ended else 0.02)[0]:
        shown += os.read(ours, 65536)
    elif ended:
        break
    turn += 1
    if len(widths) > 1:
        resize(widths[turn % len(widths)])
sys.stdout.write(json.dumps([shown.decode(), child.wait()]))
"#;

/// What a terminal showed.
struct Shown {
    raw: String,
    code: i64,
}

impl Shown {
    /// The pieces of text that were written between movements of the cursor.
    fn pieces(&self) -> Vec<String> {
        let mut pieces = vec![String::new()];
        let mut characters = self.raw.chars();
        while let Some(character) = characters.next() {
            match character {
                '\u{1b}' => {
                    // `ESC [ numbers letter`
                    let _letter = characters.by_ref().skip(1).find(char::is_ascii_alphabetic);
                    pieces.push(String::new());
                }
                '\r' | '\n' => pieces.push(String::new()),
                character => pieces.last_mut().unwrap().push(character),
            }
        }
        let text = pieces.into_iter().map(|piece| piece.trim_end().to_owned());
        text.filter(|piece| !piece.is_empty()).collect()
    }

    /// The output as plain text, line by line.
    fn text(&self) -> String {
        self.pieces().join("\n")
    }
}

/// Runs `rowmill` on a terminal with these widths, one after the other.
fn on_terminal(place: &Place, widths: &[u16], stdout: Option<&str>, arguments: &[&str]) -> Shown {
    let command = place.command(arguments);
    let environment: serde_json::Map<_, _> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value?.to_str()?.into())))
        .chain([("TERM".to_owned(), "xterm".into())])
        .collect();
    let words: Vec<&str> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_str().unwrap())
        .collect();
    let job = json!([widths, stdout, environment, words]).to_string();
    let mut python = Command::new("python3");
    python.args(["-c", TERMINAL, &job]).current_dir(place.path("."));
    python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = finish(python.spawn().unwrap()).ok();
    let (raw, code): (String, i64) = serde_json::from_str(&ended.stdout).unwrap();
    Shown { raw, code }
}

/// A simulator, and a folder with rows of which two are refused and one is answered twice.
fn with_failures() -> (Simulator, Place) {
    let (simulator, place) = simulated();
    place.write(
        "rows.jsonl",
        "{\"id\":\"a\",\"t\":\"fine\"}\n{\"id\":\"b\",\"t\":\"[[400]] b\"}\n{\"id\":\"c\",\"t\":\"fine\"}\n{\"id\":\"d\",\"t\":\"[[400]] d\"}\n{\"id\":\"e\"}\n",
    );
    (simulator, place)
}

#[test]
fn on_a_terminal_the_end_of_a_run_is_for_people_and_json_only_if_asked_for() {
    let (_simulator, place) = with_failures();
    let flags = ["run", "-i", "rows.jsonl", "-o", "out.jsonl", "-m", "openai.m", "-p", "{{t}}", "--id-field"];
    let flags = [&flags[..], &["id", "--dedupe", "--error-output", "errors.jsonl", "--overwrite"]].concat();
    let shown = on_terminal(&place, &[60], None, &flags);
    assert_eq!(shown.code, 3, "{}", shown.text());
    // A command may be broken between its words, in shell syntax.
    let text = shown.text().replace(" \\\n          ", " ");
    for line in [
        "5 rows: 2 ok, 3 failed in ",
        "failed: 1 MissingTemplateField, 2 BadRequest",
        "        BadRequest: 2 rows such as row 2 (id b): ",
        "        MissingTemplateField: row 5 (id e): Missing",
        "tokens: ",
        "reused: 1 row identical to another row",
        "output: out.jsonl\n",
        "also:   errors.jsonl (failed rows)\n",
        " results out.jsonl",
    ] {
        assert!(text.contains(line), "`{line}` is not in:\n{text}");
    }
    assert!(!text.contains("\"processed_rows\""), "{text}");
    let summary: Vec<String> =
        shown.pieces().into_iter().skip_while(|line| !line.starts_with("5 rows: ")).collect();
    // A word that is wider than the screen is not broken: it may be a path.
    for line in summary.iter().filter(|line| line.contains(' ') && !line.contains("/rowmill")) {
        assert!(line.width() <= 60, "{line}");
    }
    let last = shown.raw.rsplit("5 rows: ").next().unwrap();
    assert!(!last.contains('\u{1b}'), "the summary needs no colour: {last:?}");

    let asked = on_terminal(&place, &[80], None, &[&flags[..], &["--summary-format", "json"]].concat());
    assert!(asked.text().contains("\"processed_rows\": 5,"), "{}", asked.text());
    let piped = on_terminal(&place, &[80], Some("summary.json"), &flags);
    assert!(!piped.text().contains("\"processed_rows\""), "{}", piped.text());
    let summary: serde_json::Value = serde_json::from_str(&place.read("summary.json")).unwrap();
    assert_eq!(summary["failed_rows"], 3);
}

#[test]
fn the_command_that_goes_on_is_shown_ready_to_be_copied() {
    let (_simulator, place) = simulated();
    place.write("rows.jsonl", "{\"t\":\"it's fine\"}\n{\"t\":\"[[400]]\"}\n");
    let flags = ["run", "-i", "rows.jsonl", "-o", "out.jsonl", "-m", "openai.m", "-p", "Read: {{t}}"];
    let shown = on_terminal(&place, &[300], None, &[&flags[..], &["--overwrite"]].concat());
    let expected = "run -i rows.jsonl -o out.jsonl -m openai.m -p 'Read: {{t}}' --resume";
    assert!(shown.text().contains(expected), "{}", shown.text());
}

#[test]
fn envelopes_on_a_terminal_are_not_mixed_with_the_summary() {
    let place = Place::new();
    place.write_rows(3);
    let flags = ["run", "-i", "rows.jsonl", "-o", "-", "-m", "passthrough", "-p", "{{n}}"];
    let shown = on_terminal(&place, &[80], Some("stdout"), &flags);
    assert_eq!(place.json("stdout").len(), 3);
    assert!(shown.text().contains("3 rows: 3 ok in "), "{}", shown.text());
    let both = on_terminal(&place, &[80], None, &flags).text();
    assert!(!both.contains("processed_rows"), "{both}");
    let ended = place.run(&[&flags[1..], &["--summary-format", "json"]].concat()).code(2);
    ended.says("--summary-format json and --output - cannot be used together");
}

#[test]
fn progress_on_a_terminal_never_wraps_at_any_width_nor_while_it_changes() {
    let place = Place::new();
    place.write("rows.jsonl", numbered_rows(40));
    let model = "simulated?latency=15ms";
    let flags = ["run", "-i", "rows.jsonl", "-o", "out.jsonl", "--overwrite", "--parallel", "1", "-m", model];
    for widths in [&[20][..], &[40], &[80], &[200], &[200, 80, 120]] {
        let shown = on_terminal(&place, widths, None, &flags);
        let most = usize::from(*widths.iter().max().unwrap());
        let pieces = shown.pieces();
        let progress: Vec<&String> =
            pieces.iter().take_while(|piece| !piece.starts_with("40 rows: ")).collect();
        assert!(progress.iter().any(|piece| piece.contains(" row")), "{widths:?}: {}", shown.text());
        for piece in progress {
            assert!(piece.width() < most, "{widths:?}: {piece}");
        }
    }
}

#[test]
fn a_column_that_no_row_has_is_reported_with_those_there_are_before_anything_is_sent() {
    let (simulator, place) = simulated();
    place.write(
        "rows.jsonl",
        "{\"id\":1,\"review\":\"good\"}\n{\"id\":2,\"review\":\"bad\",\"product\":\"p\"}\n",
    );
    place.write("rows.csv", "id,review,product\n1,good,p\n2,bad,p\n");
    let there = "the input has: `id`, `review`, `product`\n";
    for (input, flags, named) in [
        ("rows.jsonl", &["-p", "{{reveiw}}"][..], "the template names `{{reveiw}}`, which no row has"),
        ("rows.csv", &["-p", "{{reveiw}}"], "the template names `{{reveiw}}`, which no row has"),
        ("rows.jsonl", &["--id-field", "idd"], "`--id-field` names `idd`, which no row has"),
        ("rows.csv", &["--attach", "produkt"], "`--attach` names `produkt`, which no row has"),
        ("rows.csv", &["--columns", "id,reviw"], "`--columns` names `reviw`, which no row has"),
        ("rows.csv", &["--where", "id = '1'", "-p", "{{reviw}}"], "the template names `{{reviw}}`, which"),
    ] {
        let all = [&["-i", input, "-o", "out.jsonl", "-m", "openai.m"], flags].concat();
        place.run(&all).code(1).says(named).says("help: did you mean `").says(there);
        assert!(!place.exists("out.jsonl"), "{flags:?}");
    }
    let sql = ["-i", "rows.csv", "-o", "out.jsonl", "-m", "openai.m", "--id-field", "n", "-p", "{{reviw}}"];
    let ended = place.run(&[&sql[..], &["--sql", "SELECT id AS n, review FROM input ORDER BY id"]].concat());
    ended.code(1).says("did you mean `review`? the input has: `n`, `review`\n");
    let split = ["-i", "rows.csv", "--output-dir", "parts", "-m", "openai.m", "--split-by", "input.produkt"];
    place.run(&split).code(1).says("`--split-by` names `input.produkt`, which no row has").says(there);
    let plan = ["plan", "-i", "rows.csv", "-m", "openai.m", "-p", "{{reveiw}}"];
    place.rowmill(&plan).code(1).says("did you mean `review`?");
    assert_eq!(simulator.stats().requests, 0);

    // A field that only some rows have makes only the others fail.
    let flags = ["-i", "rows.jsonl", "-o", "out.jsonl", "-m", "openai.m", "-p", "{{product}}"];
    place.run(&flags).code(3);
    assert_eq!(each(&place.json("out.jsonl"), "/ok"), [json!(false), json!(true)]);
}

#[test]
fn a_stream_is_looked_at_as_it_is_read() {
    let (simulator, place) = simulated();
    let flags = ["--input-format", "jsonl", "-o", "out.jsonl", "-m", "openai.m", "-p", "{{m}}"];
    let ended: Ended = place.pipe(numbered_rows(300).as_bytes(), &flags).code(1);
    ended.says("error[RM1008]: the template names `{{m}}`, which no row has\n").says("did you mean `n`?");
    assert_eq!(simulator.stats().requests, 0);
    place.pipe(b"{\"n\":1}\n{\"m\":2}\n", &[&flags[..], &["--overwrite"]].concat()).code(3);
    assert_eq!(simulator.stats().requests, 1);
}

#[test]
fn a_run_without_rows_says_why() {
    let place = Place::new();
    place.write_rows(4);
    place.write("empty.jsonl", "");
    place.write("header.csv", "id,review\n");
    place.write("many.jsonl", numbered_rows(60));
    let wide = |cell: fn(usize) -> String| (1..=14).map(cell).collect::<Vec<_>>().join(",");
    place.write("wide.csv", format!("{}\n{}\n", wide(|n| format!("c{n}")), wide(|n| n.to_string())));
    for (input, flags, why) in [
        ("empty.jsonl", &["-p", "{{n}}"][..], "`empty.jsonl` has no rows"),
        ("header.csv", &["-p", "{{review}}"], "`header.csv` has no rows"),
        ("rows.jsonl", &["--offset", "10"], "`--offset 10` skips all 4 rows"),
        ("rows.jsonl", &["--offset", "100"], "`--offset 100` skips all 4 rows"),
        ("rows.jsonl", &["--limit", "0"], "`--limit 0` selects none"),
        (
            "rows.jsonl",
            &["--where", "n > 9"],
            "no row of `rows.jsonl` matches `--where n > 9`; the input has: `n`",
        ),
        (
            "wide.csv",
            &["--where", "c1 = 9"],
            "no row of `wide.csv` matches `--where c1 = 9`; the input has: `c1`, `c2`, `c3`, `c4`, `c5`, \
             `c6`, `c7`, `c8`, `c9`, `c10`, `c11`, `c12` and 2 more",
        ),
        (
            "many.jsonl",
            &["--where", "n > 900"],
            "no row of `many.jsonl` matches `--where n > 900`; its first 50 rows have: `n`",
        ),
        (
            "rows.jsonl",
            &["--sql", "SELECT n FROM input WHERE n > 9", "--id-field", "n"],
            "the query of `--sql` returned no rows of `rows.jsonl`; the input has: `n`",
        ),
    ] {
        let all = [&["-i", input, "-o", "out.jsonl", "-m", "passthrough", "--overwrite"], flags].concat();
        place.run(&all).ok().says(&format!("warning: no rows selected: {why}\n"));
    }
    let ended = place.run_rows(&["-m", "passthrough", "--overwrite", "--limit", "1"]).ok();
    assert!(!ended.stderr.contains("no rows selected"), "{}", ended.stderr);
    assert!(ended.stderr.contains("1 row: 1 ok"), "{}", ended.stderr);
}

#[test]
fn a_run_whose_first_fifty_rows_all_fail_for_one_reason_stops_and_says_so() {
    let (simulator, place) = simulated();
    let row = |n: usize| format!("{{\"id\":\"r{n}\",\"t\":\"row {n} [[400]]\"}}\n");
    place.write("rows.jsonl", (1..=300).map(row).collect::<String>());
    let flags = ["-m", "openai.m", "-p", "{{t}}", "--id-field", "id"];
    let ended = place.run_rows(&[&flags[..], &["--parallel", "4"]].concat()).code(1);
    let summary = ended.summary();
    assert_eq!(
        (&summary["status"], &summary["failures"].as_object().unwrap().len()),
        (&json!("stopped"), &1)
    );
    assert!((50..=54).contains(&summary["failed_rows"].as_u64().unwrap()), "{summary}");
    assert!(simulator.stats().requests <= 54);
    let ended = ended
        .says("rows all failed with BadRequest\n")
        .says("\n  cause: row ")
        .says("Retry these rows with `--resume`; `--keep-going` sends all rows regardless\n");
    drop(ended);

    // A few rows that fail for another reason do not hide the common cause.
    let odd = |n: usize| if n % 20 == 1 { row(n).replace("[[400]]", "[[422]]") } else { row(n) };
    place.write("rows.jsonl", (1..=300).map(odd).collect::<String>());
    let ended = place.run_rows(&[&flags[..], &["--parallel", "1", "--overwrite"]].concat()).code(1);
    drop(ended.says("error[RM2008]: stopped: the first 50 rows all failed, 47 of them with BadRequest"));

    // A resume counts anew, and succeeds once the cause is fixed.
    place.write("rows.jsonl", row(1).replace("[[400]]", "") + &(2..=300).map(row).collect::<String>());
    place.run_rows(&[&flags[..], &["--resume", "--parallel", "1"]].concat()).code(3);
    assert_eq!(place.json("out.jsonl").len(), 300);
}

#[test]
fn other_runs_with_many_failures_go_through_to_their_end() {
    let (_simulator, place) = simulated();
    let row = |n: usize, t: &str| format!("{{\"n\":{n},\"t\":\"{t}\"}}\n");
    let flags = ["-m", "openai.m", "-p", "{{t}}", "--parallel", "1", "--retries", "0", "--overwrite"];
    let all_fail: String = (1..=80).map(|n| row(n, "[[400]]")).collect();
    let one_ok: String = (1..=80).map(|n| row(n, if n == 49 { "fine" } else { "[[400]]" })).collect();
    let two_reasons: String =
        (1..=80).map(|n| row(n, if n % 2 == 0 { "[[422]]" } else { "[[400]]" })).collect();
    let just_fifty: String = (1..=50).map(|n| row(n, "[[400]]")).collect();
    for (rows, more) in [
        (&all_fail, &["--keep-going"][..]),
        (&all_fail, &["--max-errors", "100"]),
        (&one_ok, &[]),
        (&two_reasons, &[]),
        (&just_fifty, &[]),
    ] {
        place.write("rows.jsonl", rows);
        let ended = place.run_rows(&[&flags[..], more].concat()).code(3);
        assert_eq!(ended.summary()["processed_rows"], rows.lines().count());
    }
}

#[test]
fn a_bare_number_is_seconds_wherever_a_time_is_given() {
    let script = SimulatorScript::new().key(KEY);
    let simulator = Simulator::start_blocking(script);
    let mut place = Place::with(&simulator);
    place.write_rows(1);
    place.write("rowmill.toml", "[run]\ntimeout = 30\nretry_wait = 0.5\n");
    for flag in [
        "--timeout",
        "--row-timeout",
        "--deadline",
        "--max-outage",
        "--retry-wait",
        "--connect-timeout",
        "--first-byte-timeout",
        "--idle-timeout",
    ] {
        for time in ["30", "1.5"] {
            place.run_rows(&["-m", "openai.m", "--overwrite", flag, time]).ok();
        }
        place.run_rows(&["-m", "openai.m", "--overwrite", flag, "-3"]).code(2);
        place
            .run_rows(&["-m", "openai.m", "--overwrite", flag, "soon"])
            .code(2)
            .says("must be a duration such as");
    }
    place.set("ROWMILL_TIMEOUT", "20");
    place.run_rows(&["-m", "openai.m", "--overwrite"]).ok();
    place.unset("ROWMILL_TIMEOUT");
    place.write("rowmill.toml", "[run]\ntimeout = 0\n");
    let ended = place.run_rows(&["-m", "openai.m", "--overwrite"]).code(1);
    ended.says("`timeout` in `").says("must be a duration such as `30` (seconds), ");
    place.write("rowmill.toml", "");
    place.run_rows(&["-m", "slow?delay=1m", "--overwrite", "--retries", "0", "--timeout", "0.2"]).code(3);
    let error = &place.json("out.jsonl")[0]["error"];
    assert_eq!(error["type"], "Timeout");
    assert_eq!(error["message"], "no complete answer within 0.2 s");
}

#[test]
fn whoever_begins_is_shown_how() {
    let place = Place::new();
    let first = place.rowmill(&[]).code(2);
    assert!(first.stderr.contains("Start here:\n  rowmill head reviews.jsonl"), "{}", first.stderr);
    let ended = place.run(&[]).code(2).says("--input <INPUT>");
    ended.says(
        "Example:\n  rowmill run -i rows.jsonl -o results.jsonl -m simulated --prompt 'Classify: {{text}}'\n",
    );
}

#[test]
fn the_sizes_of_documents_are_reported_as_people_read_them() {
    let place = Place::new();
    place.write("papers/a.txt", "a".repeat(4200));
    place.write("papers/b.txt", "b".repeat(900));
    place.rowmill(&["head", "paper"]).code(1).says("help: check the path\n");
    let shown = place.rowmill(&["head", "papers"]).ok().stdout;
    assert!(shown.starts_with("papers: documents, 2 files, 2 rows, 5.1 kB\n"), "{shown}");
    assert!(shown.contains("4.2 kB") && shown.contains("900 B"), "{shown}");
}
