//! Queries made at random, beside DuckDB in the same run: `scripts/duckdb_random.py` makes them and asks
//! DuckDB. The environment of Python is that of `scripts/prepare-python`.
//!
//! `cargo xtask soak sql` runs many more than the test does by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::sql::support::read_all;
use rowmill_core::ports::Dataset;
use rowmill_data::{InputSpec, Location, SqlSettings, dataset, sql_dataset};
use rowmill_types::Problem;
use serde::Deserialize;
use serde_json::{Map, Value};

/// How many queries a run without further word makes, and from which seed.
const QUERIES: &str = "200";
const SEED: &str = "1";

#[derive(Deserialize)]
struct Asked {
    input: String,
    sql: String,
    rows: Option<Vec<Map<String, Value>>>,
    error: Option<String>,
}

/// What came of a query here and in DuckDB.
#[derive(Debug, Default)]
struct Outcomes {
    equal: usize,
    both_refuse: usize,
    only_duckdb_refuses: usize,
    only_we_refuse: BTreeMap<String, usize>,
    different: Vec<String>,
}

#[test]
fn queries_made_at_random_give_what_duckdb_gives_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut outcomes = Outcomes::default();
    for line in asked(folder.path()).lines() {
        outcomes.add(&serde_json::from_str(line).unwrap(), folder.path());
    }
    let Outcomes { equal, both_refuse, only_duckdb_refuses, only_we_refuse, different } = &outcomes;
    let refused: usize = only_we_refuse.values().sum();
    println!(
        "equal {equal}, both refuse {both_refuse}, only we refuse {refused}, only DuckDB refuses {only_duckdb_refuses}"
    );
    for (reason, count) in only_we_refuse {
        println!("  {count} × {reason}");
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    let all = equal + both_refuse + refused + only_duckdb_refuses;
    assert!(*equal * 10 > all * 8, "only {equal} of {all} queries were compared");
}

fn asked(folder: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let setting = |name: &str, otherwise: &str| {
        std::env::var_os(name).map_or_else(|| otherwise.to_owned(), |text| text.to_str().unwrap().to_owned())
    };
    let python: PathBuf = root.join(".venv/bin/python");
    let output = Command::new(&python)
        .arg(root.join("scripts/duckdb_random.py"))
        .arg(folder)
        .args(["--queries", &setting("ROWMILL_SOAK_RUNS", QUERIES)])
        .args(["--seed", &setting("ROWMILL_SOAK_SEED", SEED)])
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
        match (ours, &asked.rows) {
            (Ok(ours), Some(theirs)) => match difference(&ours, theirs) {
                None => self.equal += 1,
                Some(difference) => {
                    self.different.push(format!("{}: {}\n  {difference}", asked.input, asked.sql))
                }
            },
            (Ok(_), None) => self.only_duckdb_refuses += 1,
            (Err(_), None) => self.both_refuse += 1,
            (Err(problem), Some(_)) => *self.only_we_refuse.entry(reason(&problem)).or_default() += 1,
        }
        assert_eq!(asked.rows.is_none(), asked.error.is_some());
    }
}

/// The reason for a refusal, without what is different in every query.
fn reason(problem: &Problem) -> String {
    let line = problem.message.lines().next().unwrap_or_default();
    let letters = line.chars().filter(|letter| !letter.is_ascii_digit());
    letters.collect::<String>().chars().take(110).collect()
}

fn answer(path: &Path, sql: &str, temp: &Path) -> Result<Vec<Map<String, Value>>, Problem> {
    let input: Arc<dyn Dataset> = dataset(&InputSpec::new(Location::File(path.to_owned()), None))?;
    let results = sql_dataset(input, sql, &SqlSettings { temp, types: &[] }, Arc::new(|_| ()))?;
    let rows = read_all(&mut *results.open()?)?;
    Ok(rows.into_iter().map(|row| serde_json::from_str(row.unwrap().text()).unwrap()).collect())
}

fn difference(ours: &[Map<String, Value>], theirs: &[Map<String, Value>]) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!("{} rows for {}", ours.len(), theirs.len()));
    }
    let differs = |(ours, theirs): &(&Map<String, Value>, &Map<String, Value>)| {
        ours.len() != theirs.len()
            || ours
                .iter()
                .zip(theirs.iter())
                .any(|((name, ours), (other, theirs))| name != other || !is_same(ours, theirs))
    };
    let (ours, theirs) = ours.iter().zip(theirs).find(differs)?;
    Some(format!("ours   {}\n  theirs {}", Value::from(ours.clone()), Value::from(theirs.clone())))
}

/// Whether a value of ours is what DuckDB gives; its numbers are marked.
fn is_same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (ours, Value::Object(fields)) if fields.contains_key("#") => {
            let theirs = fields["#"].as_str().unwrap();
            let ours = ours.as_str().map_or_else(|| ours.to_string(), str::to_owned);
            ours == theirs || is_near(&ours, theirs)
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| is_same(ours, theirs))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            let is_known = ours.keys().all(|name| theirs.contains_key(name));
            is_known
                && theirs.iter().all(|(name, theirs)| is_same(ours.get(name).unwrap_or(&Value::Null), theirs))
        }
        (Value::String(ours), Value::String(theirs)) => ours == theirs || *theirs == shown_time(ours),
        (ours, theirs) => ours == theirs,
    }
}

/// Whether two numbers are the same but for the last digits of a fraction; those of 32 bits have few.
fn is_near(ours: &str, theirs: &str) -> bool {
    let (Ok(left), Ok(right)) = (ours.parse::<f64>(), theirs.parse::<f64>()) else { return false };
    let is_whole = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_whole(ours) && is_whole(theirs) {
        return false;
    }
    (left - right).abs() <= 1e-7 * left.abs().max(right.abs()).max(1e-3)
}

/// A time that is passed on as the input has it, as DuckDB writes it.
fn shown_time(text: &str) -> String {
    let text = if text.get(10..11) == Some("T") { text.replacen('T', " ", 1) } else { text.to_owned() };
    match text.split_once('.') {
        Some((whole, fraction)) => {
            format!("{whole}.{}", fraction.trim_end_matches('0')).trim_end_matches('.').to_owned()
        }
        None => text,
    }
}
