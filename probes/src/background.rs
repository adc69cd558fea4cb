//! A source that is read beside the ticks, on a thread of its own: one that is slow, or that may hang.
//!
//! [`Probe::begin`] asks for a read, [`Probe::sample`] takes its rows. A read that has not ended when its tick does is taken at
//! a later one, with the stamps of the read itself. A read that never ends costs its own rows and nothing else: no second one is begun.
//!
//! The thread is made when it is first asked, not when the probe is opened: a thread has the capabilities of the one that made
//! it, and the recorder gives its own up between the two.

use std::fmt;
use std::io;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::TryRecvError;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use loadprint_recording::clock::monotonic_ns;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Schema;

use crate::Probe;
use crate::ProbeError;

/// One read, ended.
#[derive(Debug)]
struct Reading {
    rows: Rows,
    result: Result<(), ProbeError>,
    begun_ns: i64,
    ended_ns: i64,
}

type Work = Box<dyn FnOnce() + Send>;

/// A probe whose reads happen on another thread.
pub struct Background {
    name: &'static str,
    /// What the thread is to do, until there is one.
    work: Option<Work>,
    ask: SyncSender<Rows>,
    done: Receiver<Reading>,
    /// The rows that the thread fills, while it does not.
    spare: Option<Rows>,
    ready: Option<Reading>,
    /// Why there is no thread.
    refused: Option<io::Error>,
    asked_ns: i64,
    read_ns: Option<(i64, i64)>,
    schema: Option<Schema>,
    /// What is to be done when the probe is dropped.
    end: Option<Box<dyn FnOnce()>>,
}

impl Background {
    /// `read` appends a source's rows, and owns whatever it needs for that.
    pub fn spawn(
        name: &'static str,
        read: impl FnMut(&mut Rows) -> Result<(), ProbeError> + Send + 'static,
    ) -> Box<dyn Probe> {
        Box::new(Self::new(name, read))
    }

    /// As [`Background::spawn`], to be given more.
    pub fn new(
        name: &'static str,
        mut read: impl FnMut(&mut Rows) -> Result<(), ProbeError> + Send + 'static,
    ) -> Self {
        let (ask, asked) = sync_channel::<Rows>(1);
        let (give, done) = sync_channel(1);
        let work = move || {
            while let Ok(mut rows) = asked.recv() {
                rows.clear();
                let begun_ns = monotonic_ns();
                let result = read(&mut rows);
                let ended_ns = monotonic_ns();
                let reading = Reading {
                    rows,
                    result,
                    begun_ns,
                    ended_ns,
                };
                if give.send(reading).is_err() {
                    break;
                }
            }
        };
        Self {
            name,
            work: Some(Box::new(work)),
            ask,
            done,
            spare: Some(Rows::default()),
            ready: None,
            refused: None,
            asked_ns: 0,
            read_ns: None,
            schema: None,
            end: None,
        }
    }

    /// With what was learnt of its rows when it was opened.
    #[must_use]
    pub fn described(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// With what is to be done when it is dropped; a read may still be under way then.
    #[must_use]
    pub fn ended_by(mut self, end: impl FnOnce() + 'static) -> Self {
        self.end = Some(Box::new(end));
        self
    }

    /// Makes the thread, at the first time.
    fn start(&mut self) {
        if let Some(work) = self.work.take() {
            // The thread is not joined: a read that hangs must not keep the recorder from ending.
            let started = thread::Builder::new()
                .name(format!("read-{}", self.name))
                .spawn(work);
            self.refused = started.err();
        }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Background")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

impl Probe for Background {
    fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    fn begin(&mut self) {
        self.start();
        if let Some(rows) = self.spare.take() {
            self.asked_ns = monotonic_ns();
            // The thread ends only when this side is dropped, or by a panic, which `sample` then tells.
            if let Err(back) = self.ask.send(rows) {
                self.spare = Some(back.0);
            }
        }
    }

    fn is_pending(&self) -> bool {
        self.spare.is_none()
    }

    fn wait(&mut self, patience: Duration) {
        if self.is_pending() && self.ready.is_none() {
            self.ready = self.done.recv_timeout(patience).ok();
        }
    }

    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let reading = match self.ready.take() {
            Some(reading) => reading,
            None => match self.done.try_recv() {
                Ok(reading) => reading,
                Err(TryRecvError::Empty) => {
                    let seconds = (monotonic_ns() - self.asked_ns) as f64 / 1e9;
                    let waiting = format!("{}: a read has not ended after {seconds:.3} s", self.name);
                    return Err(ProbeError::Pending(waiting));
                }
                Err(TryRecvError::Disconnected) => {
                    let gone = match &self.refused {
                        Some(error) => {
                            format!("{}: {error}; raise the limit on threads (ulimit -u)", self.name)
                        }
                        None => format!("{}: its thread has ended; please report this", self.name),
                    };
                    return Err(ProbeError::Source(gone));
                }
            },
        };
        self.read_ns = Some((reading.begun_ns, reading.ended_ns));
        rows.assign(&reading.rows);
        self.spare = Some(reading.rows);
        reading.result
    }

    fn read_ns(&self) -> Option<(i64, i64)> {
        self.read_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_lasts_is_taken_later_with_its_own_stamps() {
        let (let_go, held) = sync_channel(0);
        let mut probe = Background::spawn("slow", move |rows| {
            held.recv().unwrap();
            rows.row(&[b"sensor"]);
            rows.uint(42);
            Ok(())
        });
        let mut rows = Rows::default();
        let before = monotonic_ns();
        probe.begin();
        probe.wait(Duration::from_millis(1));
        let error = probe.sample(&mut rows).unwrap_err();
        assert!(matches!(error, ProbeError::Pending(_)), "{error}");
        assert!(error.to_string().starts_with("slow: "), "{error}");
        // Asking again does not begin a second read while the first one lasts.
        probe.begin();
        let_go.send(()).unwrap();
        probe.wait(Duration::from_secs(60));
        probe.sample(&mut rows).unwrap();
        assert_eq!(rows.len(), 1);
        let (begun, ended) = probe.read_ns().unwrap();
        assert!(before <= begun && begun <= ended && ended <= monotonic_ns());
        assert!(!probe.is_pending());

        // The same entities are the same generation, though another buffer was filled.
        let generation = rows.generation();
        probe.begin();
        let_go.send(()).unwrap();
        probe.wait(Duration::from_secs(60));
        rows.clear();
        probe.sample(&mut rows).unwrap();
        assert_eq!((rows.len(), rows.generation()), (1, generation));
    }
}
