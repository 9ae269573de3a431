//! Text that is a date, time or boolean in a format that is not recognized.

/// How a query converts the values of a column called `name` that look like `value`; `None` for plain text.
///
/// DuckDB may infer dates, times or booleans for such a column. As text it sorts differently, so an error
/// about comparing it with one of those types shows the conversion.
pub(super) fn suggested_expression(value: &str, name: &str) -> Option<String> {
    if is_clock(value) {
        return Some(format!("CAST({name} AS TIME)"));
    }
    if ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)) {
        return Some(format!("CAST({name} AS BOOLEAN)"));
    }
    day_form(value).map(|form| format!("strptime({name}, '{form}')"))
}

/// The format of a date such as `28.11.2023`, `11/28/2023`, `28-11-2023` or `2023/11/28`.
fn day_form(value: &str) -> Option<&'static str> {
    let mark = value.chars().find(|letter| !letter.is_ascii_digit()).filter(|mark| "./-".contains(*mark))?;
    let mut parts = value.splitn(3, mark);
    let (first, second, third) = (parts.next()?, parts.next()?, parts.next()?);
    let number = |part: &str, lengths: [usize; 2]| {
        let is_number = lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse::<u32>().ok()).flatten()
    };
    if number(first, [4, 4]).is_some() {
        number(second, [1, 2]).zip(number(third, [1, 2]))?;
        return match mark {
            '.' => Some("%Y.%m.%d"),
            '/' => Some("%Y/%m/%d"),
            _ => None,
        };
    }
    let (first, second) = number(first, [1, 2]).zip(number(second, [1, 2]))?;
    number(third, [4, 4])?;
    match mark {
        '.' => Some("%d.%m.%Y"),
        '/' if first > 12 && second <= 12 => Some("%d/%m/%Y"),
        '/' => Some("%m/%d/%Y"),
        _ => Some("%d-%m-%Y"),
    }
}

/// Whether text is a time of day: `9:45`, `10:30:00`.
fn is_clock(value: &str) -> bool {
    let parts: Vec<&str> = value.split(':').collect();
    let is_number =
        |part: &&str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    (2..=3).contains(&parts.len()) && parts.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_times_and_truths_in_other_forms_are_reported_with_what_reads_them() {
        for (value, expected) in [
            ("28.11.2023", "strptime(d, '%d.%m.%Y')"),
            ("05/01/2024", "strptime(d, '%m/%d/%Y')"),
            ("28/1/2024", "strptime(d, '%d/%m/%Y')"),
            ("2024/05/01", "strptime(d, '%Y/%m/%d')"),
            ("28-11-2023", "strptime(d, '%d-%m-%Y')"),
            ("9:45", "CAST(d AS TIME)"),
            ("True", "CAST(d AS BOOLEAN)"),
        ] {
            assert_eq!(suggested_expression(value, "d").as_deref(), Some(expected), "{value}");
        }
        for value in ["", "1.2", "1.2.3", "10.0.0.1", "a/b/c", "2024", "12:", "truth", "0049/30/123456"] {
            assert_eq!(suggested_expression(value, "d"), None, "{value}");
        }
    }
}
