//! Runs a load in a closed or an open loop: one thread per connection, phases that start and end
//! for all threads together. All threads wait between two phases, so that counters of the server
//! and of the client are read at rest.

pub mod backlog;
pub mod client;
pub mod control;
pub mod interrupts;
pub mod load;
mod phase;
pub mod phase_barrier;
pub mod schedule;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicI64;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use anyhow::Result;
use serde::Deserialize;

use crate::driver::DbError;
use crate::driver::Driver;
use crate::lock::lock;
use crate::stats::Snapshot;
use crate::stats::Stats;
use crate::stats::ThreadStats;
use crate::stats::Totals;
use backlog::ArrivalCounts;
use backlog::Backlog;
use control::Control;
use interrupts::Interrupts;
use load::Load;
use phase_barrier::Order;
use phase_barrier::PhaseBarrier;
use schedule::Rate;
use schedule::Schedule;
use worker::Worker;

/// Stack of a thread. Linux allocates pages at first use; the client library with TLS uses about 40
/// kB.
const STACK_BYTES: usize = 256 * 1024;
/// Threads that connect at the same time. More would overflow the listen backlog, and the kernel
/// then refuses unix sockets.
const CONNECTING: usize = 32;

/// Length and width of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Threads, each with one connection.
    pub threads: usize,
    /// Length of `measure`, unless the events end before.
    pub time: Option<Duration>,
    /// Events of `measure`, all threads together.
    pub events: Option<u64>,
    /// Length of `warmup`, not counted.
    pub warmup: Option<Duration>,
    /// Begins with a pause, which SIGUSR2 ends.
    pub paused: bool,
    /// Length of `ramp`, in which the threads start one by one, not counted.
    pub ramp: Option<Duration>,
    /// Rate of an open loop; `None` for a closed loop.
    pub rate: Option<Rate>,
    /// How an event is undone after an ignored error.
    pub undo: Undo,
    /// When connections are reopened.
    pub reconnects: Reconnects,
    /// Gives up when no further thread became ready for this time.
    pub init_timeout: Duration,
    /// After the end of a phase, closes the connections when no thread ended its event for this
    /// time.
    pub disconnect_after: Option<Duration>,
}

/// When a connection is reopened, and for how long that is retried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reconnects {
    /// After this many events; 0: never.
    pub every: u64,
    /// How long to retry while no server answers, nanoseconds.
    pub timeout_ns: i64,
}

/// What happens to the transaction of an event after an ignored error, before the event runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Undo {
    /// Rolls it back.
    #[default]
    #[serde(rename = "none")]
    Rollback,
    /// Nothing, as in sysbench: after a statement rollback (1205) the next BEGIN commits the
    /// earlier statements.
    #[serde(rename = "sysbench")]
    Nothing,
}

/// One interval of a phase: a second, except the last one.
#[derive(Debug)]
pub struct Interval {
    /// Number, from 0.
    pub number: u32,
    /// Start in nanoseconds since the start of the phase.
    pub from_ns: i64,
    /// End in nanoseconds since the start of the phase.
    pub to_ns: i64,
    /// CLOCK_MONOTONIC of the end.
    pub monotonic_ns: i64,
    /// CLOCK_REALTIME of the end.
    pub realtime_ns: i64,
    /// Totals per transaction type.
    pub totals: Vec<Totals>,
    /// Backlog at the end, in an open loop.
    pub backlog: Option<Backlog>,
}

/// Receives the events of a run.
pub trait Observer {
    /// Called with a line for the user, from time to time while threads connect and prepare, and while
    /// they are still in an event after the time is over.
    fn waiting(&mut self, line: &str) -> Result<()>;
    /// Called when all threads are connected and prepared.
    fn ready(&mut self) -> Result<()>;
    /// Called before `ramp` and `warmup`, outside their time, while all threads wait.
    fn at_rest_before_warmup(&mut self) -> Result<()>;
    /// Called at the start of a phase, while all threads wait.
    fn phase_starts(&mut self, phase: &str) -> Result<()>;
    /// Called after an interval.
    fn interval(&mut self, phase: &str, interval: Interval) -> Result<()>;
    /// Called in a phase when no event runs any more (`paused`), with the number of threads that did not
    /// end theirs in time, when the phase goes on (`resumed`), and at an end of the interval that was
    /// asked for (`boundary`).
    fn turn(&mut self, event: &str, in_event: usize) -> Result<()>;
    /// Called after a phase, as soon as all threads wait again.
    fn phase_ended(&mut self, phase: &str) -> Result<()>;
    /// Called before `measure`, outside its time, while all threads wait.
    fn at_rest_before(&mut self) -> Result<()>;
    /// Called after `measure`, as above.
    fn at_rest_after(&mut self) -> Result<()>;
}

/// The results of `measure`.
#[derive(Debug, Default)]
pub struct Measured {
    /// Time from the release of the threads to the arrival of the last one.
    pub seconds: f64,
    /// Part of `seconds` after the time was over, of a load that drains.
    pub drain_seconds: f64,
    /// Totals per transaction type.
    pub totals: Vec<Totals>,
    /// Number of events and seconds of each thread.
    pub per_thread: Vec<(u64, f64)>,
    /// Arrivals of an open loop.
    pub arrived: Option<ArrivalCounts>,
}

/// The error that ended a thread and the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFailure {
    /// Thread number, from 0, of the run.
    pub thread: usize,
    /// Where the error occurred.
    pub place: FailurePlace,
    /// The error.
    pub error: DbError,
}

/// Where an error occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailurePlace {
    /// While connecting, with the number of ready threads.
    Connecting(usize),
    /// While preparing its session.
    Preparing,
    /// In a transaction of this type, and in this statement if it is known.
    Event(usize, Option<String>),
}

/// The end of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `None` if the run ended before `measure`.
    pub measured: Option<Measured>,
    /// The first fatal error of a thread.
    pub failure: Option<ThreadFailure>,
    /// The signal that ended the run.
    pub signal: Option<i32>,
    /// Why the run ended before its time without an error.
    pub early_end: Option<String>,
    /// An error of the observer, or a thread that could not be started.
    pub error: Option<anyhow::Error>,
    /// Ignored errors of `measure`, by transaction type and number.
    pub errors: Errors,
}

/// Counts by transaction type and error number.
pub type Errors = BTreeMap<(usize, u32), u64>;

/// Runs `load` by `plan` and reports to `observer`. What was measured before an error is in the outcome.
pub fn run(
    load: &dyn Load,
    driver: &dyn Driver,
    types: usize,
    plan: &Plan,
    interrupts: &Interrupts,
    observer: &mut dyn Observer,
) -> Outcome {
    let control = Arc::new(Control::default());
    let barrier = Arc::new(PhaseBarrier::new(plan.threads));
    if plan.paused {
        control.ask_pause();
    }
    interrupts.watch(&control, &barrier);
    let stats = Stats::new(plan.threads, types);
    let workers: Vec<Worker> = (0..plan.threads).map(|_| Worker::default()).collect();
    let schedule = plan.rate.map(Schedule::new);
    let run = Run {
        load,
        driver,
        plan,
        control: &control,
        barrier: &barrier,
        stats: &stats,
        workers: &workers,
        interrupts,
        errors: &Mutex::default(),
        schedule: schedule.as_ref(),
        connecting: &[const { Mutex::new(()) }; CONNECTING],
        ramp_begin_ns: &AtomicI64::new(0),
    };
    let mut outcome = Outcome::default();
    let watched = thread::scope(|scope| {
        let watched = match worker::start(scope, run) {
            Ok(()) => run.phases(observer, &mut outcome),
            Err((missing, error)) => {
                (0..missing).for_each(|_| barrier.leave(None));
                let all = plan.threads;
                Err(error).with_context(|| {
                    format!(
                        "start thread {} of {all}: lower --threads or raise the limit of threads (ulimit -u, TasksMax=)",
                        all - missing
                    )
                })
            }
        };
        control.abort();
        load.stop();
        let stuck = run.wait_for_all();
        barrier.release(Order::Quit);
        // Sessions end, and write what they still have buffered.
        let stuck = run.wait_for_all().or(stuck);
        outcome.early_end = outcome.early_end.take().or(stuck);
        watched
    });
    Outcome {
        failure: barrier.failure(),
        signal: interrupts.signal(),
        error: watched.err(),
        errors: lock(run.errors).clone(),
        ..outcome
    }
}

/// State shared by the main thread and the workers.
#[derive(Clone, Copy)]
struct Run<'a> {
    load: &'a dyn Load,
    driver: &'a dyn Driver,
    plan: &'a Plan,
    control: &'a Control,
    barrier: &'a PhaseBarrier,
    stats: &'a Stats,
    workers: &'a [Worker],
    interrupts: &'a Interrupts,
    errors: &'a Mutex<Errors>,
    schedule: Option<&'a Schedule>,
    /// One of them is locked by each thread that connects.
    connecting: &'a [Mutex<()>; CONNECTING],
    /// Start of `ramp` on CLOCK_MONOTONIC; zero in other phases.
    ramp_begin_ns: &'a AtomicI64,
}

impl Run<'_> {
    fn over(&self) -> bool {
        self.barrier.failure().is_some() || self.control.aborted()
    }

    fn phases(&self, observer: &mut dyn Observer, outcome: &mut Outcome) -> Result<()> {
        outcome.early_end = self.wait_until_ready(observer)?;
        if self.over() {
            return Ok(());
        }
        observer.ready()?;
        for (name, length) in [("ramp", self.plan.ramp), ("warmup", self.plan.warmup)] {
            if length.is_some() && !self.over() {
                observer.at_rest_before_warmup()?;
                self.phase(name, length, None, observer).1?;
            }
        }
        if self.over() {
            return Ok(());
        }
        lock(self.errors).clear();
        observer.at_rest_before()?;
        let before = Snapshot::take(self.stats);
        let events = |stats: &ThreadStats| stats.events();
        let events_before: Vec<u64> = self.stats.threads().iter().map(events).collect();
        let (passed, watched) = self.phase("measure", self.plan.time, self.plan.events, observer);
        let seconds = |ns: i64| ns as f64 / 1e9;
        let each = self.stats.threads().iter().zip(events_before).zip(self.workers);
        outcome.measured = Some(Measured {
            seconds: seconds(passed.total_ns),
            drain_seconds: seconds(passed.drain_ns),
            totals: Snapshot::take(self.stats).since(&before),
            per_thread: each
                .map(|((stats, before), worker)| (stats.events() - before, seconds(worker.ran_ns())))
                .collect(),
            arrived: passed.arrived,
        });
        outcome.early_end = passed.early_end;
        watched?;
        let is_endless = self.plan.time.is_none() && self.plan.events.is_none();
        if is_endless && self.interrupts.ended_calls().is_none() {
            // A signal is the normal end of such a run: what follows may take long.
            self.interrupts.accept();
        }
        // A hanging thread may hold locks for which this would wait.
        if outcome.early_end.is_none() {
            observer.at_rest_after()?;
        }
        Ok(())
    }
}
