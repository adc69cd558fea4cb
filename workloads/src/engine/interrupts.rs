//! Handles SIGINT and SIGTERM. The first signal ends the current run cleanly and cancels the next
//! ones; the second one ends the process. The watchdog ends calls that still wait some seconds
//! after the first signal. SIGUSR1 pauses the current run between two events; SIGUSR2 resumes it,
//! or ends the current interval of a run that is not paused.

use std::sync::Arc;
use std::sync::Mutex;

use anyhow::Result;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::consts::SIGUSR1;
use signal_hook::consts::SIGUSR2;

use super::control::Control;
use super::phase_barrier::PhaseBarrier;
use crate::driver::watchdog::Watchdog;
use crate::lock::lock;
use crate::signals::SignalHandlers;

/// The first signal, and the run that it aborts.
#[derive(Debug, Default)]
struct State {
    signal: Option<i32>,
    run: Option<(Arc<Control>, Arc<PhaseBarrier>)>,
    handlers: Option<SignalHandlers>,
}

/// The signals of this process; shared by all runs of a command.
#[derive(Debug, Clone, Default)]
pub struct Interrupts {
    state: Arc<Mutex<State>>,
    watchdog: Watchdog,
}

impl Interrupts {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn install(watchdog: &Watchdog) -> Result<Self> {
        let interrupts = Self {
            watchdog: watchdog.clone(),
            ..Self::default()
        };
        let handler = interrupts.clone();
        let handlers = SignalHandlers::install(&[SIGINT, SIGTERM, SIGUSR1, SIGUSR2], move |signal| {
            handler.received(signal);
        })?;
        interrupts.with(|state| state.handlers = Some(handlers));
        Ok(interrupts)
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut lock(&self.state))
    }

    pub(crate) fn received(&self, signal: i32) {
        self.with(|state| {
            if matches!(signal, SIGUSR1 | SIGUSR2) {
                if let Some((control, barrier)) = &state.run {
                    match signal {
                        SIGUSR1 => control.ask_pause(),
                        _ => control.ask_resume(),
                    }
                    barrier.notify();
                }
                return;
            }
            if state.signal.is_some() {
                std::process::exit(128 + signal);
            }
            state.signal = Some(signal);
            self.watchdog.interrupt(128 + signal);
            if let Some((control, barrier)) = &state.run {
                control.abort();
                barrier.notify();
            }
        });
    }

    /// Registers the run that signals abort from now on, in place of the one before; at once if a signal
    /// came before.
    pub fn watch(&self, control: &Arc<Control>, barrier: &Arc<PhaseBarrier>) {
        self.with(|state| {
            state.run = Some((Arc::clone(control), Arc::clone(barrier)));
            if state.signal.is_some() {
                control.abort();
                barrier.notify();
            }
        });
    }

    /// The first signal.
    pub fn signal(&self) -> Option<i32> {
        self.with(|state| state.signal)
    }

    /// Further calls to the server may wait, in spite of the first signal; the second one ends the process.
    pub fn accept(&self) {
        self.watchdog.accept();
    }

    /// The signal if it ended calls to the server: their errors follow from it.
    pub fn ended_calls(&self) -> Option<i32> {
        self.signal().filter(|_| self.watchdog.interrupted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_aborts_the_current_and_the_next_run() {
        let interrupts = Interrupts::default();
        let run = || (Arc::new(Control::default()), Arc::new(PhaseBarrier::new(1)));
        let ((over, its_barrier), (this, barrier), (next, next_barrier)) = (run(), run(), run());
        interrupts.watch(&over, &its_barrier);
        interrupts.watch(&this, &barrier);
        assert!(!this.aborted() && interrupts.signal().is_none());
        interrupts.received(SIGTERM);
        assert!(this.aborted() && !over.aborted());
        assert_eq!(interrupts.signal(), Some(SIGTERM));
        interrupts.watch(&next, &next_barrier);
        assert!(next.aborted());
    }
}
