//! The aggregate that makes a list of its values.

use rusqlite::Result;
use rusqlite::functions::{Aggregate, Context};

use super::lists::{JSON_SUBTYPE, json_of};

/// All values, null included, as JSON text; null without values.
pub(super) struct List;

impl Aggregate<String, (Option<String>, Option<u32>)> for List {
    fn init(&self, _: &mut Context<'_>) -> Result<String> {
        Ok(String::new())
    }

    fn step(&self, context: &mut Context<'_>, text: &mut String) -> Result<()> {
        text.push(if text.is_empty() { '[' } else { ',' });
        let value = json_of(context.get_raw(0), context.get_subtype(0) == JSON_SUBTYPE);
        text.push_str(&value.to_string());
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, text: Option<String>) -> Result<(Option<String>, Option<u32>)> {
        Ok((text.map(|text| text + "]"), Some(JSON_SUBTYPE)))
    }
}
