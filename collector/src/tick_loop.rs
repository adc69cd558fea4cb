//! The loop of `record`: takes ticks until a signal, the duration or the deadline.

use std::time::Duration;

use loadprint_recording::clock;
use loadprint_recording::journal::Ended;

use crate::cli::RecordOptions;
use crate::pid_file::PidFile;
use crate::probe_sampler::SampleScope;
use crate::schedule::Schedule;
use crate::tick_journal::TickJournal;
use crate::wakeup::Signals;
use crate::wakeup::Wakeup;

/// Takes all ticks; the last one is taken when the recording ends. Writes the pid file after the
/// first tick.
///
/// # Errors
/// When the journal or the pid file cannot be written.
pub fn run(
    options: &RecordOptions,
    interval_ns: i64,
    signals: &Signals,
    journal: &mut TickJournal,
    pid_file: &PidFile,
) -> anyhow::Result<Ended> {
    let start = clock::monotonic_ns();
    let limit = time_limit(options, start);
    let mut schedule = Schedule::new(start, interval_ns);
    let mut scope = SampleScope::Due;
    loop {
        // A late wake-up at the end of the recording does not count ticks after the end as missed.
        let now = clock::monotonic_ns();
        let due = schedule.next(limit.map_or(now, |(time, _)| time.min(now)));
        let until = limit.map_or(due.intended_ns, |(time, _)| time.min(due.intended_ns));
        loop {
            match signals.wait(until)? {
                Wakeup::TickDue => break,
                Wakeup::SampleAllRequested => scope = SampleScope::All,
                Wakeup::StopRequested => {
                    journal.tick(due.moved_to(clock::monotonic_ns()), SampleScope::Last)?;
                    return Ok(Ended::Signal);
                }
            }
        }
        if let Some((time, ended)) = limit
            && time <= due.intended_ns
        {
            journal.tick(due.moved_to(time), SampleScope::Last)?;
            return Ok(ended);
        }
        journal.tick(due, scope)?;
        scope = SampleScope::Due;
        if journal.ticks() == 1 {
            pid_file.write()?;
        }
    }
}

/// The earlier of `--duration` and `--deadline`, as a time of CLOCK_MONOTONIC.
fn time_limit(options: &RecordOptions, start: i64) -> Option<(i64, Ended)> {
    let after = |left: Duration| start.saturating_add(i64::try_from(left.as_nanos()).unwrap_or(i64::MAX));
    let limits = [
        options
            .duration
            .map(|duration| (after(duration), Ended::Duration)),
        options
            .deadline
            .map(|deadline| (after(deadline.left()), Ended::Deadline)),
    ];
    limits.into_iter().flatten().min_by_key(|(time, _)| *time)
}
