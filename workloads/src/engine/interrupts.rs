//! Handles SIGINT and SIGTERM. The first signal ends the current run cleanly and cancels the next
//! ones; the second one ends the process. The watchdog ends calls that still wait some seconds
//! after the first signal. SIGUSR1 pauses the current run between two events; SIGUSR2 resumes it,
//! or ends the current interval of a run that is not paused.

use std::io;
use std::io::ErrorKind;
use std::io::PipeReader;
use std::io::Read;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;

use anyhow::Context;
use anyhow::Result;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::consts::SIGUSR1;
use signal_hook::consts::SIGUSR2;
use signal_hook::flag;
use signal_hook::low_level::pipe;

use super::control::Control;
use super::phase_barrier::PhaseBarrier;
use crate::driver::watchdog::Watchdog;
use crate::lock::lock;

/// The first signal, and the run that it aborts.
#[derive(Debug, Default)]
struct State {
    signal: Option<i32>,
    run: Option<(Arc<Control>, Arc<PhaseBarrier>)>,
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
        let (woken, wake) = io::pipe().context("set signal handlers")?;
        let handled = [SIGINT, SIGTERM, SIGUSR1, SIGUSR2].map(|signal| -> io::Result<_> {
            let came = Arc::new(AtomicBool::new(false));
            flag::register(signal, Arc::clone(&came))?;
            pipe::register(signal, wake.try_clone()?)?;
            Ok((signal, came))
        });
        let handled: Vec<_> = handled
            .into_iter()
            .collect::<io::Result<_>>()
            .context("set signal handlers")?;
        let interrupts = Self {
            watchdog: watchdog.clone(),
            ..Self::default()
        };
        let handler = interrupts.clone();
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || handler.wait(woken, &handled))
            .context("start the signal thread")?;
        Ok(interrupts)
    }

    /// Waits for signals in a pipe: a wait in a socket, as in the iterator of `signal_hook`, would be one for
    /// the server in the time ledger.
    fn wait(&self, mut woken: PipeReader, handled: &[(i32, Arc<AtomicBool>)]) {
        loop {
            match woken.read(&mut [0; 64]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(1..) => {
                    let came = handled
                        .iter()
                        .filter(|(_, came)| came.swap(false, Ordering::SeqCst));
                    came.for_each(|(signal, _)| self.received(*signal));
                }
                _ => return,
            }
        }
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

    /// Registers a run that signals abort until the guard is dropped; at once if a signal came
    /// before.
    pub fn watch(&self, control: &Arc<Control>, barrier: &Arc<PhaseBarrier>) -> InterruptGuard {
        self.with(|state| {
            state.run = Some((Arc::clone(control), Arc::clone(barrier)));
            if state.signal.is_some() {
                control.abort();
                barrier.notify();
            }
        });
        InterruptGuard(self.clone())
    }

    /// The first signal.
    pub fn signal(&self) -> Option<i32> {
        self.with(|state| state.signal)
    }

    /// The signal if it ended calls to the server: their errors follow from it.
    pub fn ended_calls(&self) -> Option<i32> {
        self.signal().filter(|_| self.watchdog.interrupted())
    }
}

/// Unregisters the run when it is dropped.
#[derive(Debug)]
pub struct InterruptGuard(Interrupts);

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        self.0.with(|state| state.run = None);
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
        drop(interrupts.watch(&over, &its_barrier));
        let guard = interrupts.watch(&this, &barrier);
        assert!(!this.aborted() && interrupts.signal().is_none());
        interrupts.received(SIGTERM);
        assert!(this.aborted() && !over.aborted());
        assert_eq!(interrupts.signal(), Some(SIGTERM));
        drop(guard);
        let _guard = interrupts.watch(&next, &next_barrier);
        assert!(next.aborted());
    }
}
