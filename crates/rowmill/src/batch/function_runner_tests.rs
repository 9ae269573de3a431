use std::sync::Barrier;
use std::sync::atomic::AtomicUsize;
use std::thread::{ThreadId, current};

use futures_util::FutureExt;
use futures_util::future::join_all;

use super::*;

/// Calls a function that returns the thread on which it ran.
async fn thread_of_call(runner: &Arc<FunctionRunner>) -> ThreadId {
    runner.call(|| async { current().id() }.boxed()).await
}

/// A runner that has seen enough fast calls.
fn trusting() -> Arc<FunctionRunner> {
    let runner = Arc::new(FunctionRunner::default());
    (0..ENOUGH.0).for_each(|_| runner.judge(Duration::ZERO));
    runner
}

#[tokio::test]
async fn a_function_of_which_nothing_is_known_runs_on_another_thread() {
    let runner = Arc::new(FunctionRunner::default());
    assert_ne!(thread_of_call(&runner).await, current().id());
}

#[tokio::test]
async fn a_function_that_is_brief_runs_beside_the_loop_until_it_takes_long() {
    let runner = trusting();
    assert_eq!(thread_of_call(&runner).await, current().id());
    runner.judge(BRIEF * 2);
    assert_ne!(thread_of_call(&runner).await, current().id());
    (0..ENOUGH.0).for_each(|_| runner.judge(Duration::ZERO));
    assert_ne!(thread_of_call(&runner).await, current().id(), "it takes more to be trusted again");
}

#[tokio::test]
async fn a_function_that_only_computes_is_called_at_once_when_it_has_shown_to_be_brief() {
    let runner = Arc::new(FunctionRunner::default());
    match runner.compute(|| current().id()) {
        Computed::Now(_) => panic!("nothing is known of it"),
        Computed::Later(thread) => assert_ne!(thread.await, current().id()),
    }
    match trusting().compute(|| current().id()) {
        Computed::Now(thread) => assert_eq!(thread, current().id()),
        Computed::Later(_) => panic!("it is brief"),
    }
    let runner = trusting();
    runner.compute(|| {
        let began = Instant::now();
        while began.elapsed() <= BRIEF {}
    });
    assert!(!runner.is_trusted(), "it took long");
}

#[tokio::test]
async fn functions_that_wait_for_each_other_without_letting_go_run_at_once() {
    let runner = Arc::new(FunctionRunner::default());
    let both = Arc::new(Barrier::new(2));
    let calls = (0..2).map(|_| {
        let both = Arc::clone(&both);
        runner.call(move || async move { both.wait().is_leader() }.boxed())
    });
    let leaders = join_all(calls).await;
    assert_eq!(leaders.into_iter().filter(|is_leader| *is_leader).count(), 1);
}

#[tokio::test]
async fn no_more_threads_than_cores_are_taken_by_any_number_of_calls() {
    let runner = Arc::new(FunctionRunner::default());
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let calls = (0..200).map(|_| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        runner.call(move || {
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
            }
            .boxed()
        })
    });
    join_all(calls).await;
    // Once the function has proven to be fast, this thread calls it as well.
    assert!(most.load(Ordering::SeqCst) <= runner.most_threads + 1);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_waits_holds_no_thread_and_goes_on_when_it_is_woken() {
    let runner = Arc::new(FunctionRunner::default());
    let calls = (0..100).map(|number| {
        runner.call(move || {
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                tokio::task::yield_now().await;
                number
            }
            .boxed()
        })
    });
    assert_eq!(join_all(calls).await, (0..100).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_panic_of_a_function_is_one_of_whoever_waits_for_it() {
    for runner in [Arc::default(), trusting()] {
        let call = runner.call(|| async { panic!("no luck") }.boxed());
        let call: Result<(), _> = AssertUnwindSafe(call).catch_unwind().await;
        assert_eq!(call.unwrap_err().downcast_ref::<&str>(), Some(&"no luck"));
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_is_dropped_where_it_waits() {
    let runner = Arc::new(FunctionRunner::default());
    let (held, begun) = (Arc::new(()), Arc::new(tokio::sync::Notify::new()));
    let (kept, reported) = (Arc::clone(&held), Arc::clone(&begun));
    let mut call = Box::pin(runner.call(move || {
        async move {
            reported.notify_one();
            std::future::pending::<()>().await;
            drop(kept);
        }
        .boxed()
    }));
    tokio::select! {
        () = &mut call => unreachable!("it never ends"),
        () = begun.notified() => {}
    }
    drop(call);
    assert_eq!(Arc::strong_count(&held), 1, "nothing of it is left");
}
