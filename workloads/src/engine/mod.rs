//! Runs a load: one thread per connection, a closed loop, phases whose ends all threads share. Owns the clock.
//! Between two phases every thread waits, so that counters of the server and of the client can be read at rest.

pub mod client;
pub mod control;
pub mod gate;
pub mod interrupts;
mod worker;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::Result;
use loadprint_recording::clock;

use crate::driver::DbError;
use crate::driver::Driver;
use crate::stats::Snapshot;
use crate::stats::ThreadStats;
use crate::stats::Totals;
use crate::workload::Load;
use control::Control;
use gate::Gate;
use gate::Order;
use gate::Wake;
use interrupts::Interrupts;
use worker::Worker;

const INTERVAL: Duration = Duration::from_secs(1);

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
}

impl Interval {
    /// What was counted for this transaction type.
    pub fn totals_of(&self, kind: usize) -> Option<&Totals> {
        self.totals.get(kind)
    }
}

/// Told of everything that happens around the events.
pub trait Observer {
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
}

/// How a run ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `None` if it did not get as far as `measure`.
    pub measured: Option<Measured>,
    /// A fatal error of a thread.
    pub failure: Option<DbError>,
    /// The signal that stopped it.
    pub signal: Option<i32>,
    /// Ignored errors by number, `measure` only.
    pub errors_by_code: Vec<(u32, u64)>,
}

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
    let stats: Vec<ThreadStats> = (0..plan.threads).map(|_| ThreadStats::new(types)).collect();
    let workers: Vec<Worker> = (0..plan.threads).map(|_| Worker::default()).collect();
    let errors = Mutex::new(Vec::new());
    let run = Run {
        load,
        plan,
        control: &control,
        gate: &gate,
        stats: &stats,
        workers: &workers,
        errors: &errors,
    };
    thread::scope(|scope| {
        let started = (0..plan.threads).try_for_each(|number| {
            let named = thread::Builder::new().name(format!("client-{number}"));
            let spawned = named.spawn_scoped(scope, move || worker::work(run, number, driver));
            spawned.map(drop).map_err(|error| (number, error))
        });
        let result = match started {
            Ok(()) => run.phases(observer),
            Err((number, error)) => {
                (number..plan.threads).for_each(|_| gate.leave(None));
                Err(error).context("start a thread: lower --threads or raise the limit of tasks")
            }
        };
        control.abort();
        load.stop();
        while gate.watch(None) != Wake::AllWaiting {}
        gate.release(Order::Quit);
        Ok(Outcome {
            measured: result?,
            failure: gate.failure(),
            signal: interrupts.signal(),
            errors_by_code: errors.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        })
    })
}

/// What the main thread and the workers share.
#[derive(Clone, Copy)]
struct Run<'a> {
    load: &'a dyn Load,
    plan: &'a Plan,
    control: &'a Control,
    gate: &'a Gate,
    stats: &'a [ThreadStats],
    workers: &'a [Worker],
    errors: &'a Mutex<Vec<(u32, u64)>>,
}

/// The length of a phase, and the part of it that was draining.
struct Length {
    total_ns: i64,
    drain_ns: i64,
}

impl Run<'_> {
    fn phases(&self, observer: &mut dyn Observer) -> Result<Option<Measured>> {
        while self.gate.watch(None) != Wake::AllWaiting {
            if self.gate.failure().is_some() || self.control.aborted() {
                return Ok(None);
            }
        }
        if let Some(warmup) = self.plan.warmup {
            self.phase("warmup", Some(warmup), None, observer)?;
        }
        if self.gate.failure().is_some() || self.control.aborted() {
            return Ok(None);
        }
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clear();
        observer.at_rest_before()?;
        let before = Snapshot::take(self.stats);
        let events_before: Vec<u64> = self.stats.iter().map(ThreadStats::events).collect();
        let length = self.phase("measure", self.plan.time, self.plan.events, observer)?;
        let totals = Snapshot::take(self.stats).since(&before);
        observer.at_rest_after()?;
        let seconds = |ns: i64| ns as f64 / 1e9;
        let each = self.stats.iter().zip(events_before).zip(self.workers);
        Ok(Some(Measured {
            seconds: seconds(length.total_ns),
            drain_seconds: seconds(length.drain_ns),
            totals,
            per_thread: each
                .map(|((stats, before), worker)| (stats.events() - before, seconds(worker.ran_ns())))
                .collect(),
        }))
    }

    fn phase(
        &self,
        name: &str,
        time: Option<Duration>,
        events: Option<u64>,
        observer: &mut dyn Observer,
    ) -> Result<Length> {
        let drains = self.load.drains();
        self.control.start(events.filter(|_| !drains));
        self.load.begin(events);
        let mut ticks = Ticks::new(self.stats);
        observer.begins(name)?;
        let begin = Instant::now();
        ticks.begin_ns = clock::monotonic_ns();
        self.gate.release(Order::Run);
        let mut end = time.map(|time| begin + time);
        let mut due = begin + INTERVAL;
        let mut finished_ns = None;
        loop {
            match self.gate.watch(Some(end.map_or(due, |end| end.min(due)))) {
                Wake::AllWaiting => break,
                Wake::Deadline if end.is_some_and(|end| end <= Instant::now()) => {
                    self.control.finish();
                    self.load.stop();
                    finished_ns = Some(clock::monotonic_ns());
                    // The last interval takes the events in flight, unless they need another second.
                    end = None;
                    due = Instant::now() + INTERVAL;
                }
                Wake::Deadline => {
                    observer.interval(name, ticks.take(self.stats))?;
                    due += INTERVAL;
                }
                Wake::Nudged => {
                    self.control.abort();
                    self.load.stop();
                }
            }
        }
        let end_ns = clock::monotonic_ns();
        observer.ended(name)?;
        self.load.stop();
        observer.interval(name, ticks.take(self.stats))?;
        Ok(Length {
            total_ns: end_ns - ticks.begin_ns,
            drain_ns: finished_ns
                .filter(|_| drains)
                .map_or(0, |finished| end_ns - finished),
        })
    }
}

/// Cuts a phase into intervals.
struct Ticks {
    number: u32,
    begin_ns: i64,
    last_ns: i64,
    last: Snapshot,
}

impl Ticks {
    fn new(stats: &[ThreadStats]) -> Self {
        Self {
            number: 0,
            begin_ns: 0,
            last_ns: 0,
            last: Snapshot::take(stats),
        }
    }

    fn take(&mut self, stats: &[ThreadStats]) -> Interval {
        let now = Snapshot::take(stats);
        let monotonic_ns = clock::monotonic_ns();
        let interval = Interval {
            number: self.number,
            from_ns: self.last_ns,
            to_ns: monotonic_ns - self.begin_ns,
            monotonic_ns,
            realtime_ns: clock::realtime_ns(),
            totals: now.since(&self.last),
        };
        self.number += 1;
        self.last_ns = interval.to_ns;
        self.last = now;
        interval
    }
}

#[cfg(test)]
mod tests;
