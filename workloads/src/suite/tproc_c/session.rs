//! The session of one thread: a terminal that draws the type of the next transaction, waits and
//! runs it.

use loadprint_recording::clock::monotonic_ns;

use super::call::Caller;
use super::inputs::Kind;
use super::inputs::Terminal;
use crate::driver::DbError;
use crate::engine::client::Client;
use crate::engine::load::Session;
use crate::engine::load::Step;
use crate::random::Rng;

/// A terminal with its connection.
#[derive(Debug)]
pub struct TerminalSession {
    pub(super) terminal: Terminal,
    pub(super) caller: Caller,
    /// With keying and think times.
    pub(super) pauses: bool,
    /// The think time after the last transaction in seconds.
    pub(super) thinking: f64,
}

impl Session for TerminalSession {
    fn event(&mut self, client: &mut Client<'_>) -> Result<Step, DbError> {
        let kind = Kind::draw(&mut self.terminal.rng);
        if self.pauses && !self.pause(kind, client) {
            return Ok(Step::Exhausted);
        }
        client.start(kind as usize);
        let ordered = self.caller.run(kind, &mut self.terminal, client)?;
        Ok(Step::Done(u64::from(ordered)))
    }
}

impl TerminalSession {
    /// Waits for the think time of the last transaction and the keying time of the next one (TPC-C
    /// clause 5.2.5). False at the end of the phase.
    fn pause(&mut self, kind: Kind, client: &mut Client<'_>) -> bool {
        let (keying, mean) = kind.pauses();
        let thinking = std::mem::replace(
            &mut self.thinking,
            think(&mut self.terminal.rng, mean, self.terminal.strict),
        );
        let wait_ns = ((thinking + keying) * 1e9) as i64;
        client.pause_until(monotonic_ns() + wait_ns)
    }
}

/// Draws a think time from the exponential distribution: whole seconds in HammerDB, at most ten
/// times the mean in TPC-C.
fn think(rng: &mut Rng, mean: f64, strict: bool) -> f64 {
    // 1 - u is never 0.
    let seconds = -(1.0 - rng.unit()).ln() * mean;
    if strict {
        seconds.min(10.0 * mean)
    } else {
        seconds.round()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_have_their_mean() {
        let mut rng = Rng::new(5, 5);
        for strict in [false, true] {
            let sum: f64 = (0..100_000).map(|_| think(&mut rng, 12.0, strict)).sum();
            assert!((sum / 100_000.0 - 12.0).abs() < 0.2, "{sum}");
        }
    }
}
