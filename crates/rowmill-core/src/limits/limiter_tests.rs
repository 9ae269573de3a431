use rowmill_types::RateWindow;

use super::*;

const NEED: Need = Need { bytes: 400, output_cap: None };

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn auto() -> Limiter {
    Limiter::new(Parallel::Auto, Pace::Auto, RateFlags::default(), Duration::ZERO)
}

fn granted(limiter: &mut Limiter, now: f64) -> Charge {
    match limiter.admit(NEED, seconds(now)) {
        Admission::Granted(charge) => charge,
        Admission::Wait(wait) => panic!("must wait for {}", wait.reason),
    }
}

fn wait(limiter: &mut Limiter, now: f64) -> Wait {
    match limiter.admit(NEED, seconds(now)) {
        Admission::Granted(_) => panic!("need not wait"),
        Admission::Wait(wait) => wait,
    }
}

fn told(limit: u64, remaining: u64) -> RateLimits {
    let window = RateWindow { limit, remaining, reset: Duration::from_secs(30) };
    RateLimits { requests: Some(window), ..RateLimits::default() }
}

#[test]
fn an_answer_that_tells_a_limit_paces_the_calls_after_it() {
    let mut limiter = auto();
    let charge = granted(&mut limiter, 0.0);
    limiter.answered(&charge, None, Some(&told(60, 2)), seconds(0.0));
    let first = granted(&mut limiter, 0.0);
    let blocked = wait(&mut limiter, 0.0);
    assert_eq!(blocked.reason, WaitReason::Requests(60));
    let until = blocked.until.unwrap();
    assert!(until > seconds(0.2) && until < seconds(2.0), "{until:?}");
    limiter.answered(&first, None, None, seconds(0.5));
    granted(&mut limiter, until.as_secs_f64() + 0.01);
}

#[test]
fn a_refusal_pauses_everyone_for_as_long_as_the_provider_asks_and_charges_nothing() {
    let mut limiter = auto();
    let charge = granted(&mut limiter, 0.0);
    limiter.refused(&charge, Some(seconds(3.0)), None, seconds(1.0));
    let paused = wait(&mut limiter, 1.0);
    assert_eq!(paused, Wait { until: Some(seconds(4.0)), reason: WaitReason::Throttled });
    assert_eq!(limiter.in_flight(), 0);
    granted(&mut limiter, 4.0);
}

#[test]
fn refusals_without_a_time_make_pauses_that_double() {
    let mut limiter = auto();
    let mut now = 0.0;
    let mut pauses = Vec::new();
    for _ in 0..3 {
        let charge = granted(&mut limiter, now);
        limiter.refused(&charge, None, None, seconds(now));
        let until = wait(&mut limiter, now).until.unwrap().as_secs_f64();
        pauses.push(until - now);
        now = until;
    }
    assert_eq!(pauses, [0.5, 1.0, 2.0]);
}

/// A limiter that has seen calls answered, and one refused in so many.
fn after_calls(mut limiter: Limiter, one_in: u64, after: Option<Duration>) -> (Limiter, Vec<Refusal>) {
    let mut refusals = Vec::new();
    for call in 1..=1_000 {
        let now = call as f64 * 0.01;
        let charge = granted(&mut limiter, now);
        if call % one_in == 0 {
            refusals.push(limiter.refused(&charge, after, None, seconds(now)));
        } else {
            limiter.answered(&charge, None, None, seconds(now));
        }
    }
    (limiter, refusals)
}

#[test]
fn a_refusal_that_stands_alone_is_the_wait_of_its_row_and_many_are_a_pause_for_all() {
    for after in [None, Some(seconds(1.0)), Some(seconds(60.0))] {
        let (mut limiter, refusals) = after_calls(auto(), 50, after);
        assert_eq!(refusals, [Refusal::RowAlone(after); 20]);
        let mut refuse = || {
            let charge = granted(&mut limiter, 11.0);
            limiter.refused(&charge, after, None, seconds(11.0))
        };
        let in_a_row = (1..).find(|_| refuse() == Refusal::Everybody).unwrap();
        assert!((20..30).contains(&in_a_row), "{in_a_row} in a row");
        assert_eq!(wait(&mut limiter, 11.0).reason, WaitReason::Throttled);
    }
}

#[test]
fn a_refusal_whose_headers_say_that_a_limit_is_reached_pauses_everyone_however_rare_it_is() {
    for (remaining, pauses) in [(0, true), (1, true), (30, false)] {
        let (mut limiter, _) = after_calls(auto(), 5_000, None);
        let charge = granted(&mut limiter, 11.0);
        let refusal = limiter.refused(&charge, Some(seconds(3.0)), Some(&told(60, remaining)), seconds(11.0));
        assert_eq!(refusal == Refusal::Everybody, pauses, "{remaining} of 60 are left");
    }
}

#[test]
fn a_refusal_without_headers_pauses_everyone_where_a_limit_that_was_told_is_nearly_used_up() {
    for (remaining, pauses) in [(3, true), (900, false)] {
        let (mut limiter, _) = after_calls(auto(), 5_000, None);
        let charges = [granted(&mut limiter, 11.0), granted(&mut limiter, 11.0)];
        limiter.answered(&charges[0], None, Some(&told(1_000, remaining)), seconds(11.0));
        let refusal = limiter.refused(&charges[1], Some(seconds(3.0)), None, seconds(11.0));
        assert_eq!(refusal == Refusal::Everybody, pauses, "{remaining} of 1,000 are left");
    }
}

#[test]
fn a_pause_ends_when_calls_that_were_sent_after_the_refused_one_are_answered() {
    let mut limiter = auto();
    let charges: Vec<Charge> = (0..8).map(|call| granted(&mut limiter, f64::from(call) * 0.001)).collect();
    limiter.refused(&charges[0], Some(seconds(60.0)), None, seconds(0.1));
    assert_eq!(wait(&mut limiter, 0.1).reason, WaitReason::Throttled);
    for charge in &charges[1..] {
        limiter.answered(charge, None, None, seconds(0.2));
    }
    granted(&mut limiter, 0.2);
}

#[test]
fn refusals_that_come_together_make_one_pause() {
    let mut limiter = auto();
    let charges: Vec<Charge> = (0..8).map(|_| granted(&mut limiter, 0.0)).collect();
    for charge in &charges {
        limiter.refused(charge, None, None, seconds(0.1));
    }
    assert_eq!(wait(&mut limiter, 0.1).until, Some(seconds(0.6)));
}

#[test]
fn a_pause_does_not_end_by_answers_to_calls_that_were_sent_before_the_refused_one() {
    let mut limiter = auto();
    let charges: Vec<Charge> = (0..8).map(|call| granted(&mut limiter, f64::from(call) * 0.001)).collect();
    limiter.refused(&charges[7], Some(seconds(60.0)), None, seconds(0.1));
    for charge in &charges[..7] {
        limiter.answered(charge, None, None, seconds(0.2));
    }
    assert_eq!(wait(&mut limiter, 0.2).reason, WaitReason::Throttled);
}

#[test]
fn a_quota_that_is_used_up_pauses_with_what_the_provider_said() {
    let mut limiter = auto();
    let charge = granted(&mut limiter, 0.0);
    assert_eq!(limiter.exhausted(&charge, None, "no credit", seconds(0.0)), seconds(30.0));
    assert!(limiter.is_exhausted(seconds(29.0)));
    assert_eq!(wait(&mut limiter, 1.0).reason, WaitReason::Quota("no credit".into()));
    let charge = granted(&mut limiter, 30.0);
    assert_eq!(limiter.exhausted(&charge, Some(seconds(7.0)), "no credit", seconds(30.0)), seconds(7.0));
}

#[test]
fn limits_of_the_user_hold_besides_those_that_are_told_and_the_pace_can_be_off() {
    let flags = RateFlags { requests: Some(60), ..RateFlags::default() };
    let mut limiter = Limiter::new(Parallel::Auto, Pace::Off, flags, Duration::ZERO);
    let charge = granted(&mut limiter, 0.0);
    limiter.answered(&charge, None, Some(&told(60, 0)), Duration::ZERO);
    for _ in 0..4 {
        granted(&mut limiter, 0.0);
    }
    assert_eq!(wait(&mut limiter, 0.0).reason, WaitReason::Requests(60));
    assert_eq!(limiter.known().requests, Some(60));
}

#[test]
fn while_the_cache_is_being_filled_the_first_call_goes_alone() {
    let mut limiter = auto().with_priming(true);
    let first = granted(&mut limiter, 0.0);
    assert_eq!(wait(&mut limiter, 0.0).reason, WaitReason::Priming);
    limiter.answered(&first, None, None, seconds(1.0));
    granted(&mut limiter, 1.0);
    granted(&mut limiter, 1.0);
}

#[test]
fn tokens_are_charged_by_expectation_and_corrected_by_what_was_used() {
    let mut limiter = auto();
    let window = RateWindow { limit: 6_000, remaining: 3_000, reset: Duration::from_secs(30) };
    let rates = RateLimits { tokens: Some(window), ..RateLimits::default() };
    let charge = granted(&mut limiter, 0.0);
    let usage = Usage { input: 100, output: 900, ..Usage::default() };
    limiter.answered(&charge, Some(&usage), Some(&rates), Duration::ZERO);
    let second = granted(&mut limiter, 0.0);
    let _third = granted(&mut limiter, 0.0);
    let blocked = wait(&mut limiter, 0.0);
    assert_eq!(blocked.reason, WaitReason::Tokens(6_000));
    limiter.answered(&second, Some(&Usage { input: 100, ..Usage::default() }), None, Duration::ZERO);
    granted(&mut limiter, 0.0);
}

#[test]
fn a_call_that_is_larger_than_the_whole_limit_is_known() {
    let mut limiter = auto();
    let window = RateWindow { limit: 50, remaining: 50, reset: Duration::ZERO };
    let rates = RateLimits { input_tokens: Some(window), ..RateLimits::default() };
    let large = granted(&mut limiter, 0.0);
    limiter.refused(&large, None, Some(&rates), seconds(0.0));
    assert!(limiter.never_fits(&large), "100 tokens do not go into 50");
    let Admission::Granted(small) = limiter.admit(Need { bytes: 100, ..NEED }, seconds(9.0)) else {
        panic!("25 tokens do")
    };
    assert!(!limiter.never_fits(&small));
}

#[test]
fn a_call_that_this_machine_has_no_room_for_waits_for_another_to_end() {
    let mut limiter = auto();
    let first = granted(&mut limiter, 0.0);
    let second = granted(&mut limiter, 0.0);
    assert!(limiter.crowded(&second, seconds(0.0)));
    assert_eq!(wait(&mut limiter, 0.0).reason, WaitReason::Slots);
    limiter.answered(&first, None, None, seconds(1.0));
    let third = granted(&mut limiter, 1.0);
    assert!(!limiter.crowded(&third, seconds(1.0)), "nothing is left to wait for");
    granted(&mut limiter, 1.0);
}

#[test]
fn a_provider_that_sets_answers_aside_is_charged_what_the_call_itself_allows() {
    let window = RateWindow { limit: 60_000, remaining: 10_000, reset: Duration::from_secs(50) };
    let rates = RateLimits { tokens: Some(window), ..RateLimits::default() };
    for (reserves, sent) in [(true, 1), (false, 8)] {
        let mut limiter = auto().with_max_output(None, reserves);
        let charge = granted(&mut limiter, 0.0);
        limiter.answered(&charge, None, Some(&rates), Duration::ZERO);
        let capped = Need { output_cap: Some(8_000), ..NEED };
        let mut admitted = 0;
        while let Admission::Granted(_) = limiter.admit(capped, Duration::ZERO) {
            admitted += 1;
        }
        assert_eq!(admitted, sent, "8,100 of 10,000 tokens, or about 300, or all slots");
    }
}

#[test]
fn as_many_calls_are_wanted_as_there_may_soon_be() {
    let mut limiter = auto();
    assert_eq!((limiter.allowed(), limiter.wanted()), (8, 16));
    for _ in 0..8 {
        let charge = granted(&mut limiter, 0.0);
        limiter.answered(&charge, None, None, seconds(1.0));
    }
    assert_eq!(limiter.wanted(), limiter.allowed() * 2);
    let chosen = Limiter::new(Parallel::AtMost(50), Pace::Auto, RateFlags::default(), Duration::ZERO);
    assert_eq!((chosen.allowed(), chosen.wanted()), (8, 50));
}
