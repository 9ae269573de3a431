//! Whether a query returns the same rows in the same order each time it is run.

/// Functions and clauses whose result differs each time.
const VOLATILE: &[&str] = &[
    "random",
    "randomblob",
    "rand",
    "setseed",
    "uuid",
    "uuidv4",
    "uuidv7",
    "gen_random_uuid",
    "now",
    "today",
    "get_current_timestamp",
    "get_current_time",
    "transaction_timestamp",
    "statement_timestamp",
    "clock_timestamp",
    "age",
    "nextval",
    "currval",
    "changes",
    "total_changes",
    "last_insert_rowid",
    "getenv",
    "current_setting",
];

/// What means chance or time without brackets, too.
const BARE: &[&str] =
    &["tablesample", "current_timestamp", "current_date", "current_time", "localtime", "localtimestamp"];

/// Functions that mean the present moment if nothing is given to them.
const MOMENTS: &[&str] = &["date", "time", "datetime", "julianday", "unixepoch"];

/// Keywords that leave it to the engine which rows are returned, or in which order.
const UNORDERED: &[&str] = &[
    "limit",
    "offset",
    "fetch",
    "join",
    "group",
    "having",
    "distinct",
    "union",
    "intersect",
    "except",
    "over",
    "qualify",
    "with",
    "unnest",
    "values",
    "first",
    "last",
    "any_value",
    "arbitrary",
];

/// Those of [`UNORDERED`] that need brackets behind them. Without, they are columns, or part of `NULLS FIRST`.
const BEFORE_BRACKETS: &[&str] = &["unnest", "values", "first", "last", "any_value", "arbitrary"];

/// Whether a condition holds for the same rows each time: nothing in it depends on chance or time.
#[must_use]
pub fn is_deterministic_condition(condition: &str) -> bool {
    words(condition).is_some_and(|words| !is_volatile(&words))
}

/// Whether a query certainly returns the same rows in the same order each time: it reads the input once, from
/// its beginning, and nothing in it depends on randomness, time, or the engine's order of execution.
#[must_use]
pub fn is_deterministic_query(sql: &str) -> bool {
    let Some(words) = words(sql) else { return false };
    let count = |wanted: &str| words.iter().filter(|word| *word == wanted).count();
    let from = words.iter().skip_while(|word| *word != "from").skip(1);
    let table: Vec<&String> =
        from.take_while(|word| !["where", "order", ";"].contains(&word.as_str())).collect();
    let reads_once = count("select") == 1 && count("from") == 1 && table.len() <= 3;
    reads_once
        && !table.iter().any(|word| [",", "("].contains(&word.as_str()))
        && !leaves_order_open(&words)
        && !is_volatile(&words)
}

fn leaves_order_open(words: &[String]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let word = word.as_str();
        UNORDERED.contains(&word) && (!BEFORE_BRACKETS.contains(&word) || is_at(words, at + 1, "("))
    })
}

fn is_volatile(words: &[String]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let (word, is_called) = (word.as_str(), is_at(words, at + 1, "("));
        // A name between quotes that is called may be that of any function.
        BARE.contains(&word)
            || (is_called && (word.is_empty() || VOLATILE.contains(&word)))
            || (is_called && MOMENTS.contains(&word) && is_at(words, at + 2, ")"))
            || (word == "using" && is_at(words, at + 1, "sample"))
    })
}

/// Whether a word or sign is at a place.
fn is_at(words: &[String], place: usize, wanted: &str) -> bool {
    words.get(place).is_some_and(|word| word == wanted)
}

/// The words and symbols of a query in lower case, without comments and quoted names. Strings count only if
/// they mean the current time, such as `'now'`. `None` if something is not closed.
fn words(sql: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = sql.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/")? + 2,
            '\'' | '"' | '`' => {
                let closed = rest.get(1..)?.find(first)?;
                let inside = rest.get(1..=closed)?.trim().to_lowercase();
                if first == '\'' && ["now", "today", "tomorrow", "yesterday"].contains(&inside.as_str()) {
                    words.push("current_timestamp".to_owned());
                } else {
                    // It is a name or a value, whatever its content.
                    words.push(String::new());
                }
                closed + 2
            }
            _ if first.is_alphanumeric() || first == '_' => {
                let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
                let end = end.unwrap_or(rest.len());
                words.push(rest.get(..end)?.to_lowercase());
                end
            }
            _ => {
                words.push(first.to_string());
                first.len_utf8()
            }
        };
        rest = rest.get(length..)?.trim_start();
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_selection_is_repeatable_and_whatever_depends_on_chance_time_or_the_engine_is_not() {
        for sql in [
            "SELECT * FROM input",
            "select a, upper(b) as c from input where lang = 'en' order by a desc;",
            "SELECT a -- random() limit\nFROM input AS i WHERE s = 'now is it' /* now() */",
            "SELECT \"limit\", date(t) FROM \"input\" WHERE t > '2024-01-01'",
        ] {
            assert!(is_deterministic_query(sql), "{sql}");
        }
        for sql in [
            "SELECT * FROM input ORDER BY random()",
            "SELECT * FROM input LIMIT 100",
            "SELECT * FROM input USING SAMPLE 100",
            "SELECT * FROM input WHERE t < now()",
            "SELECT * FROM input WHERE t < CURRENT_TIMESTAMP",
            "SELECT * FROM input WHERE t < datetime('Now')",
            "SELECT * FROM input WHERE t < datetime()",
            "SELECT * FROM input WHERE t < date ( )",
            "SELECT a, count(*) FROM input GROUP BY a",
            "SELECT DISTINCT a FROM input",
            "SELECT * FROM input a, input b",
            "SELECT * FROM input JOIN input AS other USING (a)",
            "SELECT * FROM (SELECT * FROM input) WHERE x",
            "SELECT row_number() OVER () FROM input",
            "WITH t AS (SELECT 1) SELECT * FROM t",
            "SELECT 'open FROM input",
            "",
        ] {
            assert!(!is_deterministic_query(sql), "{sql}");
        }
    }

    /// All of them, so that none is lost without being missed.
    const FUNCTIONS: [&str; 23] = [
        "random",
        "randomblob",
        "rand",
        "setseed",
        "uuid",
        "uuidv4",
        "uuidv7",
        "gen_random_uuid",
        "now",
        "today",
        "get_current_timestamp",
        "get_current_time",
        "transaction_timestamp",
        "statement_timestamp",
        "clock_timestamp",
        "age",
        "nextval",
        "currval",
        "changes",
        "total_changes",
        "last_insert_rowid",
        "getenv",
        "current_setting",
    ];
    const WITHOUT_BRACKETS: [&str; 6] =
        ["tablesample", "current_timestamp", "current_date", "current_time", "localtime", "localtimestamp"];
    const ORDER_WORDS: [&str; 19] = [
        "limit",
        "offset",
        "fetch",
        "join",
        "group",
        "having",
        "distinct",
        "union",
        "intersect",
        "except",
        "over",
        "qualify",
        "with",
        "unnest",
        "values",
        "first",
        "last",
        "any_value",
        "arbitrary",
    ];

    fn in_small_and_capital_letters(words: &[&str]) -> Vec<String> {
        words.iter().flat_map(|word| [(*word).to_owned(), word.to_uppercase()]).collect()
    }

    #[test]
    fn every_word_that_means_chance_or_time_makes_a_query_and_a_condition_unrepeatable() {
        let called = [FUNCTIONS.as_slice(), VOLATILE, &WITHOUT_BRACKETS, BARE].concat();
        let called = in_small_and_capital_letters(&called).into_iter();
        let called = called.flat_map(|word| [format!("x > {word}(y)"), format!("x > 1+{word} ( )")]);
        let bare = in_small_and_capital_letters(&[WITHOUT_BRACKETS.as_slice(), BARE].concat()).into_iter();
        let bare = bare.map(|word| format!("x > {word}"));
        for condition in called.chain(bare) {
            assert!(!is_deterministic_condition(&condition), "{condition}");
            let sql = format!("SELECT * FROM input WHERE {condition}");
            assert!(!is_deterministic_query(&sql), "{sql}");
        }
        for word in in_small_and_capital_letters(&[VOLATILE, BARE].concat()) {
            for other in [format!("x > \"{word}\""), format!("x > '{word} x'"), format!("x > {word}_y")] {
                assert!(is_deterministic_condition(&other), "{other}");
            }
        }
        for word in MOMENTS {
            assert!(!is_deterministic_condition(&format!("x > {word}()")), "{word}");
            assert!(is_deterministic_condition(&format!("x > {word}(y)")), "{word}");
        }
    }

    #[test]
    fn every_word_that_leaves_rows_or_their_order_to_the_engine_makes_a_query_unrepeatable() {
        for word in in_small_and_capital_letters(&[ORDER_WORDS.as_slice(), UNORDERED].concat()) {
            // With brackets behind it, a function is one; clauses are without.
            let sql = format!("SELECT a FROM input ORDER BY a {word} (b)");
            assert!(!is_deterministic_query(&sql), "{sql}");
            for other in [format!("\"{word}\""), format!("{word}_y"), format!("'{word}'")] {
                let sql = format!("SELECT a FROM input ORDER BY a, {other}");
                assert!(is_deterministic_query(&sql), "{sql}");
            }
        }
    }

    #[test]
    fn columns_that_are_called_like_what_means_chance_or_time_are_columns() {
        for condition in [
            "age > 30",
            "uuid = 'x' AND sample = 1",
            "now IS NULL",
            "t.changes > 1",
            "age IN (1, 2)",
            "(today) = 1",
        ] {
            assert!(is_deterministic_condition(condition), "{condition}");
        }
        for sql in [
            "SELECT age, uuid FROM input WHERE sample > 1",
            "SELECT first, last FROM input ORDER BY last",
            "SELECT a FROM input ORDER BY a NULLS FIRST",
            "SELECT values FROM input ORDER BY now, a NULLS LAST",
        ] {
            assert!(is_deterministic_query(sql), "{sql}");
        }
    }

    #[test]
    fn a_condition_is_repeatable_unless_it_depends_on_chance_or_time() {
        for condition in [
            "x > 3",
            "x > (SELECT avg(x) FROM input)",
            "s LIKE '%random()%'",
            "\"now\" = 1",
            "strftime(t, '%Y') = '2024'",
        ] {
            assert!(is_deterministic_condition(condition), "{condition}");
        }
        for condition in [
            "random() % 10 = 0",
            "\"random\"() % 10 = 0",
            "t > now()",
            "t > date('now', '-1 day')",
            "t < TODAY()",
        ] {
            assert!(!is_deterministic_condition(condition), "{condition}");
        }
    }
}
