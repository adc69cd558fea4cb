//! One thread of a run: connects, prepares, then in each phase runs events back to back, or as they become due.

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::thread::Scope;

use loadprint_recording::clock::monotonic_ns;
use rustix::thread::set_current_timer_slack;

use super::Place;
use super::Run;
use super::STACK_BYTES;
use super::ThreadFailure;
use super::client::Client;
use super::gate::Order;
use super::gate::Seat;
use crate::driver::DbError;
use crate::workload::Session;
use crate::workload::Step;

/// By how much a sleep may last longer, nanoseconds; 50,000 otherwise, which would stand in every latency of an open loop.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// What the main thread reads of a worker. Apart from those of other threads, because each event writes it.
#[derive(Debug)]
#[repr(align(128))]
pub struct Worker {
    ran_ns: AtomicI64,
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            ran_ns: AtomicI64::new(0),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }
}

impl Worker {
    /// How long the thread ran events in the last phase.
    pub fn ran_ns(&self) -> i64 {
        self.ran_ns.load(Relaxed)
    }

    /// Events begun so far.
    pub fn begun(&self) -> u64 {
        self.begun.load(Relaxed)
    }

    /// Events ended so far, also those that failed.
    pub fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }

    fn count(counter: &AtomicU64) {
        // Only this thread writes it.
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }
}

/// Starts a thread for each connection; the error comes with the number of connections that have none.
pub fn start<'scope>(scope: &'scope Scope<'scope, '_>, run: Run<'scope>) -> Result<(), (usize, io::Error)> {
    let all = run.plan.threads;
    (0..all).try_for_each(|number| {
        let named = thread::Builder::new().name(format!("client-{number}"));
        let spawned = named
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, move || work(run, number));
        spawned.map(drop).map_err(|error| (all - number, error))
    })
}

/// The body of a thread.
fn work(run: Run<'_>, number: usize) {
    let seat = Seat::new(run.gate);
    if let Err((place, error)) = serve(run, number) {
        seat.fail(ThreadFailure {
            thread: number,
            place,
            error,
        });
    }
}

fn serve(run: Run<'_>, number: usize) -> Result<(), (Place, DbError)> {
    if run.schedule.is_some() {
        // Refused only where the kernel has no such call: sleeps are then as coarse as everybody's.
        set_current_timer_slack(Some(TIMER_SLACK_NS)).ok();
    }
    let pass = run.turnstile.enter();
    if run.control.aborted() {
        return Ok(());
    }
    let connection = run
        .driver
        .connect_nth(number)
        .map_err(|error| (Place::Connecting(run.gate.waiting()), error))?;
    drop(pass);
    let worker = &run.workers[number];
    let mut client = Client::new(connection, &run.stats.threads()[number], run.control);
    let session = run.load.session(number, &mut client);
    let mut session = session.map_err(|error| (Place::Preparing, error))?;
    loop {
        client.rest();
        if run.gate.wait() != Order::Run {
            let finished = session.finish(&mut client);
            return finished.map_err(|error| (client.place(), error));
        }
        let began = monotonic_ns();
        let ended = events(&run, number, &mut client, session.as_mut());
        worker.ran_ns.store(monotonic_ns() - began, Relaxed);
        if let Err(error) = ended {
            return Err((client.place(), error));
        }
    }
}

fn events(
    run: &Run<'_>,
    number: usize,
    client: &mut Client<'_>,
    session: &mut dyn Session,
) -> Result<(), DbError> {
    if !my_turn(run, number) {
        return Ok(());
    }
    let drains = run.drains();
    let worker = &run.workers[number];
    while run.control.may_go_on(drains) {
        match run.schedule {
            None => client.arrive(None),
            Some(schedule) => {
                let due_ns = schedule.take();
                if !run.control.sleep_until(due_ns) {
                    return Ok(());
                }
                client.arrive(Some(due_ns));
            }
        }
        Worker::count(&worker.begun);
        let went_on = event(run, client, session);
        Worker::count(&worker.ended);
        if !went_on? {
            return Ok(());
        }
    }
    Ok(())
}

/// In `ramp`, threads begin one after the other; false if the phase was over before.
fn my_turn(run: &Run<'_>, number: usize) -> bool {
    let begin_ns = run.ramp_begin_ns.load(Relaxed);
    match run.plan.ramp {
        Some(ramp) if begin_ns > 0 => {
            let part = number as f64 / run.plan.threads as f64;
            run.control
                .sleep_until(begin_ns + (ramp.as_nanos() as f64 * part) as i64)
        }
        _ => true,
    }
}

/// One event with its retries; false when the thread has no more work in this phase.
fn event(run: &Run<'_>, client: &mut Client<'_>, session: &mut dyn Session) -> Result<bool, DbError> {
    loop {
        match session.event(client) {
            Ok(Step::Done(events)) => {
                client.succeed(events)?;
                return Ok(true);
            }
            Ok(Step::Exhausted) => return Ok(false),
            Err(error @ DbError::Fatal(_)) => return Err(error),
            Err(error @ DbError::Ignorable(_)) => {
                let errno = error.failure().errno;
                *run.errors().entry((client.kind(), errno)).or_default() += 1;
                client.retry_after(&error, run.plan.undo)?;
                // An event that never succeeds, as behind a lock that nobody releases, does not outlive the time.
                if !run.control.may_retry(run.drains()) {
                    return Ok(false);
                }
            }
        }
    }
}
