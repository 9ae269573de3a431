use rowmill_types::{RateLimitState, TokenUsage};

use super::super::refusals::RefusalScope;

use super::*;

const NEED: CallNeed = CallNeed { bytes: 400, output_cap: None };

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

const AUTO: RunPaceSettings = RunPaceSettings {
    parallel: CallParallelism::Auto,
    pace: PaceMode::Auto,
    rates: MinuteLimits { requests: None, tokens: None, input_tokens: None, output_tokens: None },
    max_output: None,
    reserves_output: false,
    priming: false,
    max_outage: Duration::from_secs(3_600),
};

/// The only run of a limiter.
const ONLY: LimiterRunId = LimiterRunId(0);

fn of_one_run(settings: RunPaceSettings) -> RateLimiter {
    let mut limiter = RateLimiter::default();
    assert_eq!(limiter.add_run(settings, Duration::ZERO), ONLY);
    limiter
}

fn auto() -> RateLimiter {
    of_one_run(AUTO)
}

fn granted(limiter: &mut RateLimiter, now: f64) -> RateLimitCharge {
    granted_to(limiter, ONLY, now)
}

fn granted_to(limiter: &mut RateLimiter, run: LimiterRunId, now: f64) -> RateLimitCharge {
    match limiter.admit(run, NEED, seconds(now)) {
        AdmissionDecision::Granted(charge) => charge,
        AdmissionDecision::Wait(wait) | AdmissionDecision::WaitForOwnRun(wait) => {
            panic!("must wait for {}", wait.reason)
        }
    }
}

fn wait(limiter: &mut RateLimiter, now: f64) -> CallWait {
    match limiter.admit(ONLY, NEED, seconds(now)) {
        AdmissionDecision::Granted(_) => panic!("need not wait"),
        AdmissionDecision::Wait(wait) | AdmissionDecision::WaitForOwnRun(wait) => wait,
    }
}

/// The number of calls of a run that can be sent now.
fn calls_at(limiter: &mut RateLimiter, run: LimiterRunId, now: f64) -> usize {
    let goes = |limiter: &mut RateLimiter| {
        matches!(limiter.admit(run, NEED, seconds(now)), AdmissionDecision::Granted(_))
    };
    (0..10_000).take_while(|_| goes(limiter)).count()
}

fn capped(requests: u64) -> RunPaceSettings {
    RunPaceSettings { rates: MinuteLimits { requests: Some(requests), ..AUTO.rates }, ..chosen(1_000) }
}

fn chosen(parallel: usize) -> RunPaceSettings {
    RunPaceSettings { parallel: CallParallelism::AtMost(parallel), ..AUTO }
}

#[test]
fn every_run_has_as_many_calls_in_flight_as_its_own_user_allows() {
    let mut limiter = RateLimiter::default();
    let few = limiter.add_run(chosen(300), Duration::ZERO);
    let many = limiter.add_run(chosen(700), Duration::ZERO);
    assert_eq!(calls_at(&mut limiter, few, 0.0), 300);
    assert!(
        matches!(limiter.admit(few, NEED, seconds(0.0)), AdmissionDecision::WaitForOwnRun(_)),
        "others may go"
    );
    assert_eq!(calls_at(&mut limiter, many, 0.0), 700);
    assert_eq!((limiter.max_calls_in_flight(few), limiter.max_calls_in_flight(many)), (300, 700));
}

#[test]
fn what_an_ended_run_reported_holds_up_nobody_after_it() {
    let mut limiter = RateLimiter::default();
    let reported = RunPaceSettings { priming: true, parallel: CallParallelism::AtMost(1), ..capped(60) };
    let slow = limiter.add_run(reported, seconds(1.0));
    let charge = granted_to(&mut limiter, slow, 1.0);
    limiter.record_answer(&charge, None, None, seconds(2.0));
    limiter.remove_run(slow, seconds(2.0));
    let next = limiter.add_run(chosen(500), seconds(2.0));
    assert_eq!(calls_at(&mut limiter, next, 2.0), 500);
    assert_eq!(limiter.effective_minute_limits(next), MinuteLimits::default());
}

#[test]
fn the_tighter_of_two_limits_holds_for_both_runs_while_both_go_on() {
    let mut limiter = RateLimiter::default();
    let tight = limiter.add_run(capped(60), Duration::ZERO);
    let loose = limiter.add_run(capped(6_000), Duration::ZERO);
    assert_eq!(
        calls_at(&mut limiter, loose, 0.0) + calls_at(&mut limiter, tight, 0.0),
        5,
        "a burst of 60/min"
    );
    assert_eq!(calls_at(&mut limiter, loose, 1.0), 1, "what the other would have had is used");
    assert_eq!(calls_at(&mut limiter, tight, 1.0), 0);
    limiter.remove_run(tight, seconds(1.0));
    assert_eq!(calls_at(&mut limiter, loose, 2.0), 100, "only its own limit is left");
}

#[test]
fn a_run_without_a_limit_of_its_own_is_not_held_to_that_of_another() {
    let mut limiter = RateLimiter::default();
    let tight = limiter.add_run(capped(60), Duration::ZERO);
    let free = limiter.add_run(chosen(300), Duration::ZERO);
    assert_eq!(calls_at(&mut limiter, free, 0.0), 300);
    assert_eq!(calls_at(&mut limiter, tight, 0.0), 5, "nor counted there");
}

#[test]
fn what_answers_reported_one_run_paces_all_of_them() {
    let mut limiter = RateLimiter::default();
    let first = limiter.add_run(chosen(500), Duration::ZERO);
    let charge = granted_to(&mut limiter, first, 0.0);
    limiter.record_answer(&charge, None, Some(&request_limit(60, 10)), seconds(0.0));
    limiter.remove_run(first, seconds(0.0));
    let second = limiter.add_run(chosen(500), seconds(0.0));
    assert!(calls_at(&mut limiter, second, 0.0) <= 10);
    let hasty = limiter.add_run(RunPaceSettings { pace: PaceMode::Off, ..chosen(500) }, seconds(0.0));
    assert!(calls_at(&mut limiter, hasty, 0.0) > 100, "but not one that wants to know nothing of it");
}

#[test]
fn a_run_that_waits_for_no_outage_keeps_to_pauses_of_a_minute_and_not_to_longer_ones() {
    for (asked, goes) in [(60.0, false), (61.0, true)] {
        let mut limiter = auto();
        let hasty = limiter.add_run(RunPaceSettings { max_outage: Duration::ZERO, ..AUTO }, Duration::ZERO);
        let charge = granted(&mut limiter, 0.0);
        let refused = limiter.record_refusal(&charge, Some(seconds(asked)), None, seconds(0.0));
        assert_eq!(refused, RefusalScope::EveryCall);
        assert_eq!(calls_at(&mut limiter, hasty, 30.0) > 0, goes, "{asked}");
        assert_eq!(wait(&mut limiter, 30.0).reason, WaitReason::Throttled, "others keep to both");
    }
}

#[test]
fn the_first_call_of_a_run_goes_alone_beside_those_of_others() {
    let mut limiter = auto();
    granted(&mut limiter, 0.0);
    let primed = limiter.add_run(RunPaceSettings { priming: true, ..AUTO }, Duration::ZERO);
    let charge = granted_to(&mut limiter, primed, 0.0);
    assert!(matches!(limiter.admit(primed, NEED, seconds(0.0)), AdmissionDecision::WaitForOwnRun(_)));
    granted(&mut limiter, 0.0);
    limiter.record_answer(&charge, None, None, seconds(1.0));
    granted_to(&mut limiter, primed, 1.0);
}

fn request_limit(limit: u64, remaining: u64) -> ReportedRateLimits {
    let window = RateLimitState { limit, remaining, reset: Duration::from_secs(30) };
    ReportedRateLimits { requests: Some(window), ..ReportedRateLimits::default() }
}

#[test]
fn an_answer_that_tells_a_limit_paces_the_calls_after_it() {
    let mut limiter = auto();
    let charge = granted(&mut limiter, 0.0);
    limiter.record_answer(&charge, None, Some(&request_limit(60, 2)), seconds(0.0));
    let first = granted(&mut limiter, 0.0);
    let blocked = wait(&mut limiter, 0.0);
    assert_eq!(blocked.reason, WaitReason::Requests(60));
    let until = blocked.until.unwrap();
    assert!(until > seconds(0.2) && until < seconds(2.0), "{until:?}");
    limiter.record_answer(&first, None, None, seconds(0.5));
    granted(&mut limiter, until.as_secs_f64() + 0.01);
}

#[test]
fn a_refusal_pauses_everyone_for_as_long_as_the_provider_asks_and_charges_nothing() {
    let mut limiter = auto();
    let charge = granted(&mut limiter, 0.0);
    limiter.record_refusal(&charge, Some(seconds(3.0)), None, seconds(1.0));
    let paused = wait(&mut limiter, 1.0);
    assert_eq!(paused, CallWait { until: Some(seconds(4.0)), reason: WaitReason::Throttled });
    assert_eq!(limiter.calls_in_flight(), 0);
    granted(&mut limiter, 4.0);
}

#[test]
fn refusals_without_a_time_make_pauses_that_double() {
    let mut limiter = auto();
    let mut now = 0.0;
    let mut pauses = Vec::new();
    for _ in 0..3 {
        let charge = granted(&mut limiter, now);
        limiter.record_refusal(&charge, None, None, seconds(now));
        let until = wait(&mut limiter, now).until.unwrap().as_secs_f64();
        pauses.push(until - now);
        now = until;
    }
    assert_eq!(pauses, [0.5, 1.0, 2.0]);
}

/// A limiter that has seen answered calls, and one refusal in every `one_in`.
fn after_calls(
    mut limiter: RateLimiter,
    one_in: u64,
    after: Option<Duration>,
) -> (RateLimiter, Vec<RefusalScope>) {
    let mut refusals = Vec::new();
    for call in 1..=1_000 {
        let now = call as f64 * 0.01;
        let charge = granted(&mut limiter, now);
        if call % one_in == 0 {
            refusals.push(limiter.record_refusal(&charge, after, None, seconds(now)));
        } else {
            limiter.record_answer(&charge, None, None, seconds(now));
        }
    }
    (limiter, refusals)
}

#[test]
fn a_refusal_that_stands_alone_is_the_wait_of_its_row_and_many_are_a_pause_for_all() {
    for after in [None, Some(seconds(1.0)), Some(seconds(60.0))] {
        let (mut limiter, refusals) = after_calls(auto(), 50, after);
        assert_eq!(refusals, [RefusalScope::RowAlone(after); 20]);
        let mut refuse = || {
            let charge = granted(&mut limiter, 11.0);
            limiter.record_refusal(&charge, after, None, seconds(11.0))
        };
        let in_a_row = (1..).find(|_| refuse() == RefusalScope::EveryCall).unwrap();
        assert!((20..30).contains(&in_a_row), "{in_a_row} in a row");
        assert_eq!(wait(&mut limiter, 11.0).reason, WaitReason::Throttled);
    }
}

#[test]
fn a_refusal_whose_headers_say_that_a_limit_is_reached_pauses_everyone_however_rare_it_is() {
    for (remaining, pauses) in [(0, true), (1, true), (30, false)] {
        let (mut limiter, _) = after_calls(auto(), 5_000, None);
        let charge = granted(&mut limiter, 11.0);
        let refusal = limiter.record_refusal(
            &charge,
            Some(seconds(3.0)),
            Some(&request_limit(60, remaining)),
            seconds(11.0),
        );
        assert_eq!(refusal == RefusalScope::EveryCall, pauses, "{remaining} of 60 are left");
    }
}

#[test]
fn a_refusal_without_headers_pauses_everyone_where_a_limit_that_was_reported_is_nearly_used_up() {
    for (remaining, pauses) in [(3, true), (900, false)] {
        let (mut limiter, _) = after_calls(auto(), 5_000, None);
        let charges = [granted(&mut limiter, 11.0), granted(&mut limiter, 11.0)];
        limiter.record_answer(&charges[0], None, Some(&request_limit(1_000, remaining)), seconds(11.0));
        let refusal = limiter.record_refusal(&charges[1], Some(seconds(3.0)), None, seconds(11.0));
        assert_eq!(refusal == RefusalScope::EveryCall, pauses, "{remaining} of 1,000 are left");
    }
}

#[test]
fn a_pause_ends_when_calls_that_were_sent_after_the_refused_one_are_answered() {
    let mut limiter = auto();
    let charges: Vec<RateLimitCharge> =
        (0..8).map(|call| granted(&mut limiter, f64::from(call) * 0.001)).collect();
    limiter.record_refusal(&charges[0], Some(seconds(60.0)), None, seconds(0.1));
    assert_eq!(wait(&mut limiter, 0.1).reason, WaitReason::Throttled);
    for charge in &charges[1..] {
        limiter.record_answer(charge, None, None, seconds(0.2));
    }
    granted(&mut limiter, 0.2);
}

#[test]
fn refusals_that_come_together_make_one_pause() {
    let mut limiter = auto();
    let charges: Vec<RateLimitCharge> = (0..8).map(|_| granted(&mut limiter, 0.0)).collect();
    for charge in &charges {
        limiter.record_refusal(charge, None, None, seconds(0.1));
    }
    assert_eq!(wait(&mut limiter, 0.1).until, Some(seconds(0.6)));
}

#[test]
fn a_pause_does_not_end_by_answers_to_calls_that_were_sent_before_the_refused_one() {
    let mut limiter = auto();
    let charges: Vec<RateLimitCharge> =
        (0..8).map(|call| granted(&mut limiter, f64::from(call) * 0.001)).collect();
    limiter.record_refusal(&charges[7], Some(seconds(60.0)), None, seconds(0.1));
    for charge in &charges[..7] {
        limiter.record_answer(charge, None, None, seconds(0.2));
    }
    assert_eq!(wait(&mut limiter, 0.2).reason, WaitReason::Throttled);
}

#[test]
fn a_quota_that_is_used_up_pauses_with_what_the_provider_reported() {
    let mut limiter = auto();
    let charge = granted(&mut limiter, 0.0);
    assert_eq!(limiter.record_quota_exhaustion(&charge, None, "no credit", seconds(0.0)), seconds(30.0));
    assert!(limiter.is_waiting_for_quota(seconds(29.0)));
    assert_eq!(wait(&mut limiter, 1.0).reason, WaitReason::Quota("no credit".into()));
    let charge = granted(&mut limiter, 30.0);
    assert_eq!(
        limiter.record_quota_exhaustion(&charge, Some(seconds(7.0)), "no credit", seconds(30.0)),
        seconds(7.0)
    );
}

#[test]
fn limits_of_the_user_hold_besides_those_that_are_reported_and_the_pace_can_be_off() {
    let flags = MinuteLimits { requests: Some(60), ..MinuteLimits::default() };
    let mut limiter = of_one_run(RunPaceSettings { pace: PaceMode::Off, rates: flags, ..AUTO });
    let charge = granted(&mut limiter, 0.0);
    limiter.record_answer(&charge, None, Some(&request_limit(60, 0)), Duration::ZERO);
    for _ in 0..4 {
        granted(&mut limiter, 0.0);
    }
    assert_eq!(wait(&mut limiter, 0.0).reason, WaitReason::Requests(60));
    assert_eq!(limiter.effective_minute_limits(ONLY).requests, Some(60));
}

#[test]
fn while_the_cache_is_being_filled_the_first_call_goes_alone() {
    let mut limiter = of_one_run(RunPaceSettings { priming: true, ..AUTO });
    let first = granted(&mut limiter, 0.0);
    assert_eq!(wait(&mut limiter, 0.0).reason, WaitReason::Priming);
    limiter.record_answer(&first, None, None, seconds(1.0));
    granted(&mut limiter, 1.0);
    granted(&mut limiter, 1.0);
}

#[test]
fn tokens_are_charged_by_expectation_and_corrected_by_what_was_used() {
    let mut limiter = auto();
    let window = RateLimitState { limit: 6_000, remaining: 3_000, reset: Duration::from_secs(30) };
    let rates = ReportedRateLimits { tokens: Some(window), ..ReportedRateLimits::default() };
    let charge = granted(&mut limiter, 0.0);
    let usage = TokenUsage { input: 100, output: 900, ..TokenUsage::default() };
    limiter.record_answer(&charge, Some(&usage), Some(&rates), Duration::ZERO);
    let second = granted(&mut limiter, 0.0);
    let _third = granted(&mut limiter, 0.0);
    let blocked = wait(&mut limiter, 0.0);
    assert_eq!(blocked.reason, WaitReason::Tokens(6_000));
    limiter.record_answer(
        &second,
        Some(&TokenUsage { input: 100, ..TokenUsage::default() }),
        None,
        Duration::ZERO,
    );
    granted(&mut limiter, 0.0);
}

#[test]
fn a_call_that_is_larger_than_the_whole_limit_is_known() {
    let mut limiter = auto();
    let window = RateLimitState { limit: 50, remaining: 50, reset: Duration::ZERO };
    let rates = ReportedRateLimits { input_tokens: Some(window), ..ReportedRateLimits::default() };
    let large = granted(&mut limiter, 0.0);
    limiter.record_refusal(&large, None, Some(&rates), seconds(0.0));
    assert!(limiter.never_fits(&large), "100 tokens do not go into 50");
    let AdmissionDecision::Granted(small) =
        limiter.admit(ONLY, CallNeed { bytes: 100, ..NEED }, seconds(9.0))
    else {
        panic!("25 tokens do")
    };
    assert!(!limiter.never_fits(&small));
}

#[test]
fn a_call_that_this_machine_has_no_room_for_waits_for_another_to_end() {
    let mut limiter = auto();
    let first = granted(&mut limiter, 0.0);
    let second = granted(&mut limiter, 0.0);
    assert!(limiter.record_local_shortage(&second, seconds(0.0)));
    assert_eq!(wait(&mut limiter, 0.0).reason, WaitReason::Slots);
    limiter.record_answer(&first, None, None, seconds(1.0));
    let third = granted(&mut limiter, 1.0);
    assert!(!limiter.record_local_shortage(&third, seconds(1.0)), "nothing is left to wait for");
    granted(&mut limiter, 1.0);
}

#[test]
fn a_provider_that_sets_answers_aside_is_charged_what_the_call_itself_allows() {
    let window = RateLimitState { limit: 60_000, remaining: 10_000, reset: Duration::from_secs(50) };
    let rates = ReportedRateLimits { tokens: Some(window), ..ReportedRateLimits::default() };
    for (reserves, sent) in [(true, 1), (false, 8)] {
        let mut limiter = of_one_run(RunPaceSettings { reserves_output: reserves, ..AUTO });
        let charge = granted(&mut limiter, 0.0);
        limiter.record_answer(&charge, None, Some(&rates), Duration::ZERO);
        let capped = CallNeed { output_cap: Some(8_000), ..NEED };
        let mut admitted = 0;
        while let AdmissionDecision::Granted(_) = limiter.admit(ONLY, capped, Duration::ZERO) {
            admitted += 1;
        }
        assert_eq!(admitted, sent, "8,100 of 10,000 tokens, or about 300, or all slots");
    }
}

#[test]
fn as_many_calls_are_wanted_as_there_may_soon_be() {
    let mut limiter = auto();
    assert_eq!((limiter.max_calls_in_flight(ONLY), limiter.wanted_calls(ONLY)), (8, 16));
    for _ in 0..8 {
        let charge = granted(&mut limiter, 0.0);
        limiter.record_answer(&charge, None, None, seconds(1.0));
    }
    assert_eq!(limiter.wanted_calls(ONLY), limiter.max_calls_in_flight(ONLY) * 2);
    let chosen = of_one_run(chosen(50));
    assert_eq!((chosen.max_calls_in_flight(ONLY), chosen.wanted_calls(ONLY)), (8, 50));
}
