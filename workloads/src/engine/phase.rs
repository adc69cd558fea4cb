//! Runs one phase from the main thread: releases the threads, takes intervals, ends the phase and
//! waits for the last thread. The connections of threads that do not return are closed in the end.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::time::Instant;

use anyhow::Result;
use loadprint_recording::clock;

use super::Interval;
use super::Observer;
use super::Run;
use super::Worker;
use super::backlog::ArrivalCounts;
use super::backlog::Backlog;
use super::backlog::BacklogMonitor;
use super::phase_barrier::Order;
use super::phase_barrier::Wake;
use crate::stats::Snapshot;
use crate::stats::Stats;

const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two samples of the backlog.
const BACKLOG_INTERVAL: Duration = Duration::from_millis(100);
/// Time that threads have to end their event before a pause.
const PAUSE_LIMIT: Duration = Duration::from_secs(5);
/// Time between two looks at whether they have.
const PAUSE_LOOK: Duration = Duration::from_millis(1);
/// Seconds between two reports about threads that do not return.
const REMINDER_SECONDS: u64 = 10;

/// The result of a phase.
pub(super) struct PhaseResult {
    pub total_ns: i64,
    /// Part of `total_ns` after the time was over, of a load that drains.
    pub drain_ns: i64,
    pub arrived: Option<ArrivalCounts>,
    /// Why it ended before its time without an error.
    pub early_end: Option<String>,
}

impl Run<'_> {
    /// Waits until all threads are connected and prepared, or one failed. Returns a reason to end if no further
    /// thread became ready within the plan's `init_timeout`.
    ///
    /// # Errors
    /// Those of the observer.
    pub(super) fn wait_until_ready(&self, observer: &mut dyn Observer) -> Result<Option<String>> {
        let (mut ready, mut since) = (0, Instant::now());
        let init_timeout = self.plan.init_timeout;
        loop {
            match self.barrier.wait_for_threads(Instant::now() + INTERVAL) {
                Wake::AllWaiting => return Ok(None),
                Wake::Notified => {
                    if self.over() {
                        return Ok(None);
                    }
                }
                Wake::Deadline => {
                    let now_ready = self.barrier.waiting();
                    if now_ready > ready {
                        (ready, since) = (now_ready, Instant::now());
                    }
                    let all = self.plan.threads;
                    observer.waiting(&format!("{ready} of {all} connections"))?;
                    if since.elapsed() >= init_timeout {
                        self.disconnect_threads();
                        return Ok(Some(format!(
                            "{}: {ready} of {all} threads were connected and prepared, and no further one in {} s: \
                             check the server's load and error log, or raise --thread-init-timeout",
                            self.driver.describe(),
                            init_timeout.as_secs_f64()
                        )));
                    }
                }
            }
        }
    }

    /// Runs a phase from the release of the threads to the return of the last one, which an error of the
    /// observer ends.
    pub(super) fn phase(
        &self,
        name: &str,
        time: Option<Duration>,
        events: Option<u64>,
        observer: &mut dyn Observer,
    ) -> (PhaseResult, Result<()>) {
        let limit = events.filter(|_| !self.load.drains());
        self.control.start(limit);
        self.load.begin(events);
        let mut intervals = IntervalCutter::new(self.stats);
        let mut ended_at = None;
        let watched = observer.phase_starts(name).and_then(|()| {
            intervals.begin_ns = clock::monotonic_ns();
            if name == "ramp" {
                self.ramp_begin_ns.store(intervals.begin_ns, Relaxed);
            }
            let cursor = self.schedule.map(|schedule| schedule.begin(intervals.begin_ns));
            intervals.monitor = cursor.map(|cursor| BacklogMonitor::new(cursor, limit, self.workers));
            self.barrier.release(Order::Run);
            self.watch(name, time, &mut intervals, &mut ended_at, observer)
        });
        if watched.is_err() {
            self.control.abort();
            self.load.stop();
            self.wait_for_all();
        }
        let end_ns = clock::monotonic_ns();
        let watched = watched.and_then(|()| observer.phase_ended(name));
        self.ramp_begin_ns.store(0, Relaxed);
        self.load.stop();
        if ended_at.is_none() {
            intervals.sample_backlog(self.workers);
        }
        let watched = watched.and_then(|()| observer.interval(name, intervals.take(self.stats)));
        let lasts = time.filter(|_| ended_at.is_none() && !self.over() && events.is_none());
        let total_ns = end_ns - intervals.begin_ns - intervals.rested_ns;
        let passed = PhaseResult {
            total_ns,
            drain_ns: ended_at
                .as_ref()
                .filter(|_| self.drains())
                .map_or(0, |phase_end| end_ns - phase_end.since_ns),
            arrived: ended_at
                .as_ref()
                .map_or(intervals.arrived(), |phase_end| phase_end.arrived),
            early_end: ended_at
                .and_then(|phase_end| phase_end.disconnect_reason)
                .or_else(|| lasts.map(|time| ran_out(total_ns, time))),
        };
        (passed, watched)
    }

    /// Takes intervals and ends the time, until the last thread has returned.
    fn watch(
        &self,
        name: &str,
        time: Option<Duration>,
        intervals: &mut IntervalCutter,
        ended_at: &mut Option<PhaseEnd>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let begin = Instant::now();
        let mut end = time.map(|time| begin + time);
        let mut due = begin + INTERVAL;
        loop {
            if ended_at.is_none()
                && let Some(rested) = self.turn(name, intervals, observer)?
            {
                end = end.map(|end| end + rested);
                due = Instant::now() + INTERVAL;
            }
            let sample_at = intervals
                .monitor
                .as_ref()
                .map_or(due, |_| Instant::now() + BACKLOG_INTERVAL);
            let next = due.min(sample_at).min(end.unwrap_or(due));
            match self.barrier.wait_for_threads(next) {
                Wake::AllWaiting => return Ok(()),
                Wake::Notified if !self.over() => {} // a signal that is handled above
                Wake::Notified => {
                    self.control.abort();
                    self.load.stop();
                    ended_at.get_or_insert_with(|| PhaseEnd::new(intervals.arrived()));
                }
                Wake::Deadline => {
                    // Read before the sample: a delay between the two must not exclude arrivals
                    // that were due before the end.
                    let is_over = end.is_some_and(|end| end <= Instant::now());
                    // Arrivals that are due after the end do not belong to the backlog.
                    if ended_at.is_none() {
                        intervals.sample_backlog(self.workers);
                    }
                    if is_over {
                        self.control.finish();
                        self.load.stop();
                        ended_at.get_or_insert_with(|| PhaseEnd::new(intervals.arrived()));
                        // The last interval includes the running events, unless they take longer
                        // than a second.
                        end = None;
                        due = Instant::now() + INTERVAL;
                    } else if due <= Instant::now() {
                        observer.interval(name, intervals.take(self.stats))?;
                        due += INTERVAL;
                        if let Some(phase_end) = ended_at.as_mut() {
                            self.check_stuck(phase_end, observer)?;
                        }
                    }
                }
            }
        }
    }

    /// Does what signals ask for, and returns how long the threads rested; `None` if they ask nothing.
    fn turn(
        &self,
        name: &str,
        intervals: &mut IntervalCutter,
        observer: &mut dyn Observer,
    ) -> Result<Option<Duration>> {
        if self.control.take_pause() {
            return self.pause(name, intervals, observer).map(Some);
        }
        if !self.control.take_boundary() {
            return Ok(None);
        }
        observer.interval(name, intervals.take(self.stats))?;
        observer.turn("boundary", 0)?;
        Ok(Some(Duration::ZERO))
    }

    /// Pauses the threads, and returns how long they rested; the interval ends before.
    fn pause(
        &self,
        name: &str,
        intervals: &mut IntervalCutter,
        observer: &mut dyn Observer,
    ) -> Result<Duration> {
        self.control.pause();
        let limit = Instant::now() + PAUSE_LIMIT;
        let in_event = || self.barrier.running().saturating_sub(self.control.parked());
        while in_event() > 0 && self.control.pause_asked() && !self.over() && Instant::now() < limit {
            self.barrier.wait_for_threads(Instant::now() + PAUSE_LOOK);
        }
        intervals.sample_backlog(self.workers);
        observer.interval(name, intervals.take(self.stats))?;
        let since_ns = clock::monotonic_ns();
        observer.turn("paused", in_event())?;
        while self.control.pause_asked() && !self.over() && self.barrier.running() > 0 {
            self.barrier.wait_for_threads(Instant::now() + INTERVAL);
        }
        let rested_ns = clock::monotonic_ns() - since_ns;
        intervals.rested_ns += rested_ns;
        self.control.resume(rested_ns);
        // So that none of them counts as waiting in the next pause.
        while self.control.parked() > 0 && !self.over() {
            self.barrier.wait_for_threads(Instant::now() + PAUSE_LOOK);
        }
        observer.turn("resumed", 0)?;
        Ok(Duration::from_nanos(rested_ns.unsigned_abs()))
    }

    /// Checks for stuck threads, once a second after the end of a phase's time.
    fn check_stuck(&self, phase_end: &mut PhaseEnd, observer: &mut dyn Observer) -> Result<()> {
        let threads = self.barrier.running();
        let seconds = phase_end.since.elapsed().as_secs();
        if seconds.is_multiple_of(REMINDER_SECONDS) && seconds > 0 {
            observer.waiting(&format!(
                "The time was over {seconds} s ago; {threads} threads are still in an event"
            ))?;
        }
        if let Some(reason) = phase_end.stuck(self) {
            phase_end.disconnect_reason.get_or_insert(reason);
            self.disconnect_threads();
        }
        Ok(())
    }

    /// Waits for all threads; returns a reason if connections were closed.
    pub(super) fn wait_for_all(&self) -> Option<String> {
        let mut phase_end = PhaseEnd::new(None);
        while self.barrier.wait_for_threads(Instant::now() + INTERVAL) != Wake::AllWaiting {
            if let Some(reason) = phase_end.stuck(self) {
                phase_end.disconnect_reason.get_or_insert(reason);
                self.disconnect_threads();
            }
        }
        phase_end.disconnect_reason
    }

    /// True if queued work is finished after the time is over; in an open loop it was not due.
    pub(super) fn drains(&self) -> bool {
        self.load.drains() && self.schedule.is_none()
    }

    /// Closes the connections of threads that wait for the server.
    fn disconnect_threads(&self) {
        self.control.abort();
        self.driver.shut_down_waiting();
    }
}

fn ran_out(total_ns: i64, time: Duration) -> String {
    format!(
        "the workload ran out of work after {:.1} s of {} s",
        total_ns as f64 / 1e9,
        time.as_secs_f64()
    )
}

/// The time after the end of a phase's time, while threads finish their last event.
struct PhaseEnd {
    since: Instant,
    since_ns: i64,
    arrived: Option<ArrivalCounts>,
    /// Number of ended events, number of running threads, and the time of the last change.
    progress: (u64, usize, Instant),
    disconnect_reason: Option<String>,
}

impl PhaseEnd {
    fn new(arrived: Option<ArrivalCounts>) -> Self {
        Self {
            since: Instant::now(),
            since_ns: clock::monotonic_ns(),
            arrived,
            progress: (0, 0, Instant::now()),
            disconnect_reason: None,
        }
    }

    /// The reason to close connections, if no event ended for too long.
    fn stuck(&mut self, run: &Run<'_>) -> Option<String> {
        let ended = run.workers.iter().map(Worker::ended).sum();
        let running = run.barrier.running();
        if (ended, running) != (self.progress.0, self.progress.1) {
            self.progress = (ended, running, Instant::now());
        }
        let limit = run.plan.disconnect_after?;
        (self.progress.2.elapsed() >= limit).then(|| {
            format!(
                "{running} threads did not end their event in {} s after the time was over and were disconnected: \
                 check that the server answers, or raise --forced-shutdown",
                limit.as_secs_f64()
            )
        })
    }
}

/// Splits a phase into intervals.
struct IntervalCutter {
    number: u32,
    begin_ns: i64,
    /// Length of the pauses.
    rested_ns: i64,
    last_ns: i64,
    last: Snapshot,
    monitor: Option<BacklogMonitor>,
    backlog: Option<Backlog>,
}

impl IntervalCutter {
    fn new(stats: &Stats) -> Self {
        Self {
            number: 0,
            begin_ns: clock::monotonic_ns(),
            rested_ns: 0,
            last_ns: 0,
            last: Snapshot::take(stats),
            monitor: None,
            backlog: None,
        }
    }

    fn sample_backlog(&mut self, workers: &[Worker]) {
        let now_ns = clock::monotonic_ns() - self.rested_ns;
        self.backlog = self
            .monitor
            .as_mut()
            .map(|monitor| monitor.sample(workers, now_ns));
    }

    fn arrived(&self) -> Option<ArrivalCounts> {
        self.monitor.as_ref().map(BacklogMonitor::arrived)
    }

    fn take(&mut self, stats: &Stats) -> Interval {
        let now = Snapshot::take(stats);
        let monotonic_ns = clock::monotonic_ns();
        let interval = Interval {
            number: self.number,
            from_ns: self.last_ns,
            to_ns: monotonic_ns - self.begin_ns - self.rested_ns,
            monotonic_ns,
            realtime_ns: clock::realtime_ns(),
            totals: now.since(&self.last),
            backlog: self.backlog,
        };
        self.number += 1;
        self.last_ns = interval.to_ns;
        self.last = now;
        interval
    }
}
