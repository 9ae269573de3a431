//! Suggests names that the user may have meant.

/// The candidate that differs least, if it is similar enough.
pub(crate) fn nearest_name<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    nearest_names(name, candidates).first().copied()
}

/// The candidates that differ least, at most three, if they are similar enough.
pub(crate) fn nearest_names<'a>(name: &str, candidates: &[&'a str]) -> Vec<&'a str> {
    // A short name differs in one letter at most: two of three would give another word.
    let most = (name.chars().count() / 3).clamp(1, 2);
    let distances = candidates.iter().map(|candidate| (distance(name, candidate), *candidate));
    let mut near: Vec<_> =
        distances.filter(|(distance, candidate)| *distance <= most && *distance < candidate.len()).collect();
    // Candidates at the same distance keep their order.
    near.sort_by_key(|(distance, _)| *distance);
    let least = near.first().map(|(distance, _)| *distance);
    near.into_iter().filter(|(distance, _)| Some(*distance) == least).map(|(_, name)| name).take(3).collect()
}

/// The edit distance: how many letters must be changed, added or removed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(&other) {
            let above = *cell;
            left = (corner + usize::from(a != *b)).min(above + 1).min(left + 1);
            corner = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
