use rowmill_types::RateWindow;

use super::*;

const NEED: Need = Need { bytes: 400 };

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

#[test]
fn a_refusal_now_and_then_without_a_time_pauses_nobody_and_many_do() {
    let mut limiter = auto();
    for call in 1..=200 {
        let charge = granted(&mut limiter, 0.0);
        if call % 50 == 0 {
            limiter.refused(&charge, None, None, seconds(0.0));
        } else {
            limiter.answered(&charge, None, None, seconds(0.0));
        }
    }
    for _ in 0..3 {
        let charge = granted(&mut limiter, 0.0);
        limiter.refused(&charge, None, None, seconds(0.0));
    }
    assert_eq!(wait(&mut limiter, 0.0).reason, WaitReason::Throttled);
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
    let Admission::Granted(small) = limiter.admit(Need { bytes: 100 }, seconds(9.0)) else {
        panic!("25 tokens do")
    };
    assert!(!limiter.never_fits(&small));
}
