//! The view through which the user's DuckDB reads the files.

use rowmill_types::settings::SQL_ENGINE;
use rowmill_types::{Problem, ProblemCode};

use crate::csv::DelimiterChoice;
use crate::text_dataset::open_blocks;
use crate::{ColumnTypeSetting, DuckDbInput, FieldDelimiter, InputFile, InputFormat};

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The statement that creates the view `input`.
pub(super) fn view_statement(
    input: &DuckDbInput<'_>,
    delimiters: &DelimiterChoice,
) -> Result<String, Problem> {
    let (list, format) = input.files;
    // Folder names give columns if they also do so without DuckDB, and only then.
    let is_partitioned = list.files.iter().any(|file| !file.partition.is_empty());
    let shared = |files: &[InputFile]| {
        let paths: Vec<_> = files.iter().map(|file| quoted(&file.path.to_string_lossy())).collect();
        format!("[{}], union_by_name = true, hive_partitioning = {is_partitioned}", paths.join(", "))
    };
    let source = match format {
        InputFormat::Jsonl => format!("read_json({}, format = 'newline_delimited')", shared(&list.files)),
        InputFormat::Json => format!("read_json({})", shared(&list.files)),
        InputFormat::Csv | InputFormat::Tsv => {
            let found = by_delimiter(&list.files, *format, delimiters)?;
            let read = found.into_iter().map(|(delimiter, files)| {
                format!("FROM read_csv({}{})", shared(files), csv_settings(input, delimiter))
            });
            format!("({})", read.collect::<Vec<_>>().join(" UNION ALL BY NAME "))
        }
        InputFormat::Parquet => format!("read_parquet({})", shared(&list.files)),
        InputFormat::Documents => {
            let message = format!(
                "{sql_engine} cannot read inputs of the format {}",
                format.name(),
                sql_engine = SQL_ENGINE.with_value("duckdb")
            );
            return Err(Problem::new(ProblemCode::NoSqlEngine, message).hint("omit the flag"));
        }
    };
    let cast = |one: &ColumnTypeSetting| {
        let name = format!("\"{}\"", one.column.replace('"', "\"\""));
        format!("CAST({name} AS {}) AS {name}", one.type_name)
    };
    // Values from text are parsed with their type directly, so that no intermediate type loses anything.
    let is_text = matches!(format, InputFormat::Csv | InputFormat::Tsv);
    let replaced: Vec<_> = input.types.iter().filter(|_| !is_text).map(cast).collect();
    let replace =
        if replaced.is_empty() { String::new() } else { format!(" REPLACE ({})", replaced.join(", ")) };
    Ok(format!("CREATE VIEW input AS SELECT *{replace} FROM {source}"))
}

/// Consecutive files with the same delimiter.
type FilesByDelimiter<'f> = Vec<(FieldDelimiter, &'f [InputFile])>;

fn by_delimiter<'f>(
    files: &'f [InputFile],
    format: InputFormat,
    delimiters: &DelimiterChoice,
) -> Result<FilesByDelimiter<'f>, Problem> {
    let chosen = |file| delimiters.choose(&mut open_blocks(file)?, format);
    let chosen: Vec<_> = files.iter().map(chosen).collect::<Result<_, Problem>>()?;
    let mut rest = files;
    let parts = chosen.chunk_by(PartialEq::eq).filter_map(|same| {
        let (part, behind) = rest.split_at_checked(same.len())?;
        rest = behind;
        Some((*same.first()?, part))
    });
    Ok(parts.collect())
}

/// The arguments of `read_csv` besides the file names: they match how rows are read without DuckDB.
fn csv_settings(input: &DuckDbInput<'_>, delimiter: FieldDelimiter) -> String {
    let sign = char::from(delimiter.byte()).to_string();
    let mut settings = format!(", header = true, delim = {}, quote = '\"', escape = '\"'", quoted(&sign));
    let types = input.types.iter();
    let types: Vec<_> =
        types.map(|one| format!("{}: {}", quoted(&one.column), quoted(&one.type_name))).collect();
    if !types.is_empty() {
        settings.push_str(&format!(", types = {{{}}}", types.join(", ")));
    }
    settings
}
