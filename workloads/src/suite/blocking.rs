//! Suites whose sessions wait for each other, or for a producer, inside an event.

use anyhow::Result;
use anyhow::bail;

use crate::options::Values;

/// Refuses `--multiplex`: there the session that waits would keep the thread from the one that it waits for.
///
/// # Errors
/// If it is on.
pub fn refuse_multiplexing(values: &Values, workload: &str) -> Result<()> {
    if values.flag("multiplex").is_ok_and(|on| on) {
        bail!(
            "--multiplex=on: sessions of {workload} wait for each other, each needs a thread of its own: leave --multiplex out"
        );
    }
    Ok(())
}
