//! Runs an external generator whose side alternates. It is frozen and thawed as it is; SIGUSR1 and SIGUSR2, as
//! to the native generator, only say so to this process, which keeps the time of the warm-up. What the generator
//! counts and times has the pauses, so that no figure of it is kept; the server's counters are those of the turns.

use std::time::Duration;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use signal_hook::consts::SIGUSR1;
use signal_hook::consts::SIGUSR2;

use super::child::ChildEvent;
use super::outcome::ExternalOutcome;
use super::program::End;
use super::program::Mark;
use super::program::Program;
use super::program::RunMonitor;

/// The time between signals in which the program runs.
#[derive(Debug, Default)]
struct Turns {
    /// Since when it runs; `None` while it is frozen.
    since: Option<Instant>,
    /// Running time of the phase before.
    ran: Duration,
}

impl Turns {
    fn running(&self) -> Duration {
        self.ran + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// What a signal means, as in `turns.jsonl`; `None` for the signal that ends the run.
    fn signal(&mut self, signal: i32) -> Option<&'static str> {
        match (signal, self.since) {
            (SIGUSR1, _) => {
                self.ran = self.running();
                self.since = None;
                Some("paused")
            }
            (SIGUSR2, None) => {
                self.since = Some(Instant::now());
                Some("resumed")
            }
            (SIGUSR2, Some(_)) => Some("boundary"),
            _ => None,
        }
    }

    /// Starts a phase.
    fn restart(&mut self) {
        self.ran = Duration::ZERO;
        self.since = self.since.map(|_| Instant::now());
    }
}

/// Follows a program that has no warm-up and no end until SIGINT or SIGTERM ends the run. It is reported as
/// paused as soon as its threads have started.
///
/// # Errors
/// If phases cannot be recorded or the server does not answer.
pub fn run(mut program: Program, monitor: &mut RunMonitor<'_>, warmup: Duration) -> Result<ExternalOutcome> {
    let mut turns = Turns::default();
    let mut phase = None;
    let mut started = program.schedule.first.is_some();
    if started {
        monitor.turn("paused")?;
    }
    loop {
        let left = warmup.saturating_sub(turns.running());
        let due = turns.since.filter(|_| phase != Some("measure"));
        match program.child.next(due.map(|_| Instant::now() + left))? {
            ChildEvent::Line(stream, line) => {
                let marks = program.reader.read(stream, &line, phase, monitor.output);
                let starts = |mark: &Mark| matches!(mark, Mark::Phase(_) | Mark::WarmUp(_));
                if !started && marks.iter().any(starts) {
                    started = true;
                    monitor.turn("paused")?;
                }
            }
            ChildEvent::Signal(signal) => {
                let Some(event) = turns.signal(signal) else { break };
                if phase.is_none() && event == "resumed" {
                    phase = Some("warmup");
                    monitor.start_phase("warmup")?;
                }
                monitor.turn(event)?;
            }
            ChildEvent::Due => {
                phase = Some("measure");
                turns.restart();
                monitor.start_phase("measure")?;
            }
            ChildEvent::Ended(status) => {
                return Ok(program.reader.outcome(&End::Exited(status), monitor));
            }
        }
    }
    monitor.end_phase()?;
    Ok(ExternalOutcome {
        seconds: Some(turns.running().as_secs_f64()),
        details: json!({}),
        failure: (!monitor.over).then(|| "the run was ended before its measured part".to_owned()),
        ..ExternalOutcome::default()
    })
}

#[cfg(test)]
mod tests {
    use signal_hook::consts::SIGTERM;

    use super::*;

    #[test]
    fn only_the_time_between_a_thaw_and_a_freeze_counts() {
        let mut turns = Turns::default();
        let events = [SIGUSR2, SIGUSR2, SIGUSR1].map(|signal| turns.signal(signal));
        assert_eq!(events, [Some("resumed"), Some("boundary"), Some("paused")]);
        let ran = turns.running();
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(turns.running(), ran);
        turns.restart();
        assert_eq!(turns.running(), Duration::ZERO);
        assert_eq!(turns.signal(SIGTERM), None);
    }
}
