use super::*;

#[test]
fn messages_that_differ_in_ids_numbers_and_values_have_one_pattern() {
    for (one, other) in [
        ("row 17: expected `,` at line 1 column 33", "row 4: expected `,` at line 1 column 9"),
        ("request req_8f3a failed", "request req_0c1b failed"),
        ("'a long text' is too short", "'another text' is too short"),
        ("answer 'x1' isn't one of them", "answer 'y27' isn't one of them"),
    ] {
        assert_eq!(pattern_of(one), pattern_of(other));
    }
    assert_ne!(pattern_of("`label` is missing"), pattern_of("`score` is missing"), "other fields");
    assert_eq!(pattern_of("it isn't there, is it?"), "it isn't there, is it?");
    assert_eq!(pattern_of("日本 `x 1"), "日本 `x …");
}
