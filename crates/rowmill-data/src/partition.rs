//! Fields in folder names: `year=2026/month=01/part.parquet`.

use std::path::Path;

use rowmill_core::json_text::write_string;
use rowmill_types::{Problem, ProblemCode};

use crate::{InputFile, PartitionField};

/// The value that writers use for rows without one.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The names and values in the folders between `root` and a file, outermost first. If a name occurs twice,
/// the inner folder counts.
pub(crate) fn partition_values(root: &Path, file: &Path) -> Vec<(String, String)> {
    let inside = file.strip_prefix(root).unwrap_or(file);
    let folders = inside.parent().into_iter().flat_map(Path::iter);
    let mut values: Vec<(String, String)> = Vec::new();
    for folder in folders.filter_map(|folder| folder.to_str()) {
        let Some((name, value)) = folder.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            continue;
        };
        let (name, value) = (url_decoded(name), url_decoded(value));
        match values.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => values.push((name, value)),
        }
    }
    values
}

/// Gives the files below `root` the fields of their folder names. A field whose values are all integers is a
/// number, others are text, and the placeholder for a missing value is null.
///
/// # Errors
///
/// The files are not all partitioned by the same fields.
pub(crate) fn add_partition_fields(root: &Path, files: &mut [InputFile]) -> Result<(), Problem> {
    let values: Vec<_> = files.iter().map(|file| partition_values(root, &file.path)).collect();
    let Some((first, others)) = values.split_first() else { return Ok(()) };
    let names = |values: &[(String, String)]| values.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let expected = names(first);
    if let Some(at) = others.iter().position(|values| names(values) != expected) {
        let shown = |at: usize| files.get(at).map_or("", |file| file.name.as_str());
        let listed = |names: Vec<String>| if names.is_empty() { "none".into() } else { names.join(", ") };
        let message = format!(
            "the folder names of files in `{}` define different fields: {} for `{}`, {} for `{}`",
            root.display(),
            listed(expected),
            shown(0),
            listed(others.get(at).map(|values| names(values)).unwrap_or_default()),
            shown(at + 1)
        );
        return Err(Problem::new(ProblemCode::InputFormat, message).hint(
            "read them one by one, or with a pattern such as `folder/*/*.parquet`, which adds no fields",
        ));
    }
    let kind = |column: usize| {
        let given = values.iter().filter_map(|values| values.get(column));
        let mut given = given.filter(|(_, value)| value != NO_VALUE);
        match given.all(|(_, value)| value.parse::<i64>().is_ok()) {
            true => PartitionValueKind::Number,
            false => PartitionValueKind::Text,
        }
    };
    let kinds: Vec<PartitionValueKind> = (0..expected.len()).map(kind).collect();
    for (file, values) in files.iter_mut().zip(values) {
        let fields = values.into_iter().zip(&kinds);
        file.partition = fields.map(|((name, value), kind)| field(name, &value, *kind)).collect();
    }
    Ok(())
}

/// The type of a field's values.
#[derive(Debug, Clone, Copy)]
enum PartitionValueKind {
    Number,
    Text,
}

fn field(name: String, value: &str, kind: PartitionValueKind) -> PartitionField {
    let json = match (kind, value.parse::<i64>()) {
        _ if value == NO_VALUE => "null".to_owned(),
        (PartitionValueKind::Number, Ok(number)) => number.to_string(),
        _ => {
            let mut json = String::with_capacity(value.len() + 2);
            write_string(value, &mut json);
            json
        }
    };
    PartitionField { name, json }
}

/// Decodes percent-encoded text: `%41` is `A`. Invalid codes, or ones that do not give text, are left
/// unchanged.
fn url_decoded(text: &str) -> String {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        if let (b'%', [high, low, after @ ..]) = (first, rest)
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            decoded.push(high << 4 | low);
            bytes = after;
        } else {
            decoded.push(*first);
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(paths: &[&str]) -> Vec<String> {
        let file = |path: &&str| InputFile::new(Path::new("r").join(path), (*path).to_owned());
        let mut files: Vec<_> = paths.iter().map(file).collect();
        add_partition_fields(Path::new("r"), &mut files).unwrap();
        let shown = |field: &PartitionField| format!("{}:{}", field.name, field.json);
        files.iter().map(|file| file.partition.iter().map(shown).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn folders_name_fields_and_numbers_are_numbers_where_all_are() {
        assert_eq!(
            fields(&["year=2026/month=01/a.csv", "year=2026/month=11/b.csv"]),
            ["year:2026 month:1", "year:2026 month:11"]
        );
        assert_eq!(fields(&["k=1/a", "k=x/b"]), [r#"k:"1""#, r#"k:"x""#]);
        assert_eq!(fields(&["k=1/a", "k=__HIVE_DEFAULT_PARTITION__/b"]), ["k:1", "k:null"]);
        assert_eq!(fields(&["d=2026-01-02/a", "d=2026-01-03/b"]), [r#"d:"2026-01-02""#, r#"d:"2026-01-03""#]);
        assert_eq!(fields(&["k=a%20b%2Fc%zz/plain/a"]), [r#"k:"a b/c%zz""#]);
        assert_eq!(fields(&["a=1/b=2/a=3/x"]), ["a:3 b:2"]);
        assert_eq!(fields(&["k=/a", "=v/b"][..1]), [r#"k:"""#]);
    }

    #[test]
    fn files_with_other_fields_are_refused() {
        let file = |path: &str| InputFile::new(Path::new("r").join(path), path.to_owned());
        let problem = add_partition_fields(Path::new("r"), &mut [file("k=1/a"), file("b")]).unwrap_err();
        assert_eq!(
            problem.message,
            "the folder names of files in `r` define different fields: k for `k=1/a`, none for `b`"
        );
    }
}
