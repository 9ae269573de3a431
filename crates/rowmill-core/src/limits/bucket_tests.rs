use super::*;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn window(limit: u64, remaining: u64, reset: f64) -> RateLimitState {
    RateLimitState { limit, remaining, reset: seconds(reset) }
}

fn learned(window: RateLimitState, now: Duration) -> RateBucket {
    RateBucket::from_rate_window(window, InFlightCharges::default(), now)
}

#[test]
fn a_bucket_fills_at_its_rate_and_says_how_long_a_call_waits() {
    let mut bucket = learned(window(600, 10, 59.0), seconds(0.0));
    assert_eq!(bucket.wait(5.0, 0.0, seconds(0.0)), Duration::ZERO);
    bucket.take(10.0, 0.0, seconds(0.0));
    let wait = bucket.wait(1.0, 0.0, seconds(0.0)).as_secs_f64();
    assert!((wait - (1.0 + bucket.margin) / 10.0).abs() < 1e-6, "{wait}");
    assert_eq!(bucket.wait(1.0, 0.0, seconds(1.0)), Duration::ZERO);
    assert!(!bucket.wait(1.0, 9.0, seconds(1.0)).is_zero(), "nine are to be left");
}

#[test]
fn what_others_take_from_the_account_shows_and_what_we_sent_since_counts() {
    let mut bucket = learned(window(600, 599, 0.1), seconds(0.0));
    let mark = bucket.take(1.0, 0.0, seconds(0.0));
    bucket.take(50.0, 0.0, seconds(10.0));
    // Reported as it was when the first call was accepted: a hundred were refilled since, fifty taken.
    bucket.update_from_window(window(600, 400, 20.0), mark, seconds(0.0), seconds(10.0));
    assert!((bucket.level - (400.0 + 100.0 - 50.0)).abs() < 1e-6, "{}", bucket.level);
}

#[test]
fn more_than_was_thought_is_believed_when_ten_answers_agree_on_it() {
    let mut bucket = learned(window(600, 300, 30.0), seconds(0.0));
    let mark = bucket.take(0.0, 0.0, seconds(0.0));
    for answer in [500, 420, 400, 410, 450, 500, 500, 500, 500] {
        bucket.update_from_window(window(600, answer, 20.0), mark, seconds(0.0), seconds(0.0));
        assert!((bucket.level - 300.0).abs() < 1e-6, "{}", bucket.level);
    }
    bucket.update_from_window(window(600, 500, 10.0), mark, seconds(0.0), seconds(0.0));
    assert!((bucket.level - 400.0).abs() < 1e-6, "{}", bucket.level);
}

#[test]
fn what_is_reported_in_thousands_may_be_half_of_one_less() {
    let mut bucket = learned(window(40_000, 1_000, 58.5), seconds(0.0));
    let mark = bucket.take(0.0, 0.0, seconds(0.0));
    for (reported, level) in [(1_000, 500.0), (2_000, 1_500.0), (1_999, 1_999.0), (3_000, 3_000.0)] {
        for _ in 0..AGREE {
            bucket.update_from_window(window(40_000, reported, 58.0), mark, seconds(0.0), seconds(0.0));
        }
        assert!((bucket.level - level).abs() < 1e-6, "{}", bucket.level);
    }
}

#[test]
fn what_calls_in_flight_will_still_be_charged_is_not_taken_for_left() {
    let mut bucket = learned(window(1000, 1000, 0.0), seconds(0.0));
    bucket.take(100.0, 80.0, seconds(0.0));
    let mark = bucket.take(100.0, 80.0, seconds(0.0));
    // The provider has charged both prompts, of 20 each, and no answer yet.
    bucket.update_from_window(window(1000, 960, 2.0), mark, seconds(0.0), seconds(0.0));
    assert!((bucket.level - 800.0).abs() < 1e-6, "{}", bucket.level);
}

#[test]
fn a_call_that_was_overtaken_by_a_burst_is_not_believed_to_come_before_it() {
    let mut bucket = learned(window(100, 100, 0.0), seconds(0.0));
    let mark = bucket.take(1.0, 0.0, seconds(0.0));
    for _ in 0..60 {
        bucket.take(1.0, 0.0, seconds(0.0));
    }
    bucket.update_from_window(window(100, 39, 36.0), mark, seconds(0.0), seconds(1.0));
    assert!(bucket.level >= 39.0, "{}", bucket.level);
}

#[test]
fn a_refused_call_is_in_nothing_that_its_refusal_tells() {
    let mut bucket = learned(window(1000, 1000, 0.0), seconds(0.0));
    let mark = bucket.take(600.0, 100.0, seconds(0.0));
    let mark = bucket.settle(mark, Some(BucketUsage::default()));
    bucket.update_from_window(window(1000, 400, 36.0), mark, seconds(0.0), seconds(0.0));
    assert!((bucket.level - 400.0).abs() < 1e-6, "{}", bucket.level);
}

#[test]
fn a_limit_that_changes_is_followed_at_once() {
    let mut bucket = learned(window(600, 600, 0.0), seconds(0.0));
    let mark = bucket.take(1.0, 0.0, seconds(0.0));
    bucket.update_from_window(window(300, 299, 0.2), mark, seconds(0.0), seconds(0.0));
    assert_eq!(bucket.per_minute(), 300);
    assert!(bucket.level <= 300.0);
    bucket.update_from_window(window(1200, 299, 45.0), mark, seconds(0.0), seconds(0.0));
    assert_eq!(bucket.per_minute(), 1200);
}

#[test]
fn a_limit_per_day_is_distinguished_from_one_per_minute() {
    let bucket = learned(window(14_400, 14_370, 180.0), seconds(0.0));
    assert_eq!(bucket.period, DAY);
    let bucket = learned(window(14_400, 14_370, 0.125), seconds(0.0));
    assert_eq!(bucket.period, MINUTE);
}

#[test]
fn what_a_call_used_replaces_what_was_expected() {
    let mut bucket = learned(window(1000, 1000, 0.0), seconds(0.0));
    let mark = bucket.take(300.0, 200.0, seconds(0.0));
    bucket.settle(mark, Some(BucketUsage { all: 700.0, late: 600.0 }));
    assert!((bucket.level - 300.0).abs() < 1e-6);
    assert_eq!(bucket.pending, 0.0);
}

#[test]
fn a_limit_of_a_user_allows_no_burst_of_a_whole_minute() {
    let mut bucket = RateBucket::from_user_limit(600, seconds(0.0));
    let mut sent = 0;
    while bucket.wait(1.0, 0.0, seconds(0.0)).is_zero() {
        bucket.take(1.0, 0.0, seconds(0.0));
        sent += 1;
    }
    assert_eq!(sent, 50);
}
#[test]
fn what_is_in_flight_when_a_limit_is_first_reported_counts_and_is_corrected_as_it_ends() {
    let call = BucketMark::before_limit_known(100.0, 40.0);
    let mut flying = InFlightCharges::default();
    (0..4).for_each(|_| flying.begin(&call));
    flying.end(&call);
    let mut bucket = RateBucket::from_rate_window(window(1000, 900, 6.0), flying, seconds(0.0));
    assert!((bucket.level - 600.0).abs() < 1e-6, "{}", bucket.level);
    for _ in 0..3 {
        bucket.settle(call, Some(BucketUsage { all: 50.0, late: 20.0 }));
    }
    assert!((bucket.level - 750.0).abs() < 1e-6, "{}", bucket.level);
    assert_eq!(bucket.pending, 0.0);
}
