//! Excludes row groups by the dictionary of a column: if all values of a group are in the dictionary, one of
//! them must satisfy the condition.

use std::fs::File;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryViewArray};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader as _};
use parquet::errors::Result as Decoded;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::SerializedPageReader;

use super::file::ColumnCheck;
use super::shape::ValueShape;

/// Whether a row group may contain rows that satisfy a condition on the column of this leaf.
pub(super) fn may_hold(
    file: &File,
    group: &RowGroupMetaData,
    leaf: usize,
    check: &ColumnCheck,
) -> Decoded<bool> {
    let column = group.column(leaf);
    if !matches!(check.shape, ValueShape::Text) || !is_all_in_dictionary(column) {
        return Ok(true);
    }
    let rows = usize::try_from(group.num_rows()).unwrap_or(usize::MAX);
    let mut pages = SerializedPageReader::new(Arc::new(file.try_clone()?), column, rows, None)?;
    let Some(Page::DictionaryPage { buf, num_values, .. }) = pages.get_next_page()? else { return Ok(true) };
    let Some(values) = texts(&buf, num_values) else { return Ok(true) };
    let values: ArrayRef = Arc::new(BinaryViewArray::from_iter_values(values));
    let satisfied = check.test.check(&check.shape, &values);
    Ok(satisfied.is_none_or(|satisfied| satisfied.true_count() > 0))
}

/// Whether every page of values refers to a dictionary, according to the footer.
fn is_all_in_dictionary(column: &ColumnChunkMetaData) -> bool {
    column.dictionary_page_offset().is_some()
        && column.page_encoding_stats_mask().is_some_and(|encodings| {
            encodings.is_only(Encoding::RLE_DICTIONARY) || encodings.is_only(Encoding::PLAIN_DICTIONARY)
        })
}

/// The texts of a dictionary, each preceded by its length; `None` if it is damaged, which is reported when
/// the values themselves are read.
fn texts(mut bytes: &[u8], count: u32) -> Option<Vec<&[u8]>> {
    let mut texts = Vec::new();
    for _ in 0..count {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        texts.push(text);
        bytes = rest;
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_that_is_cut_off_tells_nothing() {
        let bytes = b"\x02\0\0\0ab\x01\0\0\0c";
        assert_eq!(texts(bytes, 2), Some(vec![&b"ab"[..], b"c"]));
        assert_eq!(texts(bytes, 3), None);
        assert_eq!(texts(b"\xff\xff\xff\xffab", 1), None);
    }
}
