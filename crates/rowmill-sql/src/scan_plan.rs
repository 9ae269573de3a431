//! SQLite's plan for a query: which tables it scans, and how often.

use std::fmt;

use crate::table::ComparisonOperator;

/// Comparisons by the number with which they are encoded.
const COMPARISONS: [ComparisonOperator; 5] = [
    ComparisonOperator::Equal,
    ComparisonOperator::Less,
    ComparisonOperator::AtMost,
    ComparisonOperator::Greater,
    ComparisonOperator::AtLeast,
];

/// Marks our scans in the lines of a query plan.
const SCAN_MARK: &str = "rows:";

/// The plan of one scan, which SQLite passes from planning to execution.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ScanPlan {
    /// The name of the table; without it, an alias would hide the name in the query plan.
    pub(crate) table: String,
    /// A bit for every column that is used; the last bit stands for all columns from the 64th on.
    pub(crate) mask: u64,
    /// Columns, and how they are compared with the values that are supplied later.
    pub(crate) conditions: Vec<(usize, ComparisonOperator)>,
}

impl fmt::Display for ScanPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCAN_MARK}{}:{:x}", self.table, self.mask)?;
        for (column, comparison) in &self.conditions {
            let number = COMPARISONS.iter().position(|known| known == comparison).unwrap_or_default();
            write!(out, ":{column}.{number}")?;
        }
        Ok(())
    }
}

impl ScanPlan {
    /// Decodes a plan. Everything is used if it cannot be decoded.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = text.strip_prefix(SCAN_MARK).unwrap_or_default().split(':');
        let table = parts.next().unwrap_or_default().to_owned();
        let mask = parts.next().and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(u64::MAX);
        let condition = |part: &str| {
            let (column, number) = part.split_once('.')?;
            Some((column.parse().ok()?, *COMPARISONS.get(number.parse::<usize>().ok()?)?))
        };
        Self { table, mask, conditions: parts.filter_map(condition).collect() }
    }

    /// The columns that are used, out of `count`.
    pub(crate) fn columns(&self, count: usize) -> Vec<usize> {
        (0..count).filter(|column| self.mask & (1 << (*column).min(63)) != 0).collect()
    }
}

/// A line of `EXPLAIN QUERY PLAN`.
#[derive(Debug)]
pub(crate) struct PlanLine {
    pub(crate) id: i64,
    pub(crate) parent: i64,
    pub(crate) detail: String,
}

/// The consequences of a plan for the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanAssessment {
    /// The tables that one part of the query would scan more than once.
    pub(crate) repeated: Vec<String>,
    /// Whether results are returned while the input is still being read.
    pub(crate) streams: bool,
}

/// Finds the tables that are scanned repeatedly: the inner tables of a join, and those that a correlated
/// subquery reads.
pub(crate) fn assess_plan(lines: &[PlanLine]) -> PlanAssessment {
    let mut assessment = PlanAssessment { repeated: Vec::new(), streams: true };
    for (at, line) in lines.iter().enumerate() {
        assessment.streams &= !line.detail.starts_with("USE TEMP B-TREE")
            && !line.detail.starts_with("MATERIALIZE")
            && !line.detail.contains("SUBQUERY");
        let Some((_, scan)) = line.detail.split_once("VIRTUAL TABLE INDEX 0:") else { continue };
        if !scan.starts_with(SCAN_MARK) {
            continue;
        }
        let earlier = lines.get(..at).unwrap_or_default();
        let inner = earlier.iter().any(|other| other.parent == line.parent && is_loop(&other.detail));
        if inner || depends(earlier, line.parent) {
            assessment.repeated.push(ScanPlan::parse(scan).table);
        }
    }
    assessment
}

fn is_loop(detail: &str) -> bool {
    detail.starts_with("SCAN ") || detail.starts_with("SEARCH ")
}

/// Whether a part of the plan is run again for each row of another part.
fn depends(lines: &[PlanLine], mut id: i64) -> bool {
    while let Some(line) = lines.iter().find(|line| line.id == id) {
        if ["CORRELATED", "RECURSIVE STEP", "MULTI-INDEX OR"].iter().any(|part| line.detail.starts_with(part))
        {
            return true;
        }
        id = line.parent;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(plan: &[(i64, i64, &str)]) -> Vec<PlanLine> {
        plan.iter()
            .map(|(id, parent, detail)| PlanLine { id: *id, parent: *parent, detail: (*detail).into() })
            .collect()
    }

    #[test]
    fn a_scan_plan_is_read_as_it_was_written() {
        let plan = ScanPlan {
            table: "input".into(),
            mask: 0b101,
            conditions: vec![(7, ComparisonOperator::Less), (2, ComparisonOperator::AtLeast)],
        };
        assert_eq!(ScanPlan::parse(&plan.to_string()), plan);
        assert_eq!(plan.columns(3), [0, 2]);
        let wide = ScanPlan { table: String::new(), mask: 1 << 63 | 1, conditions: Vec::new() };
        assert_eq!(wide.columns(66), [0, 63, 64, 65]);
    }

    #[test]
    fn inner_loops_and_subqueries_that_depend_on_a_row_are_repeated() {
        let scan = "VIRTUAL TABLE INDEX 0:rows:input:1";
        let one = format!("SCAN input {scan}");
        let other = format!("SCAN b {scan}");
        for (plan, repeated, streams) in [
            (vec![(1, 0, one.as_str())], vec![], true),
            (vec![(1, 0, one.as_str()), (2, 0, other.as_str())], vec!["input"], true),
            (vec![(1, 0, one.as_str()), (2, 0, "USE TEMP B-TREE FOR ORDER BY")], vec![], false),
            (vec![(1, 0, "CORRELATED SCALAR SUBQUERY 1"), (2, 1, other.as_str())], vec!["input"], false),
            (vec![(1, 0, "SCALAR SUBQUERY 1"), (2, 1, other.as_str()), (3, 0, one.as_str())], vec![], false),
            (vec![(1, 0, "SCAN 2 CONSTANT ROWS"), (2, 0, one.as_str())], vec!["input"], true),
        ] {
            let found = assess_plan(&lines(&plan));
            assert_eq!(found.repeated, repeated, "{plan:?}");
            assert_eq!(found.streams, streams, "{plan:?}");
        }
    }
}
