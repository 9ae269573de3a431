use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::chunked_reader::ChunkedReader;

fn items(bytes: &[u8], sizes: Vec<usize>, block: usize, max: usize) -> ArrayItemReader {
    let input = ChunkedReader::new(bytes, sizes);
    ArrayItemReader::new(BlockReader::with_block(Box::new(input), "rows".into(), None, block), max)
}

/// Every item as text, `…` for one that is too long, and the reason for a broken one after `!`.
fn all(mut items: ArrayItemReader) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        found.push(match items.next(ReadWait::UntilFound).unwrap() {
            ArrayItem::Text(text) => String::from_utf8_lossy(text).into_owned(),
            ArrayItem::TooLong => "…".into(),
            ArrayItem::Broken(what) => format!("!{what}"),
            ArrayItem::End => return found,
            ArrayItem::Pending => panic!("waiting was allowed"),
        });
        assert_eq!(items.number(), found.len() as u64);
    }
}

fn of(text: &str) -> Vec<String> {
    all(items(text.as_bytes(), vec![3, 1], 8, 100))
}

#[test]
fn items_end_at_commas_and_brackets_of_the_list_alone() {
    assert_eq!(of(" [ ] "), Vec::<String>::new());
    assert_eq!(of("\u{feff}[{}]"), ["{}"]);
    assert_eq!(
        of(r#"[ {"a":"],}\"\\"} , [1,[2]] ,"x,]" , 1.50,null ]"#),
        [r#"{"a":"],}\"\\"}"#, "[1,[2]]", r#""x,]""#, "1.50", "null"]
    );
    assert_eq!(of("[nope, NaN]"), ["nope", "NaN"]);
}

#[test]
fn a_list_that_is_broken_says_so_after_the_items_before() {
    let rest = "nothing after it could be read";
    for (text, last) in [
        ("", "!the input is empty; expected `[` and a list of objects".to_owned()),
        ("x", format!("!expected `[`, found `x`; {rest}")),
        ("[", "!the input ends before the `]` of the list".into()),
        ("[{},", "!the input ends before the `]` of the list".into()),
        ("[{}", "!the input ends before the `]` of the list".into()),
        ("[{},{\"a\":1", "!the input ends in the middle of it".into()),
        ("[\"a", "!the input ends in the middle of it".into()),
        ("[\"a\\", "!the input ends in the middle of it".into()),
        ("[{},]", format!("!expected an object, found `]`; {rest}")),
        ("[,{}]", format!("!expected an object, found `,`; {rest}")),
        ("[{} {}]", format!("!expected `,` or `]` after it, found `{{`; {rest}")),
        ("[{\"a\":[1}]", format!("!brackets do not match, found `}}`; {rest}")),
        ("[1}]", format!("!brackets do not match, found `}}`; {rest}")),
        ("[{}]\n{}", format!("!expected nothing after the `]` of the list, found `{{`; {rest}")),
        ("[{}]é", format!("!expected nothing after the `]` of the list, found other text; {rest}")),
    ] {
        assert_eq!(of(text).last(), Some(&last), "{text}");
    }
    assert_eq!(of("[{},{").len(), 2);
}

#[test]
fn an_item_that_is_too_long_is_passed_over_without_being_held() {
    let text = format!("[{{\"a\":\"{}\\\"\"}}, {{\"b\":1}}]", "x".repeat(10_000));
    let mut items = items(text.as_bytes(), vec![7], 16, 50);
    assert_eq!(items.next(ReadWait::UntilFound).unwrap(), ArrayItem::TooLong);
    assert_eq!(items.next(ReadWait::UntilFound).unwrap(), ArrayItem::Text(b"{\"b\":1}"));
    assert_eq!(items.next(ReadWait::UntilFound).unwrap(), ArrayItem::End);
    assert_eq!(items.position().read, text.len() as u64);
}

#[test]
fn an_item_that_is_not_complete_is_pending_until_it_may_be_waited_for() {
    let mut items = items(b"[{},{},{}]", vec![6, 1], 16, 100);
    assert_eq!(items.next(ReadWait::No).unwrap(), ArrayItem::Pending);
    assert_eq!(items.next(ReadWait::UntilFound).unwrap(), ArrayItem::Text(b"{}"));
    assert_eq!(items.next(ReadWait::No).unwrap(), ArrayItem::Pending);
    assert_eq!(items.next(ReadWait::UntilFound).unwrap(), ArrayItem::Text(b"{}"));
}

#[test]
fn brackets_beyond_those_that_are_distinguished_are_counted() {
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    assert_eq!(all(items(format!("[{deep},{{}}]").as_bytes(), vec![64], 64, 2000)), [deep.as_str(), "{}"]);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a\"\\\\,\\[\\]{}é\n ]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a\"\\\\,{}]{0,4}", inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn items_are_those_of_serde_json_however_the_bytes_arrive(
        values in prop::collection::vec(value(), 0..8),
        pretty in any::<bool>(),
        sizes in prop::collection::vec(1usize..20, 1..5),
        block in 8usize..40,
    ) {
        let text = if pretty { serde_json::to_string_pretty(&values) } else { serde_json::to_string(&values) };
        let found = all(items(text.unwrap().as_bytes(), sizes, block, 10_000));
        let parsed: Vec<Value> = found.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
        prop_assert_eq!(parsed, values);
    }

    #[test]
    fn whatever_bytes_come_there_is_an_end_and_it_does_not_depend_on_how_they_arrive(
        bytes in prop::collection::vec(prop::sample::select(b"[[]{},\"\\ a1\n\xc3".to_vec()), 0..60),
        sizes in prop::collection::vec(1usize..20, 1..5),
        max in 1usize..30,
    ) {
        let whole = all(items(&bytes, vec![1000], 1000, max));
        prop_assert_eq!(&all(items(&bytes, sizes, 8, max)), &whole);
        // If the list is valid, every item of it was found.
        if let Ok(values) = serde_json::from_slice::<Vec<Value>>(&bytes) {
            prop_assert_eq!(whole.len(), values.len());
            prop_assert!(!whole.iter().any(|item| item.starts_with('!')));
        }
    }
}
