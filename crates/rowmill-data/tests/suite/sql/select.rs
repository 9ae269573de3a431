//! `--where` and `--columns`: unchanged rows, and parts of them.

use std::sync::{Arc, Mutex};

use crate::sql::support::{Input, numbers, texts};
use rowmill_core::ports::{
    ColumnCondition, ColumnKind, ComparisonOperator, ComparisonValue, Dataset, DatasetColumn, InputIdentity,
    RequestedDatasetPart, RowSource,
};
use rowmill_data::{select_columns, sql_dataset, where_dataset};
use rowmill_types::{Problem, ProblemCode};

const ROWS: &str = "{\"id\": 1, \"split\": \"eval\", \"x\": 1.50}\n\
                    nope\n\
                    {\"id\":2,\"split\":\"train\"}\n\
                    \n\
                    { \"x\": 9 , \"split\":\"eval\", \"id\":3}\n\
                    {\"id\":4}\n";

#[test]
fn rows_that_satisfy_a_condition_stay_as_they_are() {
    let input = Input::new("rows.jsonl", ROWS);
    let bad = "Line 2: expected ident at column 2";
    for (condition, expected, lines) in [
        (
            "split = 'eval'",
            vec![
                "{\"id\": 1, \"split\": \"eval\", \"x\": 1.50}",
                bad,
                "{ \"x\": 9 , \"split\":\"eval\", \"id\":3}",
            ],
            vec![1, 2, 5],
        ),
        ("split IS NULL -- so", vec![bad, "{\"id\":4}"], vec![2, 6]),
        ("false", vec![bad], vec![2]),
        ("(SELECT count(*) FROM input) > 9", vec![bad], vec![2]),
        ("id = (SELECT max(id) FROM input)", vec![bad, "{\"id\":4}"], vec![2, 6]),
        (
            "EXISTS (SELECT 1 FROM input o WHERE o.split = input.split AND o.id > input.id)",
            vec!["{\"id\": 1, \"split\": \"eval\", \"x\": 1.50}", bad],
            vec![1, 2],
        ),
        ("rowid = 3", vec![bad, "{\"id\":2,\"split\":\"train\"}"], vec![2, 3]),
        ("id IN (4, 2)", vec![bad, "{\"id\":2,\"split\":\"train\"}", "{\"id\":4}"], vec![2, 3, 6]),
    ] {
        let rows = input.filtered(condition).unwrap();
        for _ in 0..2 {
            assert_eq!(texts(&*rows), expected, "{condition}");
        }
        assert_eq!(numbers(&*rows), lines, "{condition}");
    }
    assert_eq!(input.heard(), Vec::<String>::new());
}

#[test]
fn a_condition_that_is_none_is_refused_with_its_place() {
    let input = Input::new("rows.jsonl", ROWS);
    for (condition, message) in [
        ("", "found the end"),
        ("id = 1; DROP TABLE input", "must be exactly one condition"),
        ("id = 1) OR (id = 2", "must be exactly one condition"),
        ("id = 1 LIMIT 3", "must be exactly one condition\n    id = 1 LIMIT 3\n           ^"),
        ("idd = 1", "no such column: idd\n    idd = 1\n    ^"),
        ("max(id) = 1", "`max` cannot be used in WHERE"),
    ] {
        let problem = input.filtered(condition).unwrap_err();
        assert_eq!(problem.code, ProblemCode::InvalidQuery, "{condition}");
        assert!(problem.message.contains("`where`"), "{}", problem.message);
        assert!(problem.message.contains(message), "{condition}: {}", problem.message);
    }
}

#[test]
fn columns_are_taken_in_the_order_that_they_are_named_in() {
    let input = Input::new("rows.jsonl", ROWS);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let rows = select_columns(input.dataset(), &names(&["x", "id"])).unwrap();
    let bad = "Line 2: expected ident at column 2";
    assert_eq!(
        texts(&*rows),
        [r#"{"x":1.50,"id":1}"#, bad, r#"{"id":2}"#, r#"{"x":9,"id":3}"#, r#"{"id":4}"#]
    );
    assert_eq!(numbers(&*rows), [1, 2, 3, 5, 6]);
    let few = select_columns(input.dataset(), &names(&["x"])).unwrap();
    assert_eq!(texts(&*few)[2], "{}");
    let both = select_columns(input.filtered("x > 1").unwrap(), &names(&["split", "x"])).unwrap();
    assert_eq!(texts(&*both), [r#"{"split":"eval","x":1.50}"#, bad, r#"{"split":"eval","x":9}"#]);
    let nothing: &[&str] = &[];
    for (wrong, message, hint) in [
        (
            &["splt"][..],
            "names `splt`, which no row has",
            "did you mean `split`? the input has: `id`, `split`, `x`",
        ),
        (&["id", "id"], "names `id` twice", "once"),
        (nothing, "names no column", "`columns: id,text`"),
    ] {
        let problem = select_columns(input.dataset(), &names(wrong)).unwrap_err();
        assert!(problem.message.contains(message), "{}", problem.message);
        assert!(problem.hint.as_ref().unwrap().contains(hint), "{:?}", problem.hint);
    }
}

/// An input that declares its columns and remembers which parts were asked for.
#[derive(Debug)]
struct Declared {
    rows: Arc<dyn Dataset>,
    asked: Mutex<Vec<RequestedDatasetPart>>,
}

impl Dataset for Declared {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        self.open_part(&RequestedDatasetPart::default())
    }

    fn open_part(&self, part: &RequestedDatasetPart) -> Result<Box<dyn RowSource>, Problem> {
        self.asked.lock().unwrap().push(part.clone());
        self.rows.open()
    }

    fn is_rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.rows.identity()
    }

    fn columns(&self) -> Result<Option<Vec<DatasetColumn>>, Problem> {
        let kinds =
            [("id", ColumnKind::Integer), ("split", ColumnKind::Text), ("price", ColumnKind::Decimal(10, 2))];
        Ok(Some(kinds.map(|(name, kind)| DatasetColumn { name: name.into(), kind }).into()))
    }
}

#[test]
fn an_input_that_can_leave_things_out_is_reported_what() {
    let text =
        "{\"id\":1,\"split\":\"eval\",\"price\":\"12.50\"}\n{\"id\":2,\"split\":\"x\",\"price\":\"0.10\"}\n";
    let input = Input::new("rows.jsonl", text);
    let declared = || Arc::new(Declared { rows: input.dataset(), asked: Mutex::default() });
    let part = |columns: Option<&[&str]>, conditions: &[ColumnCondition]| RequestedDatasetPart {
        columns: columns.map(|columns| columns.iter().map(|name| (*name).to_owned()).collect()),
        conditions: conditions.to_vec(),
    };
    let eval = ColumnCondition {
        column: "split".into(),
        comparison: ComparisonOperator::Equal,
        value: ComparisonValue::Text("eval".into()),
    };
    let asked = |dataset: &Declared| dataset.asked.lock().unwrap().clone();

    let rows = declared();
    let sql = "SELECT price, price * 2 AS twice FROM input WHERE split = 'eval'";
    let results = sql_dataset(rows.clone(), sql, &input.settings(&[]), input.notice()).unwrap();
    assert_eq!(texts(&*results), [r#"{"price":"12.50","twice":25.00}"#]);
    assert_eq!(asked(&rows), [part(Some(&["split", "price"]), std::slice::from_ref(&eval))]);

    let rows = declared();
    let counted =
        sql_dataset(rows.clone(), "SELECT count(*) AS c FROM input", &input.settings(&[]), input.notice())
            .unwrap();
    assert_eq!(texts(&*counted), [r#"{"c":2}"#]);
    assert_eq!(asked(&rows), [part(Some(&["id"]), &[])]);

    let rows = declared();
    let kept = where_dataset(rows.clone(), "split = 'eval'", &input.settings(&[]), input.notice()).unwrap();
    assert_eq!(texts(&*kept), [text.lines().next().unwrap()]);
    assert_eq!(asked(&rows), [part(None, std::slice::from_ref(&eval))]);

    let rows = declared();
    let kept = where_dataset(rows.clone(), "split = 'eval'", &input.settings(&[]), input.notice()).unwrap();
    let few = select_columns(kept, &["price".to_owned()]).unwrap();
    assert_eq!(texts(&*few), [r#"{"price":"12.50"}"#]);
    assert_eq!(asked(&rows), [part(Some(&["split", "price"]), &[eval])]);
}
