//! What a person may have meant.

/// The candidate that differs least, if it is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    all_nearest(name, candidates).first().copied()
}

/// The candidates that differ least, at most three, if they are near enough to be meant.
pub(crate) fn all_nearest<'a>(name: &str, candidates: &[&'a str]) -> Vec<&'a str> {
    let distances = candidates.iter().map(|candidate| (distance(name, candidate), *candidate));
    let mut near: Vec<_> =
        distances.filter(|(distance, candidate)| *distance <= 2 && *distance < candidate.len()).collect();
    // Those at the same distance stay in their order.
    near.sort_by_key(|(distance, _)| *distance);
    let least = near.first().map(|(distance, _)| *distance);
    near.into_iter().filter(|(distance, _)| Some(*distance) == least).map(|(_, name)| name).take(3).collect()
}

/// How many letters must be changed, added or left out to get from one to the other.
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
