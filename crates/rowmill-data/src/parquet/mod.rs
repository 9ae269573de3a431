//! Rows from Parquet files.
//!
//! Several files form one table, with their columns matched by name. Values become JSON as follows:
//!
//! | in the file | in the row |
//! |---|---|
//! | integers of any width, up to unsigned 64 bits | a number, exact |
//! | floats | the shortest number that reads back as the same float; NaN and infinities, which JSON cannot represent, are `null` |
//! | decimals | text with all digits after the point: `"12.50"` |
//! | booleans, nulls | `true`, `false`, `null` |
//! | text, JSON, enums | text |
//! | bytes, also of fixed length | text if they are UTF-8, otherwise Base64 |
//! | UUIDs | text in the usual groups of digits |
//! | dates and times | `"2024-05-01"`, `"10:00:00"`, with `.123456` (or nine digits) only if the fraction is not zero |
//! | timestamps | `"2024-05-01T10:00:00"`, with `+00:00` if they are adjusted to UTC |
//! | durations and intervals | ISO 8601 text: `"P1DT2H"`, `"P1M2DT0.5S"` |
//! | lists, structs | arrays and objects, nested as they are |
//! | maps | objects; arrays of `[key, value]` if a key is a list or an object, or occurs twice |

mod batch;
mod batch_maker;
mod bytes;
mod cells;
mod civil;
mod compressed;
mod conditions;
mod dataset;
mod decimals;
mod decode_ahead;
mod dictionary;
mod encryption;
mod file;
mod footer;
mod group;
mod layout;
mod problems;
mod pruning;
mod row_block;
mod row_writer;
mod shape;
mod source;
mod sql_type;
mod table;

pub(crate) use dataset::parquet_dataset;
