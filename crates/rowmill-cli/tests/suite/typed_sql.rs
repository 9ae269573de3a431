//! The types of a query's columns, the engines, and the messages about values of the wrong type.

use std::path::Path;
use std::process::Command;

use crate::support::{Ended, Place, each, row_numbers};
use serde_json::{Value, json};

const ECHO: [&str; 4] = ["-m", "passthrough", "-p", "{{row_json}}"];

/// Runs over an input, to `out.jsonl`.
fn run(place: &Place, input: &str, flags: &[&str]) -> Ended {
    place.run(&[&ECHO, &["-i", input, "-o", "out.jsonl"], flags].concat())
}

/// The rows that reached the model, in the order of the output.
fn seen(place: &Place) -> Vec<Value> {
    let parsed = |result: Value| serde_json::from_str(result.as_str().unwrap_or("null")).unwrap_or_default();
    each(&place.json("out.jsonl"), "/result").into_iter().map(parsed).collect()
}

/// A place in which `python3` has the package `duckdb`.
fn place_with_duckdb() -> Place {
    place_with("bin", "python3")
}

/// A place with a program of the tests' Python environment.
fn place_with(folder: &str, program: &str) -> Place {
    let mut place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv").join(folder);
    assert!(folder.join(program).exists(), "run `bash scripts/prepare-python` first");
    place.set("PATH", &format!("{}:/usr/bin:/bin", folder.display()));
    place
}

#[test]
fn the_types_of_columns_can_be_set_and_are_part_of_the_run() {
    let place = Place::new();
    place.write("rows.csv", "zip,n\n00123,1\n9000,2\nn/a,3\n");
    let query = "SELECT zip, n FROM input WHERE TRY_CAST(zip AS INTEGER) < 200";
    let with_types =
        |types: &str, mode: &str| run(&place, "rows.csv", &[mode, "--sql", query, "--types", types]);
    with_types("zip=text", "--overwrite").ok();
    assert_eq!(seen(&place), [json!({"zip": "00123", "n": 1})]);
    with_types("zip=text", "--resume").ok();
    with_types("zip=text,n=double", "--resume").code(1).says("query");
    for (types, code, message) in [
        ("zap=text", 1, "error[RM1061]"),
        ("zip=colour", 1, "unknown type `colour`"),
        ("zip", 2, "`zip` is not `column=type`"),
    ] {
        with_types(types, "--overwrite").code(code).says(message);
    }
    run(&place, "rows.csv", &["--overwrite", "--types", "zip=text"])
        .code(2)
        .says("--types requires --sql or --where");
}

#[test]
fn a_value_that_breaks_the_type_of_its_column_stops_the_run_with_its_row_and_the_remedy() {
    let place = Place::new();
    let rows: String = (1..=20_480).map(|n| format!("{{\"n\":{n},\"x\":{}}}\n", n % 3)).collect();
    place.write("rows.jsonl", format!("{rows}{{\"n\":20481,\"x\":\"n/a\"}}\n"));
    let ended = run(&place, "rows.jsonl", &["--where", "x > 8"]);
    assert_ne!(ended.code, 0);
    ended
        .says(
            "error[RM1060]: row 20481 of the input has \"n/a\" in `x`, but the column is BIGINT, as inferred \
             from the first rows",
        )
        .says("`--types x=text`")
        .says(
            "to compute with it, write `TRY_CAST(x AS BIGINT)`, which gives null for text that is not BIGINT",
        );
    let condition = "TRY_CAST(x AS BIGINT) IS NULL";
    run(&place, "rows.jsonl", &["--overwrite", "--types", "x=text", "--where", condition]).ok();
    assert_eq!(row_numbers(&place.json("out.jsonl")), [20_481]);
    assert_eq!(seen(&place), [json!({"n": 20481, "x": "n/a"})]);
}

#[test]
fn a_condition_over_numbers_with_decimal_commas_is_refused_with_what_to_write() {
    let place = Place::new();
    place.write("prices.csv", "id;price\n1;1,50\n2;0,75\n3;12,00\n");
    run(&place, "prices.csv", &["--where", "price > 1"])
        .code(1)
        .says("error[RM1020]")
        .says("`price` is text because of values such as `1,50`")
        .says("`CAST(replace(price, ',', '.') AS DOUBLE)`");
    assert!(!place.exists("out.jsonl"));
    run(&place, "prices.csv", &["--where", "CAST(replace(price, ',', '.') AS DOUBLE) > 1"]).ok();
    assert_eq!(each(&seen(&place), "/id"), [json!("1"), json!("3")]);
}

#[test]
fn columns_that_folders_name_are_columns_of_a_query() {
    let place = Place::new();
    for (year, region, rows) in
        [(2025, "eu", "{\"n\":1}\n"), (2026, "eu", "{\"n\":2}\n"), (2026, "us", "{\"n\":3}\n")]
    {
        place.write(&format!("data.jsonl/year={year}/region={region}/part.jsonl"), rows);
    }
    run(&place, "data.jsonl", &["--where", "year > 2025 AND region = 'eu'"]).ok();
    assert_eq!(each(&seen(&place), "/n"), [json!(2)]);
    let query = "SELECT year, sum(n) AS s FROM input GROUP BY ALL ORDER BY year DESC";
    run(&place, "data.jsonl", &["--overwrite", "--sql", query]).ok();
    assert_eq!(seen(&place), [json!({"year": 2026, "s": 5}), json!({"year": 2025, "s": 1})]);
}

#[test]
fn a_query_can_run_in_the_duckdb_of_the_user() {
    let mut place = place_with_duckdb();
    let cities = ["Bern", "Rome", "Oslo", "Bern"];
    let row =
        |(n, city): (usize, &&str)| format!("{{\"id\":{n},\"city\":\"{city}\",\"amount\":{}}}\n", n * 10);
    place.write("rows.jsonl", cities.iter().enumerate().map(row).collect::<String>());
    let query = "SELECT city, sum(amount) AS s FROM input GROUP BY ROLLUP (city) ORDER BY ALL";
    let flags = ["--sql", query, "--sql-engine", "duckdb"];
    run(&place, "rows.jsonl", &flags).ok();
    assert_eq!(seen(&place).len(), 4);
    assert_eq!(seen(&place)[0], json!({"city": "Bern", "s": 30}));
    run(&place, "rows.jsonl", &["--sql", "SELECT idd FROM input", "--sql-engine", "duckdb", "--overwrite"])
        .code(1)
        .says("error[RM1020]")
        .says("idd");
    run(&place, "rows.jsonl", &["--where", "id = 1", "--sql-engine", "duckdb", "--overwrite"])
        .code(2)
        .says("--sql-engine duckdb");
    run(&place, "rows.jsonl", &["--sql", query, "--sql-engine", "sqlite"])
        .code(2)
        .says("possible values: builtin, duckdb");
    let shown = place.rowmill(&["head", "rows.jsonl", "--sql", query, "--sql-engine", "duckdb"]).ok().stdout;
    assert!(shown.contains("Rome") && shown.contains("60"), "{shown}");
    let without_duckdb = place.path("tmp");
    place.set("PATH", &without_duckdb.to_string_lossy());
    run(&place, "rows.jsonl", &["--sql", query, "--sql-engine", "duckdb", "--overwrite"])
        .code(1)
        .says("error[RM1062]")
        .says("pip install duckdb");
}

#[test]
fn the_program_of_duckdb_and_its_package_give_rows_while_they_run_and_end_with_the_run() {
    for place in [place_with("duckdb-cli/duckdb_cli", "duckdb"), place_with_duckdb()] {
        place.write("rows.jsonl", "{\"id\":1}\n{\"id\":2}\n");
        let sql = |query: &str| {
            run(&place, "rows.jsonl", &["--sql", query, "--sql-engine", "duckdb", "--overwrite"])
        };
        sql("SELECT id + 1 AS next FROM input ORDER BY id DESC").ok();
        assert_eq!(seen(&place), [json!({"next": 3}), json!({"next": 2})]);
        sql("SELECT CAST('x' || id AS INTEGER) AS n FROM input")
            .code(1)
            .says("error[RM1021]: `--sql` failed while it ran: Conver")
            .says("Could not convert string 'x1' to INT32");
        // Reading all of these rows would take hours.
        let endless = "SELECT range AS n FROM range(100000000000)";
        let head = ["head", "rows.jsonl", "-n", "2", "--sql", endless, "--sql-engine", "duckdb"];
        let shown = place.rowmill(&head).ok().stdout;
        assert!(shown.contains("more than 1,000 rows"), "{shown}");
        place.write("text.txt", "no rows");
        let text = [
            "head",
            "text.txt",
            "--input-format",
            "documents",
            "--sql",
            "SELECT 1",
            "--sql-engine",
            "duckdb",
        ];
        place.rowmill(&text).code(1).says("`--sql-engine duckdb` cannot read inputs of the format documents");
    }
}

#[test]
fn duckdb_reads_delimiters_types_and_folders_as_the_run_was_set() {
    let place = place_with_duckdb();
    place.write("rows.csv", "id|zip\n1|00123\n2|9000\n");
    let query = "SELECT zip, length(zip) AS n FROM input WHERE id = 1";
    let flags = ["--sql", query, "--sql-engine", "duckdb", "--delimiter", "|", "--types", "zip=text"];
    run(&place, "rows.csv", &flags).ok();
    assert_eq!(seen(&place), [json!({"zip": "00123", "n": 5})]);
    place.write("data.jsonl/year=2025/a.jsonl", "{\"n\":1}\n");
    place.write("data.jsonl/year=2026/a.jsonl", "{\"n\":2}\n{\"n\":3}\n");
    let query = "SELECT year, n, n / 0 AS i FROM input WHERE year = 2026 ORDER BY n";
    run(&place, "data.jsonl", &["--overwrite", "--sql", query, "--sql-engine", "duckdb"]).ok();
    assert_eq!(
        seen(&place),
        [json!({"year": 2026, "n": 2, "i": "Infinity"}), json!({"year": 2026, "n": 3, "i": "Infinity"})]
    );
}

#[test]
fn rows_that_a_limit_without_an_order_took_from_several_files_are_those_of_a_resume() {
    let place = Place::new();
    place.write("parts/b.jsonl", "{\"n\":3}\n{\"n\":4}\n");
    place.write("parts/a.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    let flags = ["--sql", "SELECT n FROM input LIMIT 3"];
    run(&place, "parts/*.jsonl", &[&flags[..], &["--limit", "1"]].concat()).ok();
    let recorded = place.names(".out.jsonl.rowmill");
    assert!(recorded.iter().any(|name| name.starts_with("rows-")), "{recorded:?}");
    run(&place, "parts/*.jsonl", &[&flags[..], &["--resume"]].concat())
        .ok()
        .says("using the query results from when the run was started");
    assert_eq!(each(&seen(&place), "/n"), [json!(1), json!(2), json!(3)]);
}

#[test]
fn duckdb_reads_the_delimiters_and_the_header_that_are_recognised_without_it() {
    let place = place_with_duckdb();
    let query = "SELECT city, note FROM input ORDER BY city";
    let flags = ["--overwrite", "--sql", query, "--sql-engine", "duckdb"];
    let expected = [json!({"city": "Bern, CH", "note": "d, y"}), json!({"city": "Oslo, NO", "note": "c, x"})];
    // DuckDB alone would read the commas as separators.
    for (name, text) in [
        ("semicolons.csv", "city;note\nOslo, NO;c, x\nBern, CH;d, y\n"),
        ("tabs.csv", "city\tnote\nOslo, NO\tc, x\nBern, CH\td, y\n"),
    ] {
        place.write(name, text);
        run(&place, name, &flags).ok().says("as its delimiter");
        assert_eq!(seen(&place), expected, "{name}");
    }
    place.write("parts.csv/1.csv", "city;note\nOslo, NO;c, x\n");
    place.write("parts.csv/2.csv", "note,city\n\"d, y\",\"Bern, CH\"\n");
    run(&place, "parts.csv", &flags).ok();
    assert_eq!(seen(&place), expected);
    // And a text header over rows of text for one of them.
    place.write("header.csv", "city\nOslo\nBern\n");
    run(
        &place,
        "header.csv",
        &["--overwrite", "--sql", "SELECT min(city) AS c FROM input", "--sql-engine", "duckdb"],
    )
    .ok();
    assert_eq!(seen(&place), [json!({"c": "Bern"})]);
}

#[test]
fn a_type_that_the_user_set_is_not_blamed_on_the_first_rows() {
    let place = Place::new();
    place.write("rows.csv", "id,x\n1,7\n2,n/a\n");
    run(&place, "rows.csv", &["--types", "x=bigint", "--where", "x > 3"])
        .code(1)
        .says(
            "error[RM1060]: row 3 of the input has \"n/a\" in `x`, but the column is BIGINT, as set with \
             `--types`",
        )
        .says("read the column as text with `--types x=text`");
}

#[test]
fn the_rows_that_duckdb_gave_are_those_of_a_resume_and_the_engine_is_part_of_the_run() {
    let place = place_with_duckdb();
    place.write_rows(20);
    let query = "SELECT n FROM input WHERE n > 5";
    let flags = ["--sql", query, "--sql-engine", "duckdb", "--limit", "3"];
    run(&place, "rows.jsonl", &flags).ok();
    assert_eq!(each(&seen(&place), "/n"), [json!(6), json!(7), json!(8)]);
    let recorded = place.names(".out.jsonl.rowmill");
    assert!(recorded.iter().any(|name| name.starts_with("rows-")), "{recorded:?}");
    run(&place, "rows.jsonl", &["--sql", query, "--resume"]).code(1).says("query");
    run(&place, "rows.jsonl", &["--sql", query, "--sql-engine", "duckdb", "--resume"])
        .ok()
        .says("using the query results from when the run was started");
    assert_eq!(seen(&place).len(), 15);
}

#[test]
fn duckdb_reads_parquet_tabs_and_lists_of_json_as_the_run_was_set() {
    let place = place_with_duckdb();
    place.write("rows.tsv", "id\tcity\n1\tOslo, NO\n2\tBern\n");
    place.write("rows.json", "[{\"id\":1,\"city\":\"Oslo, NO\"},\n {\"id\":2,\"city\":\"Bern\"}]");
    let write = "import duckdb\n\
        duckdb.execute(\"COPY (FROM (VALUES (1, 'Oslo, NO'), (2, 'Bern')) t(id, city)) TO 'rows.parquet'\")\n\
        duckdb.execute(\"COPY (FROM (VALUES (1, 2025), (2, 2026)) t(id, year)) TO 'data.parquet' (FORMAT parquet, PARTITION_BY (year))\")\n";
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let made = Command::new(python).args(["-c", write]).current_dir(place.path("")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let duckdb = |input: &str, query: &str, more: &[&str]| {
        let flags = ["--overwrite", "--sql", query, "--sql-engine", "duckdb"];
        run(&place, input, &[&flags[..], more].concat()).ok();
        seen(&place)
    };
    let expected = [json!({"id": 2, "city": "Bern"}), json!({"id": 1, "city": "Oslo, NO"})];
    for name in ["rows.tsv", "rows.json", "rows.parquet"] {
        assert_eq!(duckdb(name, "SELECT id, city FROM input ORDER BY city", &[]), expected, "{name}");
        let kind = duckdb(name, "SELECT any_value(typeof(id)) AS t FROM input", &["--types", "id=double"]);
        assert_eq!(kind, [json!({"t": "DOUBLE"})], "{name}");
    }
    let in_folders = duckdb("data.parquet", "SELECT id, year + 1 AS next FROM input ORDER BY id", &[]);
    assert_eq!(in_folders, [json!({"id": 1, "next": 2026}), json!({"id": 2, "next": 2027})]);
    let piped = ["--input-format", "jsonl", "-o", "-", "--sql", "SELECT 1 AS n", "--sql-engine", "duckdb"];
    place
        .pipe(b"{\"n\":1}\n", &[&ECHO[..], &piped].concat())
        .code(1)
        .says("error[RM1062]: `--sql-engine duckdb` needs an input that consists of files");
}

#[test]
fn duckdb_sees_no_keys_of_providers() {
    let key = "sk-planted-1234567890";
    let mut program = place_with("duckdb-cli/duckdb_cli", "duckdb");
    program.set("OPENAI_API_KEY", key);
    program.write("rows.jsonl", "{\"id\":1}\n");
    let query = "SELECT coalesce(getenv('OPENAI_API_KEY'), '') AS key, getenv('HOME') AS home FROM input";
    run(&program, "rows.jsonl", &["--sql", query, "--sql-engine", "duckdb"]).ok();
    assert_eq!(
        seen(&program),
        [json!({"key": "", "home": program.path("").to_string_lossy().trim_end_matches('/')})]
    );

    // Python imports this module before anything else.
    let mut package = place_with_duckdb();
    package.set("OPENAI_API_KEY", key);
    let site = package.path("site");
    package.set("PYTHONPATH", &site.to_string_lossy());
    package.write(
        "site/sitecustomize.py",
        "import os\nopen(os.path.join(os.environ['HOME'], 'variables'), 'a').write(repr(dict(os.environ)))\n",
    );
    package.write("rows.jsonl", "{\"id\":1}\n");
    run(&package, "rows.jsonl", &["--sql", "SELECT id FROM input", "--sql-engine", "duckdb"]).ok();
    assert_eq!(seen(&package), [json!({"id": 1})]);
    let variables = package.read("variables");
    assert!(variables.contains("'PYTHONPATH'") && variables.contains("'TMPDIR'"), "{variables}");
    assert!(!variables.contains("OPENAI") && !variables.contains(key), "{variables}");
}
