//! Random queries, compared with DuckDB in the same run: `scripts/duckdb_random.py` generates them and runs
//! them in DuckDB. The Python environment is that of `scripts/prepare-python`.
//!
//! `cargo xtask soak sql` runs many more than the test does by default.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::sql::support::read_all;
use rowmill_core::ports::Dataset;
use rowmill_data::{InputLocation, InputSpec, SqlSettings, open_dataset, sql_dataset};
use rowmill_types::{Problem, Row};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The default number of queries, and the default seed.
const QUERIES: &str = "200";
const SEED: &str = "1";

/// From this many queries on, each function in the manual must be among them.
const MANY: usize = 5_000;

const MANUAL: &str = include_str!("../../../../../docs/sql.md");

#[derive(Deserialize)]
struct Asked {
    input: String,
    sql: String,
    rows: Option<Vec<Map<String, Value>>>,
    error: Option<String>,
}

/// How often each reason occurred, and the first query with it.
type Reasons = BTreeMap<String, (usize, String)>;

/// Why DuckDB rejects queries that have an answer here; any other reason fails the test. It casts the argument of an
/// aggregate in rows, too, that `FILTER` leaves out.
const ONLY_DUCKDB: &[&str] = &["Could not cast value"];

/// The results of queries here and in DuckDB.
#[derive(Debug, Default)]
struct Outcomes {
    equal: usize,
    both_refuse: usize,
    only_duckdb_refuses: Reasons,
    only_we_refuse: Reasons,
    different: Vec<String>,
    /// The words of all compared queries.
    words: BTreeSet<String>,
}

#[test]
fn queries_made_at_random_give_what_duckdb_gives_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut outcomes = Outcomes::default();
    for line in asked(folder.path()).lines() {
        outcomes.add(&serde_json::from_str(line).unwrap(), folder.path());
    }
    let Outcomes { equal, both_refuse, only_duckdb_refuses, only_we_refuse, different, words } = &outcomes;
    let count = |reasons: &Reasons| reasons.values().map(|(count, _)| count).sum::<usize>();
    let (ours, theirs) = (count(only_we_refuse), count(only_duckdb_refuses));
    println!("equal {equal}, both refuse {both_refuse}, different {}", different.len());
    for (who, reasons) in [("we refuse", only_we_refuse), ("DuckDB refuses", only_duckdb_refuses)] {
        println!("only {who}: {}", count(reasons));
        reasons.iter().for_each(|(reason, (count, _))| println!("  {count} × {reason}"));
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    let unlisted: Vec<_> = only_duckdb_refuses
        .iter()
        .filter(|(reason, _)| !ONLY_DUCKDB.iter().any(|listed| reason.contains(listed)))
        .collect();
    assert!(unlisted.is_empty(), "DuckDB refuses what has an answer here: {unlisted:#?}");
    let all = equal + both_refuse + ours + theirs;
    assert!(*equal * 10 > all * 8, "only {equal} of {all} queries were compared");
    if all >= MANY {
        let unasked: Vec<_> = manual_functions().filter(|name| !words.contains(*name)).collect();
        assert!(unasked.is_empty(), "no query has {unasked:?}, which `docs/sql.md` lists");
    }
}

/// The functions in the manual: the names between backticks in its table of functions.
fn manual_functions() -> impl Iterator<Item = &'static str> {
    let table = MANUAL.lines().skip_while(|line| *line != "| | functions |").skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    let names = rows.flat_map(|line| line.split('`').skip(1).step_by(2));
    // Options of functions are quoted, or have a single letter.
    let name = |text: &'static str| text.split('(').next().unwrap_or_default();
    names.map(name).filter(|name| {
        name.len() > 1
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && *name == name.to_lowercase()
    })
}

fn asked(folder: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let setting = |name: &str, otherwise: &str| {
        std::env::var_os(name).map_or_else(|| otherwise.to_owned(), |text| text.to_str().unwrap().to_owned())
    };
    let python: PathBuf = root.join(".venv/bin/python");
    let queries = setting("ROWMILL_SOAK_RUNS", QUERIES);
    let is_many = queries.parse::<usize>().unwrap() >= MANY;
    let output = Command::new(&python)
        .arg(root.join("scripts/duckdb_random.py"))
        .arg(folder)
        .args(["--queries", &queries])
        .args(["--seed", &setting("ROWMILL_SOAK_SEED", SEED)])
        .arg("--functions")
        .args(manual_functions().filter(|_| is_many))
        .output()
        .unwrap_or_else(|error| {
            panic!("{}: {error}; run `bash scripts/prepare-python` first", python.display())
        });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Outcomes {
    fn add(&mut self, asked: &Asked, folder: &Path) {
        let ours = answer(&folder.join(&asked.input), &asked.sql, folder);
        match (ours, &asked.rows, &asked.error) {
            (Ok(ours), Some(theirs), _) => {
                let words = asked.sql.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                self.words.extend(words.map(str::to_owned));
                match difference(&ours, theirs) {
                    None => self.equal += 1,
                    Some(difference) => {
                        self.different.push(format!("{}: {}\n  {difference}", asked.input, asked.sql));
                    }
                }
            }
            (Ok(_), None, error) => {
                count_reason(&mut self.only_duckdb_refuses, error.as_deref().unwrap_or_default(), asked);
            }
            (Err(_), None, _) => self.both_refuse += 1,
            (Err(problem), Some(_), _) => count_reason(&mut self.only_we_refuse, &problem.message, asked),
        }
    }
}

/// Counts the reason for a rejection, without the parts that differ in every query.
fn count_reason(reasons: &mut Reasons, message: &str, asked: &Asked) {
    let line = message.lines().next().unwrap_or_default();
    let letters = line.chars().filter(|letter| !letter.is_ascii_digit());
    let reason = letters.take(110).collect::<String>();
    let (count, _) = reasons.entry(reason).or_insert_with(|| (0, format!("{}: {}", asked.input, asked.sql)));
    *count += 1;
}

fn answer(path: &Path, sql: &str, temp: &Path) -> Result<Vec<Row>, Problem> {
    let input: Arc<dyn Dataset> = open_dataset(&InputSpec::new(InputLocation::File(path.to_owned()), None))?;
    let results = sql_dataset(input, sql, &SqlSettings { temp, types: &[] }, Arc::new(|_| ()))?;
    let rows = read_all(&mut *results.open()?)?;
    Ok(rows.into_iter().map(Result::unwrap).collect())
}

fn difference(ours: &[Row], theirs: &[Map<String, Value>]) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!("{} rows for {}", ours.len(), theirs.len()));
    }
    let differs = |(ours, theirs): &(&Row, &Map<String, Value>)| {
        ours.fields().count() != theirs.len()
            || ours
                .fields()
                .zip(theirs.iter())
                .any(|((name, ours), (other, theirs))| name != other || !is_same(ours, theirs))
    };
    let (ours, theirs) = ours.iter().zip(theirs).find(differs)?;
    Some(format!("ours   {}\n  theirs {}", ours.json_text(), Value::from(theirs.clone())))
}

/// Whether the JSON of our value equals what DuckDB returns; its numbers are marked.
fn is_same(ours: &str, theirs: &Value) -> bool {
    let text = || serde_json::from_str::<String>(ours).ok();
    match theirs {
        Value::Object(fields) if fields.contains_key("#") => {
            let theirs = fields["#"].as_str().unwrap();
            let ours = text().unwrap_or_else(|| ours.to_owned());
            match fields.get("near").and_then(Value::as_f64) {
                Some(near) => is_near(&ours, theirs, near),
                None => plain_number(&ours) == plain_number(theirs),
            }
        }
        Value::Array(theirs) => serde_json::from_str::<Vec<&RawValue>>(ours).is_ok_and(|ours| {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| is_same(ours.get(), theirs))
        }),
        Value::Object(theirs) => {
            serde_json::from_str::<BTreeMap<String, &RawValue>>(ours).is_ok_and(|ours| {
                // A field that a JSON object lacks is null in an object with all fields.
                let value = |name: &String| ours.get(name).map_or("null", |value| value.get());
                ours.keys().all(|name| theirs.contains_key(name))
                    && theirs.iter().all(|(name, theirs)| is_same(value(name), theirs))
            })
        }
        Value::String(theirs) => text().is_some_and(|ours| ours == *theirs || *theirs == shown_time(&ours)),
        theirs => serde_json::from_str::<Value>(ours).is_ok_and(|ours| ours == *theirs),
    }
}

/// Whether two numbers are the same except for the last digits of a binary fraction.
fn is_near(ours: &str, theirs: &str, near: f64) -> bool {
    let (Ok(left), Ok(right)) = (ours.parse::<f64>(), theirs.parse::<f64>()) else { return false };
    left == right || (left - right).abs() <= near * left.abs().max(right.abs()).max(1e-2)
}

/// A decimal number without trailing zeros in its fraction.
fn plain_number(text: &str) -> String {
    let text = match text.split_once('.') {
        Some((whole, fraction)) => {
            format!("{whole}.{}", fraction.trim_end_matches('0')).trim_end_matches('.').to_owned()
        }
        None => text.to_owned(),
    };
    if text == "-0" { "0".to_owned() } else { text }
}

/// A time that is passed on unchanged, as DuckDB writes it.
fn shown_time(text: &str) -> String {
    let text = if text.get(10..11) == Some("T") { text.replacen('T', " ", 1) } else { text.to_owned() };
    let (time, zone) = text.split_once('+').map_or((text.as_str(), None), |(time, zone)| (time, Some(zone)));
    let time = if time.len() > 19 { plain_number(time) } else { time.to_owned() };
    zone.map_or(time.clone(), |zone| format!("{time}+{zone}"))
}
