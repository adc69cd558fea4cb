//! Runs a load: one thread per connection, a closed loop or an open one, phases whose ends all threads share. Owns the clock.
//! Between two phases every thread waits, so that counters of the server and of the client can be read at rest.

pub mod backlog;
pub mod client;
pub mod control;
pub mod gate;
pub mod interrupts;
mod phase;
pub mod schedule;
mod turnstile;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicI64;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use anyhow::Result;

use crate::driver::DbError;
use crate::driver::Driver;
use crate::stats::Snapshot;
use crate::stats::Stats;
use crate::stats::ThreadStats;
use crate::stats::Totals;
use crate::workload::Load;
use backlog::Arrived;
use backlog::Backlog;
use control::Control;
use gate::Gate;
use gate::Order;
use interrupts::Interrupts;
use schedule::Rate;
use schedule::Schedule;
use turnstile::Turnstile;
use worker::Worker;

/// Of a thread. Linux takes the pages when they are first used; the client library with TLS uses some 40 kB of them.
const STACK_BYTES: usize = 256 * 1024;
/// Threads that may be connecting at once: more would overflow the listening socket's backlog, which the kernel refuses on a unix socket.
const CONNECTING: usize = 32;

/// How long and how wide.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Threads, each with one connection.
    pub threads: usize,
    /// Length of `measure`, unless the events are used up before.
    pub time: Option<Duration>,
    /// Events of `measure`, all threads together.
    pub events: Option<u64>,
    /// Length of `warmup`, which is not counted.
    pub warmup: Option<Duration>,
    /// Length of `ramp`, in which one thread after the other begins to run events, not counted.
    pub ramp: Option<Duration>,
    /// Open loop; without it every thread runs its events back to back.
    pub rate: Option<Rate>,
    /// How an event that met an ignored error is undone.
    pub undo: Undo,
    /// No further thread became ready for so long: the run gives up.
    pub patience: Duration,
    /// After the end of a phase no thread ended its event for so long: their connections are cut.
    pub cut_after: Option<Duration>,
}

/// What happens to the transaction of an event that met an ignored error, before the event runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Undo {
    /// It is rolled back.
    #[default]
    Rollback,
    /// Nothing, as in sysbench: after a statement rollback (1205) the next BEGIN commits what was done before.
    Nothing,
}

/// One interval of a phase, a second long except for the last one.
#[derive(Debug)]
pub struct Interval {
    /// From 0.
    pub number: u32,
    /// Nanoseconds since the phase began.
    pub from_ns: i64,
    /// As `from_ns`, the end.
    pub to_ns: i64,
    /// CLOCK_MONOTONIC of the end.
    pub monotonic_ns: i64,
    /// CLOCK_REALTIME of the end.
    pub realtime_ns: i64,
    /// Per transaction type.
    pub totals: Vec<Totals>,
    /// In an open loop, at the end.
    pub backlog: Option<Backlog>,
}

/// Told of everything that happens around the events.
pub trait Observer {
    /// So many of all threads are connected and prepared; called every second until they are.
    fn connecting(&mut self, ready: usize, of: usize) -> Result<()>;
    /// The time is over for so many seconds, and so many threads are still in an event; called now and then.
    fn finishing(&mut self, seconds: u64, threads: usize) -> Result<()>;
    /// All threads wait; the phase begins when this returns.
    fn begins(&mut self, phase: &str) -> Result<()>;
    /// An interval of the phase is over.
    fn interval(&mut self, phase: &str, interval: Interval) -> Result<()>;
    /// All threads wait again; called at once.
    fn ended(&mut self, phase: &str) -> Result<()>;
    /// Before `measure` begins, outside of every clock, nothing moving.
    fn at_rest_before(&mut self) -> Result<()>;
    /// After `measure` has ended, as above.
    fn at_rest_after(&mut self) -> Result<()>;
}

/// What `measure` gave.
#[derive(Debug, Default)]
pub struct Measured {
    /// From the release of the threads to the last one's arrival.
    pub seconds: f64,
    /// The part of `seconds` after the time was over, for a load that drains.
    pub drain_seconds: f64,
    /// Per transaction type.
    pub totals: Vec<Totals>,
    /// Events and seconds of each thread.
    pub per_thread: Vec<(u64, f64)>,
    /// In an open loop.
    pub arrived: Option<Arrived>,
}

/// The error that ended a thread, and with it the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFailure {
    /// From 0.
    pub thread: usize,
    /// Where it was.
    pub place: Place,
    /// What it met.
    pub error: DbError,
}

/// Where a thread was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// It opened its connection; so many threads were ready.
    Connecting(usize),
    /// It set up its session.
    Preparing,
    /// It ran a transaction of this type, and this statement where it is known.
    Event(usize, Option<String>),
}

/// How a run ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `None` if it did not get as far as `measure`.
    pub measured: Option<Measured>,
    /// The first fatal error of a thread.
    pub failure: Option<ThreadFailure>,
    /// The signal that stopped it.
    pub signal: Option<i32>,
    /// Why the run ended before its time, if nothing failed.
    pub short: Option<String>,
    /// Ignored errors by transaction type and number, `measure` only.
    pub errors: Errors,
}

/// Counts by transaction type and error number.
pub type Errors = BTreeMap<(usize, u32), u64>;

/// Runs `load` by `plan` and tells `observer`.
///
/// # Errors
/// From the observer, or when a thread cannot be started; errors of the database are in the outcome.
pub fn run(
    load: &dyn Load,
    driver: &dyn Driver,
    types: usize,
    plan: &Plan,
    interrupts: &Interrupts,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let control = Arc::new(Control::default());
    let gate = Arc::new(Gate::new(plan.threads));
    let _watched = interrupts.watch(&control, &gate);
    let stats = Stats::new(plan.threads, types);
    let workers: Vec<Worker> = (0..plan.threads).map(|_| Worker::default()).collect();
    let schedule = plan.rate.map(Schedule::new);
    let run = Run {
        load,
        driver,
        plan,
        control: &control,
        gate: &gate,
        stats: &stats,
        workers: &workers,
        errors: &Mutex::default(),
        schedule: schedule.as_ref(),
        turnstile: &Turnstile::new(CONNECTING),
        ramp_begin_ns: &AtomicI64::new(0),
    };
    let (measured, short) = thread::scope(|scope| {
        let result = match worker::start(scope, run) {
            Ok(()) => run.phases(observer),
            Err((missing, error)) => {
                (0..missing).for_each(|_| gate.leave(None));
                let all = plan.threads;
                Err(error).with_context(|| {
                    format!(
                        "start thread {} of {all}: lower --threads or raise the limit of tasks",
                        all - missing
                    )
                })
            }
        };
        control.abort();
        load.stop();
        let stuck = run.wait_for_all();
        gate.release(Order::Quit);
        // Sessions end, each with what it still has to write.
        let stuck = run.wait_for_all().or(stuck);
        result.map(|(measured, short)| (measured, stuck.or(short)))
    })?;
    Ok(Outcome {
        measured,
        failure: gate.failure(),
        signal: interrupts.signal(),
        short,
        errors: run.errors().clone(),
    })
}

/// What the main thread and the workers share.
#[derive(Clone, Copy)]
struct Run<'a> {
    load: &'a dyn Load,
    driver: &'a dyn Driver,
    plan: &'a Plan,
    control: &'a Control,
    gate: &'a Gate,
    stats: &'a Stats,
    workers: &'a [Worker],
    errors: &'a Mutex<Errors>,
    schedule: Option<&'a Schedule>,
    turnstile: &'a Turnstile,
    /// CLOCK_MONOTONIC; zero but in `ramp`.
    ramp_begin_ns: &'a AtomicI64,
}

impl Run<'_> {
    fn errors(&self) -> MutexGuard<'_, Errors> {
        // Whole after each change: a panic elsewhere does not spoil it.
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over(&self) -> bool {
        self.gate.failure().is_some() || self.control.aborted()
    }

    fn phases(&self, observer: &mut dyn Observer) -> Result<(Option<Measured>, Option<String>)> {
        self.assemble(observer)?;
        for (name, length) in [("ramp", self.plan.ramp), ("warmup", self.plan.warmup)] {
            if length.is_some() && !self.over() {
                self.phase(name, length, None, observer)?;
            }
        }
        if self.over() {
            return Ok((None, None));
        }
        self.errors().clear();
        observer.at_rest_before()?;
        let before = Snapshot::take(self.stats);
        let events = |stats: &ThreadStats| stats.events();
        let events_before: Vec<u64> = self.stats.threads().iter().map(events).collect();
        let passed = self.phase("measure", self.plan.time, self.plan.events, observer)?;
        let totals = Snapshot::take(self.stats).since(&before);
        // A thread that hangs may hold what this would wait for.
        if passed.short.is_none() {
            observer.at_rest_after()?;
        }
        let seconds = |ns: i64| ns as f64 / 1e9;
        let each = self.stats.threads().iter().zip(events_before).zip(self.workers);
        let measured = Measured {
            seconds: seconds(passed.total_ns),
            drain_seconds: seconds(passed.drain_ns),
            totals,
            per_thread: each
                .map(|((stats, before), worker)| (stats.events() - before, seconds(worker.ran_ns())))
                .collect(),
            arrived: passed.arrived,
        };
        Ok((Some(measured), passed.short))
    }
}

#[cfg(test)]
mod tests;
