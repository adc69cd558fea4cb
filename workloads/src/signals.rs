//! Receives signals in a thread. It waits in a pipe: a wait in a socket, as in the iterator of `signal_hook`, would
//! be one for the server in the time ledger.

use std::io;
use std::io::ErrorKind;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;

use anyhow::Context;
use anyhow::Result;
use signal_hook::SigId;
use signal_hook::flag;
use signal_hook::low_level::pipe;
use signal_hook::low_level::unregister;

/// Handlers of signals, which are removed when it is dropped.
#[derive(Debug)]
pub struct SignalHandlers(Vec<SigId>);

impl SignalHandlers {
    /// Calls `act` in a thread for each signal of the list that comes.
    ///
    /// # Errors
    /// If the handlers or the thread cannot be made.
    pub fn install(signals: &[i32], mut act: impl FnMut(i32) + Send + 'static) -> Result<Self> {
        let mut handlers = Self(Vec::new());
        let (mut woken, wake) = io::pipe().context("set signal handlers")?;
        let mut handled = Vec::new();
        for signal in signals {
            let came = Arc::new(AtomicBool::new(false));
            handlers.keep(flag::register(*signal, Arc::clone(&came)))?;
            handlers.keep(wake.try_clone().and_then(|wake| pipe::register(*signal, wake)))?;
            handled.push((*signal, came));
        }
        let wait = move || {
            loop {
                match woken.read(&mut [0; 64]) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(1..) => {
                        let came = handled
                            .iter()
                            .filter(|(_, came)| came.swap(false, Ordering::SeqCst));
                        came.for_each(|(signal, _)| act(*signal));
                    }
                    // no handler is left
                    _ => return,
                }
            }
        };
        let thread = thread::Builder::new().name("signals".to_owned());
        thread.spawn(wait).context("start the signal thread")?;
        Ok(handlers)
    }

    fn keep(&mut self, registered: io::Result<SigId>) -> Result<()> {
        self.0.push(registered.context("set signal handlers")?);
        Ok(())
    }
}

impl Drop for SignalHandlers {
    fn drop(&mut self) {
        for handler in self.0.drain(..) {
            unregister(handler);
        }
    }
}
