use std::collections::VecDeque;

use super::*;

/// A server that answers each call after `latency`, but at most `most` a second.
fn settle(slots: &mut CallSlots, latency: f64, most: f64, seconds: f64, from: f64) -> f64 {
    let mut now = from;
    let mut calls = VecDeque::new();
    while now < from + seconds {
        while slots.has_room() {
            slots.begin();
            calls.push_back(now);
        }
        let Some(sent) = calls.pop_front() else { break };
        now = (sent + latency).max(now + 1.0 / most);
        slots.record_answer(Duration::from_secs_f64(sent), Duration::from_secs_f64(now));
    }
    // The remaining calls are dropped.
    calls.iter().for_each(|_| slots.end());
    now
}

#[test]
fn more_calls_are_allowed_while_more_are_answered_for_it() {
    let mut slots = CallSlots::new(CallParallelism::Auto);
    settle(&mut slots, 1.0, 1e9, 30.0, 0.0);
    assert_eq!(slots.max_calls_in_flight(), MOST);
    let mut slots = CallSlots::new(CallParallelism::AutoUpTo(40));
    settle(&mut slots, 1.0, 1e9, 30.0, 0.0);
    assert_eq!(slots.max_calls_in_flight(), 40);
    let mut slots = CallSlots::new(CallParallelism::Auto);
    settle(&mut slots, 1.0, 50.0, 600.0, 0.0);
    assert!((40..=130).contains(&slots.max_calls_in_flight()), "{}", slots.max_calls_in_flight());
}

#[test]
fn a_server_that_becomes_faster_is_noticed_however_long_it_was_slow() {
    let mut slots = CallSlots::new(CallParallelism::Auto);
    let now = settle(&mut slots, 1.0, 20.0, 2_000.0, 0.0);
    let slow = slots.max_calls_in_flight();
    settle(&mut slots, 1.0, 400.0, 2_000.0, now);
    assert!(slots.max_calls_in_flight() > slow * 4, "{} after {slow}", slots.max_calls_in_flight());
}

#[test]
fn an_overload_cuts_once_for_all_calls_that_met_it_and_growth_begins_again() {
    let mut slots = CallSlots::new(CallParallelism::AtMost(100));
    slots.record_answer(Duration::ZERO, Duration::ZERO);
    (0..100).for_each(|_| slots.begin());
    for _ in 0..50 {
        slots.record_overload(Duration::from_secs(1), Duration::from_secs(2));
    }
    assert_eq!(slots.max_calls_in_flight(), 70);
    (0..50).for_each(|_| slots.end());
    settle(&mut slots, 1.0, 1e9, 60.0, 2.0);
    assert_eq!(slots.max_calls_in_flight(), 100);
}

#[test]
fn an_overload_of_one_call_in_twenty_five_cuts_nothing_and_one_in_four_does() {
    for (every, holds) in [(25, true), (4, false)] {
        let mut slots = CallSlots::new(CallParallelism::AtMost(100));
        (0..100).for_each(|_| slots.record_answer(Duration::ZERO, Duration::ZERO));
        for call in 1..=1_000 {
            slots.begin();
            let now = Duration::from_secs(call);
            if call % every == 0 {
                slots.record_overload(now, now);
            } else {
                slots.record_answer(now, now);
            }
        }
        assert_eq!(
            slots.max_calls_in_flight() == 100,
            holds,
            "one in {every}: {}",
            slots.max_calls_in_flight()
        );
    }
}

#[test]
fn after_a_pause_calls_begin_with_one_and_double() {
    let mut slots = CallSlots::new(CallParallelism::AtMost(64));
    slots.record_answer(Duration::ZERO, Duration::ZERO);
    slots.restart(Duration::ZERO);
    slots.restart(Duration::ZERO);
    let mut rounds = vec![];
    while slots.max_calls_in_flight() < 64 {
        rounds.push(slots.max_calls_in_flight());
        (0..slots.max_calls_in_flight()).for_each(|_| slots.begin());
        (0..slots.in_flight()).for_each(|_| slots.record_answer(Duration::ZERO, Duration::ZERO));
    }
    assert_eq!(rounds, [1, 2, 4, 8, 16, 32]);
}

#[test]
fn few_calls_are_sent_before_the_first_is_answered() {
    for (parallel, first, then) in [
        (CallParallelism::AtMost(64), 8, 64),
        (CallParallelism::AtMost(3), 3, 3),
        (CallParallelism::Auto, 8, 8),
        (CallParallelism::AutoUpTo(3), 3, 3),
    ] {
        let mut slots = CallSlots::new(parallel);
        assert_eq!(slots.max_calls_in_flight(), first);
        slots.record_answer(Duration::ZERO, Duration::ZERO);
        assert_eq!(slots.max_calls_in_flight(), then);
    }
}

/// A provider with room for `most` calls a second, which refuses those beyond it and additionally a share of all calls,
/// as slowly as it answers. Returns the share that is refused in the end.
fn with_refusals(slots: &mut CallSlots, most: f64, share: f64) -> f64 {
    let (mut now, mut room, mut drawn, mut last) = (0.0, 0.0, 0.0, (0.0, 0.0));
    let mut calls = VecDeque::new();
    while now < 600.0 {
        while slots.has_room() {
            slots.begin();
            calls.push_back(now);
        }
        let Some(sent) = calls.pop_front() else { break };
        let ended = f64::max(sent + 1.0, now + 1e-6);
        (room, now) = (f64::min(room + (ended - now) * most, most), ended);
        drawn += share;
        let (sent, ended) = (Duration::from_secs_f64(sent), Duration::from_secs_f64(ended));
        last = (last.0 * 0.999, last.1 * 0.999 + 1.0);
        if drawn >= 1.0 || room < 1.0 {
            drawn = f64::max(drawn - 1.0, 0.0);
            last.0 += 1.0;
            slots.record_stray_refusal(sent, ended);
        } else {
            room -= 1.0;
            slots.record_answer(sent, ended);
        }
    }
    last.0 / last.1
}

#[test]
fn refusals_that_fewer_calls_do_not_make_rarer_leave_as_many_calls_as_there_were() {
    for share in [0.1, 0.2, 0.3, 0.4] {
        let mut slots = CallSlots::new(CallParallelism::AtMost(64));
        with_refusals(&mut slots, 1e9, share);
        assert!(slots.max_calls_in_flight() >= 51, "{share}: {}", slots.max_calls_in_flight());
        let mut slots = CallSlots::new(CallParallelism::AutoUpTo(64));
        with_refusals(&mut slots, 1e9, share);
        assert!(
            slots.max_calls_in_flight() >= 51,
            "{share}, found by trying: {}",
            slots.max_calls_in_flight()
        );
    }
}

#[test]
fn a_limit_that_nobody_tells_of_is_met_with_fewer_calls_at_once_until_few_are_refused() {
    for parallel in [CallParallelism::AtMost(64), CallParallelism::Auto] {
        let mut slots = CallSlots::new(parallel);
        let refused = with_refusals(&mut slots, 40.0, 0.0);
        assert!(
            (30..=60).contains(&slots.max_calls_in_flight()),
            "{parallel:?}: {}",
            slots.max_calls_in_flight()
        );
        assert!(refused < 0.2, "{parallel:?}: {refused}");
    }
}
