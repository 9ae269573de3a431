//! What a query may do: read the tables that it is given, and nothing else.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, Result};

/// Tables that SQLite makes of the arguments of a function.
const TABLE_FUNCTIONS: [&str; 2] = ["json_each", "json_tree"];

/// Functions beside those of SQLite that give a list.
const LIST_FUNCTIONS: [&str; 4] = ["list", "string_split", "str_split", "split"];

/// Functions that reach out of the query.
const REFUSED_FUNCTIONS: [&str; 4] = ["load_extension", "fts3_tokenizer", "readfile", "writefile"];

/// What was seen of a query while it was prepared.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// It uses functions that make JSON.
    pub(crate) json: bool,
    /// What it may not do, in words.
    pub(crate) refused: Option<String>,
}

/// Lets nothing through but reading, and takes notes.
pub(crate) fn guard(connection: &mut Connection, tables: Vec<&'static str>) -> Result<Arc<Mutex<Seen>>> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let notes = seen.clone();
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        match refusal(&context.action, &tables, &mut notes) {
            None => Authorization::Allow,
            Some(refused) => {
                notes.refused.get_or_insert(refused);
                Authorization::Deny
            }
        }
    }))?;
    Ok(seen)
}

/// Takes the guard away again.
pub(crate) fn unguard(connection: &mut Connection) -> Result<()> {
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)
}

fn refusal(action: &AuthAction<'_>, tables: &[&str], notes: &mut Seen) -> Option<String> {
    match action {
        AuthAction::Select | AuthAction::Recursive => None,
        AuthAction::Function { function_name } => {
            let name = function_name.to_ascii_lowercase();
            notes.json |= name.starts_with("json") || name.starts_with("->");
            notes.json |= LIST_FUNCTIONS.contains(&name.as_str());
            REFUSED_FUNCTIONS
                .contains(&name.as_str())
                .then(|| format!("the function `{name}` may not be used in a query"))
        }
        AuthAction::Read { table_name, column_name } => {
            let name = table_name.to_ascii_lowercase();
            let function = TABLE_FUNCTIONS.contains(&name.as_str());
            notes.json |= function;
            // A table that gives no column is a name inside of the query, or only counted.
            let known = function || column_name.is_empty() || tables.contains(&name.as_str());
            (!known).then(|| format!("the table `{table_name}` may not be read"))
        }
        AuthAction::Pragma { pragma_name, .. } => Some(format!("`PRAGMA {pragma_name}` may not be used")),
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => {
            Some("other databases may not be attached".to_owned())
        }
        _ => Some("a query may only read".to_owned()),
    }
}
