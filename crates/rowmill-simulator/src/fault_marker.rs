//! Prompt markers that request faults, such as `[[503x2]]`.
//!
//! A black-box test cannot script the simulator from inside, but it can write markers into its rows.

use crate::fault::SimulatedFault;

/// The fault that the markers in `prompt` request for the `call`-th call (from 1) of that prompt.
///
/// `[[503x2]]` occurs twice, `[[empty]]` always. Several markers apply one after another.
/// `[[429x1,retry-after=2]]` adds a header.
pub(crate) fn fault_for(prompt: &str, call: u64) -> Option<SimulatedFault> {
    let mut left = call;
    for (fault, times) in markers(prompt) {
        match times {
            None => return Some(fault),
            Some(times) if left <= times => return Some(fault),
            Some(times) => left -= times,
        }
    }
    None
}

fn markers(prompt: &str) -> impl Iterator<Item = (SimulatedFault, Option<u64>)> {
    prompt.split("[[").skip(1).filter_map(|rest| {
        let (inside, _) = rest.split_once("]]")?;
        marker(inside)
    })
}

fn marker(inside: &str) -> Option<(SimulatedFault, Option<u64>)> {
    let mut parts = inside.split(',');
    let first = parts.next()?.trim();
    // No fault's name contains an `x` before a number, so the last `x` starts the count.
    let counted = first.rsplit_once('x').and_then(|(name, times)| Some((name, times.parse().ok()?)));
    let (name, times) = counted.map_or((first, None), |(name, times)| (name, Some(times)));
    let mut fault = SimulatedFault::from_name(name)?;
    for header in parts {
        let (name, value) = header.split_once('=')?;
        fault = fault.with_header(name.trim(), value.trim());
    }
    Some((fault, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_marker_strikes_that_often_and_no_more() {
        let strikes: Vec<bool> = (1..=4).map(|call| fault_for("do [[503x2]] it", call).is_some()).collect();
        assert_eq!(strikes, [true, true, false, false]);
    }

    #[test]
    fn markers_follow_one_another() {
        let prompt = "[[429x1,retry-after=2]] and [[resetx1]]";
        assert_eq!(
            fault_for(prompt, 1),
            Some(SimulatedFault::from_status(429).with_header("retry-after", "2"))
        );
        assert_eq!(fault_for(prompt, 2), Some(SimulatedFault::Reset));
        assert_eq!(fault_for(prompt, 3), None);
    }

    #[test]
    fn every_documented_marker_is_known() {
        for name in [
            "500", "reset", "truncate", "garbage", "hang", "empty", "refusal", "length", "filter", "wrong",
            "fenced", "null", "drip", "midway",
        ] {
            assert!(fault_for(&format!("x [[{name}]]"), 99).is_some(), "{name}");
            assert!(fault_for(&format!("x [[{name}x1]]"), 2).is_none(), "{name}");
        }
        assert_eq!(fault_for("[[weather]] [[x]] [[999]] [[", 1), None);
    }
}
