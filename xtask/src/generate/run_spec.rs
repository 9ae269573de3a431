//! `docs/run-spec.schema.json`: the JSON Schema of specs.

/// The text of the document.
pub(super) fn document() -> String {
    // Plain data, so it can always be written as JSON.
    let text = serde_json::to_string_pretty(&rowmill::run_spec_schema()).unwrap_or_default();
    format!("{text}\n")
}
