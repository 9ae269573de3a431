//! Suggests names for misspelled ones.

/// The candidate that `name` is most likely a misspelling of, if one is close enough.
///
/// ```
/// assert_eq!(rowmill_types::nearest_name("splt", ["id", "split"]), Some("split"));
/// assert_eq!(rowmill_types::nearest_name("colour", ["id", "split"]), None);
/// ```
pub fn nearest_name<'n>(name: &str, candidates: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_lowercase();
    let letters = name.chars().count();
    let bound = (letters / 3).max(1).min(letters);
    candidates
        .into_iter()
        .map(|candidate| (distance(&name, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= bound)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The edit distance: how many characters must be inserted, removed or changed, or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut costs: Vec<usize> = (0..=right.len()).collect();
    // The costs two rows above, and the character of the row above.
    let mut older: Vec<usize> = Vec::new();
    let mut previous = None;
    for (row, from) in left.chars().enumerate() {
        let mut diagonal = row;
        let mut before = row + 1;
        let mut next = vec![before];
        for (at, (to, above)) in right.iter().zip(costs.iter().skip(1)).enumerate() {
            let changed = diagonal + usize::from(from != *to);
            before = changed.min(above + 1).min(before + 1);
            let neighbour = at.checked_sub(1).and_then(|at| right.get(at).zip(older.get(at)));
            if let Some((neighbour, cost)) = neighbour
                && from == *neighbour
                && previous == Some(*to)
            {
                before = before.min(cost + 1);
            }
            next.push(before);
            diagonal = *above;
        }
        older = std::mem::replace(&mut costs, next);
        previous = Some(from);
    }
    costs.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_single_characters() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("abc", "abc", 0),
            ("splt", "split", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
            ("wiat", "wait", 1),
            ("nmae", "name", 1),
            ("abc", "cab", 2),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn names_in_another_case_are_nearest() {
        assert_eq!(nearest_name("TEXT", ["test", "text"]), Some("text"));
        assert_eq!(nearest_name("x", ["y"]), Some("y"));
        assert_eq!(nearest_name("", ["y"]), None);
    }

    #[test]
    fn a_name_that_differs_in_more_than_a_third_is_not_meant() {
        assert_eq!(nearest_name("hash", ["last"]), None);
        assert_eq!(nearest_name("columns", ["count"]), None);
        assert_eq!(nearest_name("foo", ["sol"]), None);
        assert_eq!(nearest_name("stdotu", ["stdout"]), Some("stdout"));
    }
}
