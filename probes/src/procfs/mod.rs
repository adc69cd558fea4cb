//! Reads sources under `/proc`: one module each, with the format quoted above its parser.

pub mod cgroup;
pub mod cpu;
pub mod diskstats;
mod entities;
pub mod fields;
pub mod interrupts;
pub mod memory;
pub mod mounts;
pub mod net_dev;
pub mod pressure;
pub mod process;
pub mod snmp;
pub mod sockets;
pub mod softnet;
pub mod targets;
pub mod threads;

use std::fmt;

use crate::prelude::*;

/// The fix for a file under `/proc` that cannot be opened.
pub(crate) const MOUNT_PROC: &str = "mount /proc, or set its path with --proc-root";

type Parse = Box<dyn FnMut(&[u8], &mut Rows) -> Result<(), ParseError>>;

/// A probe that reads and parses whole files at each tick.
#[derive(Default)]
struct Files(Vec<(Source, Parse)>);

impl Files {
    /// The same probe, which also reads `file`.
    fn with(
        mut self,
        file: Source,
        parse: impl FnMut(&[u8], &mut Rows) -> Result<(), ParseError> + 'static,
    ) -> Self {
        self.0.push((file, Box::new(parse)));
        self
    }

    /// The probe of the files that could be opened; `error` is the first of the others.
    fn opened(self, error: Option<NotRunning>) -> Result<Box<dyn Probe>, NotRunning> {
        match error {
            Some(error) if self.0.is_empty() => Err(error),
            _ => Ok(Box::new(self)),
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.0.iter().map(|(file, _)| file);
        formatter.debug_list().entries(files).finish()
    }
}

impl Probe for Files {
    /// A file that cannot be read costs its own rows.
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let mut result = Ok(());
        for (file, parse) in &mut self.0 {
            if let Err(error) = file.parse(|text| parse(text, rows)) {
                rows.odd_mut().line(|| error.to_string());
                result = Err(error);
            }
        }
        if rows.is_empty() { result } else { Ok(()) }
    }
}
