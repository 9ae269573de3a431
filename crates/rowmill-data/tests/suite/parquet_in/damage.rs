//! Broken files are reported by name, and never cause a panic.

use std::fs;
use std::path::Path;

use arrow_array::{Int64Array, StringArray};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use rowmill_core::ports::{ColumnCondition, ComparisonOperator, ComparisonValue, RequestedDatasetPart};
use rowmill_types::{Problem, ProblemCode};

use super::support::{Folder, array, drain, open};
use crate::printed::printed_by;

fn problem_of(folder: &Folder, bytes: &[u8]) -> Problem {
    let path = folder.path("broken.parquet");
    fs::write(&path, bytes).unwrap();
    let problem = open(&path).unwrap_err();
    assert!(problem.message.contains("broken.parquet"), "{problem}");
    assert!(problem.hint.is_some(), "{problem}");
    assert_eq!(problem.code, ProblemCode::InputUnreadable);
    problem
}

fn small(folder: &Folder, codec: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_max_row_group_row_count(Some(20))
        .set_data_page_row_count_limit(10)
        .set_write_batch_size(5)
        .build();
    let words = (0..60).map(|at| (at % 7 != 0).then(|| format!("word {}", at % 11)));
    let mut lists = arrow_array::builder::ListBuilder::new(arrow_array::builder::Int32Builder::new());
    for at in 0..60 {
        for item in 0..at % 3 {
            lists.values().append_value(item);
        }
        lists.append(at % 5 != 0);
    }
    let columns = vec![
        ("n", array(Int64Array::from_iter_values(0..60))),
        ("w", array(StringArray::from_iter(words))),
        ("l", array(lists.finish())),
    ];
    fs::read(folder.write_with("small.parquet", properties, columns)).unwrap()
}

/// Where the footer begins.
fn footer_of(whole: &[u8]) -> usize {
    let length = whole.get(whole.len() - 8..whole.len() - 4).unwrap();
    whole.len() - 8 - u32::from_le_bytes(length.try_into().unwrap()) as usize
}

#[test]
fn what_is_wrong_with_a_file_is_reported() {
    let folder = Folder::new();
    let whole = small(&folder, Compression::SNAPPY);
    let mut encrypted = whole.clone();
    let end = encrypted.len() - 4;
    encrypted.splice(end.., *b"PARE");
    let mut bad_footer = whole.clone();
    let footer = bad_footer.len() - 40;
    bad_footer.get_mut(footer..footer + 20).unwrap().fill(0xff);
    let mut long_footer = whole.clone();
    let at = long_footer.len() - 8;
    long_footer.splice(at..at + 4, u32::MAX.to_le_bytes());
    for (bytes, what) in [
        (b"".as_slice(), "is empty"),
        (b"P", "is not Parquet"),
        (b"a,b\n1,2\n", "is not Parquet"),
        (b"PAR1", "is truncated"),
        (b"PAR1PAR1", "is truncated"),
        (whole.get(..whole.len() / 2).unwrap(), "is truncated"),
        (whole.get(..whole.len() - 1).unwrap(), "is truncated"),
        (&encrypted, "is encrypted"),
        (&bad_footer, "the footer of the input file cannot be read"),
        (&long_footer, "the footer of the input file cannot be read"),
    ] {
        let problem = problem_of(&folder, bytes);
        assert!(problem.message.contains(what), "{problem}");
    }
    // All bytes from the middle are missing: the footer points beyond the file.
    let middle = [b"PAR1", whole.get(footer_of(&whole)..).unwrap()].concat();
    let problem = problem_of(&folder, &middle);
    assert!(problem.cause.unwrap().contains("beyond the footer"), "{}", problem.message);
}

#[test]
fn a_damaged_page_stops_the_read_at_its_row() {
    let folder = Folder::new();
    let mut bytes = small(&folder, Compression::ZSTD(ZstdLevel::default()));
    // The second of the three row groups.
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let pages: Vec<usize> = (0..bytes.len()).filter(|at| bytes.get(*at..at + 4) == Some(&magic)).collect();
    let page = *pages.get(pages.len() / 2).unwrap();
    bytes.get_mut(page..page + 4).unwrap().fill(0);
    let path = folder.path("damaged.parquet");
    fs::write(&path, &bytes).unwrap();
    let dataset = open(&path).unwrap();
    let mut source = dataset.open().unwrap();
    let (rows, problem) = drain(source.as_mut());
    assert_eq!(rows.len(), 20, "the first row group is whole");
    let problem = problem.unwrap();
    assert_eq!(problem.code, ProblemCode::InputUnreadable);
    assert!(problem.message.contains("beyond row 20"), "{problem}");
    assert!(problem.message.contains("damaged.parquet"), "{problem}");
    assert!(problem.cause.is_some() && problem.hint.is_some());
    let again = drain(source.as_mut());
    assert_eq!(again, (vec![], Some(problem)), "a read that failed stays failed");
}

#[test]
fn no_damage_makes_the_reader_panic_or_hang() {
    let folder = Folder::new();
    let path = folder.path("damaged.parquet");
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut draw = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    for codec in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
        let whole = small(&folder, codec);
        let footer = footer_of(&whole);
        for round in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..=draw(3) {
                // Half of the damage goes into the footer, which affects the most.
                let at = if round % 2 == 0 { footer + draw(whole.len() - footer) } else { draw(bytes.len()) };
                let byte = bytes.get_mut(at).unwrap();
                *byte = [*byte ^ 1 << draw(8), 0xff, 0, 0x7f][draw(4)];
            }
            if round % 10 == 0 {
                let end = draw(bytes.len());
                bytes.truncate(end);
            }
            fs::write(&path, &bytes).unwrap();
            read_all_ways(&path);
        }
    }
}

#[test]
fn panics_of_the_decoder_are_problems_and_are_not_printed() {
    let name = "parquet_in::damage::panics_of_the_decoder_are_problems_and_are_not_printed";
    let Some(message) = printed_by(name) else {
        let folder = Folder::new();
        let path = folder.path("damaged.parquet");
        let whole = small(&folder, Compression::UNCOMPRESSED);
        let mut panics = 0;
        for at in 4..footer_of(&whole) {
            let mut bytes = whole.clone();
            *bytes.get_mut(at).unwrap() = 0xff;
            fs::write(&path, &bytes).unwrap();
            let (_, problem) = drain(&mut *open(&path).unwrap().open().unwrap());
            let cause = problem.and_then(|problem| problem.cause).unwrap_or_default();
            panics += usize::from(cause.contains("the decoder gave up"));
        }
        assert!(panics > 0, "without a panic, nothing is known about what is printed");
        return;
    };
    assert!(!message.contains("panicked"), "{message}");
}

#[test]
fn passing_over_damaged_lists_comes_to_an_end() {
    let folder = Folder::new();
    let path = folder.path("damaged.parquet");
    let whole = small(&folder, Compression::UNCOMPRESSED);
    let reader = SerializedFileReader::new(fs::File::open(folder.path("small.parquet")).unwrap()).unwrap();
    let (start, length) = reader.metadata().row_group(0).column(2).byte_range();
    for at in start..start + length {
        for value in [0, 1, 2, 0xff] {
            let mut bytes = whole.clone();
            *bytes.get_mut(usize::try_from(at).unwrap()).unwrap() = value;
            fs::write(&path, &bytes).unwrap();
            let mut source = open(&path).unwrap().open().unwrap();
            if source.skip(15).is_ok() {
                drain(source.as_mut());
            }
        }
    }
}

/// Reads along all code paths. Wrong values cannot be detected; more rows than the footer declares must not
/// be returned.
fn read_all_ways(path: &Path) {
    let Ok(dataset) = open(path) else { return };
    let count = dataset.count().unwrap().unwrap();
    let column = dataset.columns().unwrap().unwrap().first().map(|column| column.name.clone());
    let conditions = column.map(|column| ColumnCondition {
        column,
        comparison: ComparisonOperator::Greater,
        value: ComparisonValue::Integer(30),
    });
    for part in [
        RequestedDatasetPart::default(),
        RequestedDatasetPart { columns: None, conditions: conditions.into_iter().collect() },
    ] {
        let Ok(mut source) = dataset.open_part(&part) else { continue };
        let (rows, _) = drain(source.as_mut());
        assert!(rows.len() as u64 <= count);
        let Ok(mut source) = dataset.open_part(&part) else { continue };
        if source.skip(15).is_ok() {
            drain(source.as_mut());
        }
    }
}

#[test]
fn encrypted_columns_are_called_encrypted_and_the_others_can_be_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/encrypted-columns.parquet");
    let data = open(&path).unwrap();
    let (rows, problem) = drain(&mut *data.open().unwrap());
    assert_eq!(rows, []);
    let problem = problem.unwrap();
    assert_eq!(problem.message, format!("columns of the input file are encrypted: `{}`", path.display()));
    assert!(problem.hint.unwrap().contains("without encryption"));
}
