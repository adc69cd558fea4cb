//! Runs one thread of a run: connects, prepares, then runs events in each phase, back to back or as
//! they become due.

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::thread::Scope;

use loadprint_recording::clock::monotonic_ns;
use rustix::thread::set_current_timer_slack;

use super::FailurePlace;
use super::Run;
use super::STACK_BYTES;
use super::ThreadFailure;
use super::client::Client;
use super::load::Session;
use super::load::Step;
use super::phase_barrier::Order;
use super::phase_barrier::Participant;
use crate::driver::DbError;
use crate::lock::lock;

/// Timer slack in nanoseconds. The default of 50,000 would be part of every latency of an open
/// loop.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// Counters of a worker that the main thread reads. On separate cache lines, because each event
/// writes them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Worker {
    ran_ns: AtomicI64,
    started: AtomicU64,
    ended: AtomicU64,
}

impl Worker {
    /// How long the thread ran events in the last phase.
    pub fn ran_ns(&self) -> i64 {
        self.ran_ns.load(Relaxed)
    }

    /// Number of started events.
    pub fn started(&self) -> u64 {
        self.started.load(Relaxed)
    }

    /// Number of ended events, failed ones included.
    pub fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }

    fn count(counter: &AtomicU64) {
        // Only this thread writes it.
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }
}

/// Starts a thread for each connection. The error includes the number of threads that were not
/// started.
pub fn start<'scope>(scope: &'scope Scope<'scope, '_>, run: Run<'scope>) -> Result<(), (usize, io::Error)> {
    let all = run.plan.threads;
    (0..all).try_for_each(|number| {
        let named = thread::Builder::new().name(format!("client-{number}"));
        let spawned = named
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, move || run_thread(run, number));
        spawned.map(drop).map_err(|error| (all - number, error))
    })
}

/// Body of a thread.
fn run_thread(run: Run<'_>, number: usize) {
    let participant = Participant::new(run.barrier);
    if let Err((place, error)) = run_phases(run, number) {
        participant.fail(ThreadFailure {
            thread: number,
            place,
            error,
        });
    }
}

fn run_phases(run: Run<'_>, number: usize) -> Result<(), (FailurePlace, DbError)> {
    if run.schedule.is_some() {
        // Fails only on kernels without this call: sleeps then have the default slack.
        set_current_timer_slack(Some(TIMER_SLACK_NS)).ok();
    }
    let turn = lock(&run.connecting[number % run.connecting.len()]);
    if run.control.aborted() {
        return Ok(());
    }
    let connection = run
        .driver
        .connect_nth(number)
        .map_err(|error| (FailurePlace::Connecting(run.barrier.waiting()), error))?;
    drop(turn);
    let worker = &run.workers[number];
    let stats = &run.stats.threads()[number];
    let mut client = Client::new(connection, stats, run.control, run.plan.reconnects);
    let session = run.load.session(number, &mut client);
    let mut session = session.map_err(|error| (FailurePlace::Preparing, error))?;
    loop {
        client.flush_call_counts();
        if run.barrier.wait() != Order::Run {
            let finished = session.finish(&mut client);
            return finished.map_err(|error| (client.place(), error));
        }
        let began = monotonic_ns();
        let ended = run_events(&run, number, &mut client, session.as_mut());
        let ran_ns = monotonic_ns() - began - run.control.rested_ns();
        worker.ran_ns.store(ran_ns, Relaxed);
        if let Err(error) = ended {
            return Err((client.place(), error));
        }
    }
}

fn run_events(
    run: &Run<'_>,
    number: usize,
    client: &mut Client<'_>,
    session: &mut dyn Session,
) -> Result<(), DbError> {
    if !wait_for_ramp(run, number) {
        return Ok(());
    }
    let drains = run.drains();
    let worker = &run.workers[number];
    while run.control.may_start_event(drains) {
        match run.schedule {
            None => client.begin_event(None),
            Some(schedule) => {
                let Some(due_ns) = run.control.sleep_until(schedule.take()) else {
                    return Ok(());
                };
                client.begin_event(Some(due_ns));
            }
        }
        Worker::count(&worker.started);
        let has_more = run_event(run, client, session);
        Worker::count(&worker.ended);
        if !has_more? {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits for the start of this thread in `ramp`, where threads start one by one; false if the phase
/// ended before.
fn wait_for_ramp(run: &Run<'_>, number: usize) -> bool {
    let begin_ns = run.ramp_begin_ns.load(Relaxed);
    match run.plan.ramp {
        Some(ramp) if begin_ns > 0 => {
            let part = number as f64 / run.plan.threads as f64;
            let begins = begin_ns + (ramp.as_nanos() as f64 * part) as i64;
            run.control.sleep_until(begins).is_some()
        }
        _ => true,
    }
}

/// Runs one event with its retries; false when no work is left in this phase.
fn run_event(run: &Run<'_>, client: &mut Client<'_>, session: &mut dyn Session) -> Result<bool, DbError> {
    loop {
        match session.event(client) {
            Ok(Step::Done(events)) => {
                client.complete_event(events)?;
                return Ok(true);
            }
            Ok(Step::Exhausted) => return Ok(false),
            Err(error @ DbError::Fatal(_)) => return Err(error),
            Err(error @ DbError::Ignorable(_)) => {
                let errno = error.failure().errno;
                *lock(run.errors).entry((client.kind(), errno)).or_default() += 1;
                client.retry_after(&error, run.plan.undo)?;
                // An event that never succeeds, as behind a lock that is never released, ends with
                // the phase.
                if !run.control.may_retry(run.drains()) {
                    return Ok(false);
                }
            }
        }
    }
}
