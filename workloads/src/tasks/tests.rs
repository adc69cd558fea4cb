use std::cell::RefCell;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::*;

type Body<'a> = Box<dyn FnOnce() + 'a>;

#[test]
fn one_thread_serves_tasks_that_wait_for_each_other_s_bytes() {
    let (mut left, mut right) = UnixStream::pair().unwrap();
    let log = RefCell::new(Vec::new());
    let first: Body<'_> = Box::new(|| {
        watch(left.as_fd()).unwrap();
        wait_readable();
        let mut byte = [0];
        (&left).read_exact(&mut byte).unwrap();
        log.borrow_mut().push("first has read");
        left.write_all(&byte).unwrap();
    });
    let second: Body<'_> = Box::new(|| {
        watch(right.as_fd()).unwrap();
        (&right).write_all(b"x").unwrap();
        log.borrow_mut().push("second has written");
        wait_readable();
        let mut byte = [0];
        right.read_exact(&mut byte).unwrap();
        log.borrow_mut().push("second has read");
    });
    run(vec![first, second]).unwrap();
    assert_eq!(
        log.into_inner(),
        ["second has written", "first has read", "second has read"]
    );
}

#[test]
fn sleepers_wake_in_the_order_of_their_moments() {
    let log = RefCell::new(Vec::new());
    let log = &log;
    let sleeper = |seconds: u64| -> Body<'_> {
        Box::new(move || {
            pause(Duration::from_secs(seconds));
            log.borrow_mut().push(seconds);
        })
    };
    // They begin one after the other: far enough apart for a host that stops the thread between two of them.
    run(vec![sleeper(6), sleeper(2), sleeper(4), sleeper(0)]).unwrap();
    assert_eq!(*log.borrow(), [0, 2, 4, 6]);
}

#[test]
fn a_condition_wakes_tasks_of_several_threads_and_threads() {
    let (turn, changed) = (Mutex::new(0), Condvar::new());
    let (turn, changed) = (&turn, &changed);
    let take = move |mine: u32| {
        let mut now = turn.lock().unwrap();
        while *now != mine {
            now = changed.wait(turn, now);
        }
        *now += 1;
        changed.notify_all();
    };
    thread::scope(|scope| {
        scope.spawn(move || take(4));
        for own in [[2, 0], [3, 1]] {
            scope.spawn(move || {
                let task = |mine| -> Body<'_> { Box::new(move || take(mine)) };
                run(own.map(task).into()).unwrap();
            });
        }
    });
    assert_eq!(*turn.lock().unwrap(), 5);
}

#[test]
fn a_panic_of_a_task_goes_through_the_thread_and_ends_the_others_in_order() {
    struct Ended<'a>(&'a Mutex<bool>);
    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = true;
        }
    }
    let ended = Mutex::new(false);
    let ended = &ended;
    let joined = thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let waiting: Body<'_> = Box::new(move || {
                let _ended = Ended(ended);
                pause(Duration::from_secs(3600));
            });
            let panicking: Body<'_> = Box::new(|| panic!("on purpose"));
            run(vec![waiting, panicking]).unwrap();
        });
        thread.join()
    });
    assert!(joined.is_err());
    assert!(
        *ended.lock().unwrap(),
        "the destructors of the waiting task have run"
    );
}

#[test]
fn large_frames_fit_on_the_stack_of_the_thread() {
    let sum = RefCell::new(0_u64);
    let body: Body<'_> = Box::new(|| {
        let deep = on_thread_stack(|| {
            let large = std::hint::black_box([1_u8; 1 << 19]);
            large.iter().map(|byte| u64::from(*byte)).sum::<u64>()
        });
        *sum.borrow_mut() = deep;
    });
    run(vec![body]).unwrap();
    assert_eq!(sum.into_inner(), 1 << 19);
}
