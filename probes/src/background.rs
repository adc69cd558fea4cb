//! Reads a source that is slow or can hang on a separate thread.
//!
//! [`Probe::begin`] starts a read, [`Probe::sample`] returns its rows. If a read finishes after its
//! tick, a later tick returns its rows with the timestamps of the read. If a read never finishes,
//! only its own rows are missing: no second read is started.

use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use loadprint_recording::clock::monotonic_ns;
use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Schema;

use crate::Probe;
use crate::ProbeError;
use crate::lookup::Lookup;

/// A finished read.
struct Reading {
    rows: Rows,
    result: Result<(), ProbeError>,
    started_ns: i64,
    finished_ns: i64,
}

/// A probe that reads on a separate thread.
pub struct Background {
    name: &'static str,
    reads: Lookup<Rows, Reading>,
    /// The rows for the next read; `None` while the thread fills them.
    spare: Option<Rows>,
    ready: Option<Reading>,
    requested_ns: i64,
    read_ns: Option<(i64, i64)>,
    schema: Option<Schema>,
    /// Runs when the probe is dropped.
    end: Option<Box<dyn FnOnce()>>,
}

impl Background {
    /// Creates a probe; `read` appends the rows of a source.
    pub fn spawn(
        name: &'static str,
        read: impl FnMut(&mut Rows) -> Result<(), ProbeError> + Send + 'static,
    ) -> Box<dyn Probe> {
        Box::new(Self::new(name, read))
    }

    /// As [`Background::spawn`], for a probe with a schema or a cleanup.
    pub fn new(
        name: &'static str,
        mut read: impl FnMut(&mut Rows) -> Result<(), ProbeError> + Send + 'static,
    ) -> Self {
        let reading = move |mut rows: Rows| {
            rows.clear();
            let started_ns = monotonic_ns();
            let result = read(&mut rows);
            Reading {
                rows,
                result,
                started_ns,
                finished_ns: monotonic_ns(),
            }
        };
        Self {
            name,
            reads: Lookup::named(&format!("read-{name}"), reading),
            spare: Some(Rows::default()),
            ready: None,
            requested_ns: 0,
            read_ns: None,
            schema: None,
            end: None,
        }
    }

    /// The same probe with the schema that was read when it was opened.
    #[must_use]
    pub fn with_schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// The same probe; `end` runs when it is dropped, possibly during a read.
    #[must_use]
    pub fn with_cleanup(mut self, end: impl FnOnce() + 'static) -> Self {
        self.end = Some(Box::new(end));
        self
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
        if let Some(rows) = self.spare.take() {
            self.requested_ns = monotonic_ns();
            // The thread exits only when this probe is dropped, or after a panic, which `sample`
            // reports.
            self.spare = self.reads.send(rows);
        }
    }

    fn is_pending(&self) -> bool {
        self.spare.is_none()
    }

    fn wait(&mut self, timeout: Duration) {
        if self.is_pending() && self.ready.is_none() {
            self.ready = self.reads.answers.recv_timeout(timeout).ok();
        }
    }

    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let reading = match self.ready.take() {
            Some(reading) => reading,
            None => match self.reads.answers.try_recv() {
                Ok(reading) => reading,
                Err(TryRecvError::Empty) => {
                    let seconds = (monotonic_ns() - self.requested_ns) as f64 / 1e9;
                    let waiting = format!("{}: a read has not finished after {seconds:.3} s", self.name);
                    return Err(ProbeError::Pending(waiting));
                }
                Err(TryRecvError::Disconnected) => {
                    let reason = match &self.reads.start_error {
                        Some(error) => {
                            format!("{}: {error}; raise the limit of processes (ulimit -u)", self.name)
                        }
                        None => format!("{}: its thread failed; please report this", self.name),
                    };
                    return Err(ProbeError::Source(reason));
                }
            },
        };
        self.read_ns = Some((reading.started_ns, reading.finished_ns));
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
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn slow_read_is_returned_later_with_its_own_timestamps() {
        let (release, blocked) = sync_channel(0);
        let mut probe = Background::spawn("slow", move |rows| {
            blocked.recv().unwrap();
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
        // A second request does not start a read while the first one runs.
        probe.begin();
        release.send(()).unwrap();
        probe.wait(Duration::from_secs(60));
        probe.sample(&mut rows).unwrap();
        assert_eq!(rows.len(), 1);
        let (start, end) = probe.read_ns().unwrap();
        assert!(before <= start && start <= end && end <= monotonic_ns());
        assert!(!probe.is_pending());

        // The same entities have the same generation, although another buffer was filled.
        let generation = rows.generation();
        probe.begin();
        release.send(()).unwrap();
        probe.wait(Duration::from_secs(60));
        rows.clear();
        probe.sample(&mut rows).unwrap();
        assert_eq!((rows.len(), rows.generation()), (1, generation));
    }
}
