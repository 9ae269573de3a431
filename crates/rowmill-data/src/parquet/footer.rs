//! Reads the footer of a file: its contents and their positions.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::{ParquetError, Result as Decoded};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetStatisticsPolicy, RowGroupMetaData};
use rowmill_types::Problem;

use super::encryption::has_encrypted_columns;
use super::layout::ColumnLayout;
use super::problems::{self, catch_decoder_panic};
use crate::dataset::open_problem;

/// The contents of a file, without anything that grows with its rows.
#[derive(Debug)]
pub(super) struct FileSummary {
    pub(super) rows: u64,
    pub(super) size: u64,
    pub(super) layout: ColumnLayout,
}

/// Reads the contents of a file, and checks that it is complete as far as the footer shows.
pub(super) fn read_summary(name: &str, path: &Path) -> Result<FileSummary, Problem> {
    let mut file = File::open(path).map_err(|error| open_problem(path, &error))?;
    let size = file.metadata().map_err(|error| open_problem(path, &error))?.len();
    let start = check_ends(name, &mut file, size)?;
    let options = || without_statistics(ArrowReaderOptions::new());
    let understood = catch_decoder_panic(|| ArrowReaderMetadata::load(&file, options()))
        // The writer's notes about its types may be of an unknown kind; the columns can be read anyway.
        .or_else(|_| {
            catch_decoder_panic(|| ArrowReaderMetadata::load(&file, options().with_skip_arrow_metadata(true)))
        })
        .map_err(|error| unreadable(name, path, error))?;
    let summary = catch_decoder_panic(|| {
        let rows = check_groups(understood.metadata(), start)?;
        let layout = ColumnLayout::new(understood.parquet_schema(), understood.schema())?;
        Ok(FileSummary { rows, size, layout })
    });
    summary.map_err(|error| unreadable(name, path, error))
}

/// Why a footer cannot be used.
fn unreadable(name: &str, path: &Path, error: ParquetError) -> Problem {
    match has_encrypted_columns(path) {
        true => problems::encrypted(name),
        false => problems::bad_footer(name, error),
    }
}

/// Reads the footer for reading rows. Statistics are kept for these leaves only.
pub(super) fn load_metadata(
    file: &File,
    layout: &ColumnLayout,
    leaves: &[usize],
) -> Decoded<ArrowReaderMetadata> {
    let options = without_statistics(ArrowReaderOptions::new())
        .with_column_stats_policy(match leaves {
            [] => ParquetStatisticsPolicy::SkipAll,
            leaves => ParquetStatisticsPolicy::skip_except(leaves),
        })
        .with_encoding_stats_policy(match leaves {
            [] => ParquetStatisticsPolicy::SkipAll,
            leaves => ParquetStatisticsPolicy::skip_except(leaves),
        })
        .with_parquet_schema(Arc::clone(&layout.stored))
        .with_schema(Arc::clone(&layout.decoded));
    if leaves.is_empty() {
        return catch_decoder_panic(|| ArrowReaderMetadata::load(file, options));
    }
    // The positions of pages are needed only if some are skipped.
    let with_pages = options.clone().with_page_index_policy(PageIndexPolicy::Optional);
    catch_decoder_panic(|| ArrowReaderMetadata::load(file, with_pages))
        .or_else(|_| catch_decoder_panic(|| ArrowReaderMetadata::load(file, options)))
}

/// The number of rows that a row group declares.
pub(super) fn group_row_count(group: &RowGroupMetaData) -> Decoded<u64> {
    u64::try_from(group.num_rows())
        .map_err(|_| ParquetError::General(format!("a row group of {} rows", group.num_rows())))
}

fn without_statistics(options: ArrowReaderOptions) -> ArrowReaderOptions {
    options
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
}

/// Distinguishes the common ways in which a Parquet file is incomplete or not one at all, and returns where
/// the footer starts.
fn check_ends(name: &str, file: &mut File, size: u64) -> Result<u64, Problem> {
    let unreadable = |error| problems::bad_footer(name, error);
    if size == 0 {
        return Err(problems::empty(name));
    }
    let mut start = Vec::new();
    file.by_ref().take(4).read_to_end(&mut start).map_err(unreadable)?;
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(size.saturating_sub(8))).map_err(unreadable)?;
    file.take(8).read_to_end(&mut end).map_err(unreadable)?;
    match (start.as_slice(), end.as_slice()) {
        (b"PARE", _) | (_, [.., b'P', b'A', b'R', b'E']) => Err(problems::encrypted(name)),
        (b"PAR1", &[a, b, c, d, b'P', b'A', b'R', b'1']) if size >= 12 => {
            let length = u64::from(u32::from_le_bytes([a, b, c, d]));
            let start = (size - 8).checked_sub(length).filter(|start| *start >= 4);
            start.ok_or_else(|| problems::bad_footer(name, "it would be longer than the file"))
        }
        (b"PAR1", _) => Err(problems::cut_off(name)),
        _ => Err(problems::not_parquet(name)),
    }
}

/// Counts the rows, and checks that all columns are before the footer.
fn check_groups(metadata: &ParquetMetaData, footer: u64) -> Decoded<u64> {
    let mut rows = 0u64;
    for group in metadata.row_groups() {
        rows = rows.saturating_add(group_row_count(group)?);
        for column in group.columns() {
            let (start, length) = column.byte_range();
            if start.checked_add(length).is_none_or(|end| end > footer) {
                let column = column.column_path().string();
                let what = format!("column `{column}` would reach beyond the footer");
                return Err(ParquetError::EOF(what));
            }
        }
    }
    Ok(rows)
}
