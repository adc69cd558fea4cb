//! Reports to `start`, through the pipe on stdout, whether the daemon is ready.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

use anyhow::Context;
use anyhow::Result;

use crate::protocol::Reply;

/// Sends the line that `start` waits for, and closes the pipe.
pub fn report_ready(reply: &Reply) -> Result<()> {
    let mut stdout = std::io::stdout();
    // `start` may have been killed; the lease then ends this supervisor.
    drop(writeln!(stdout, "{}", serde_json::to_string(reply)?));
    close_pipe()
}

/// Closes this process's end of the pipe, so that `start` reads its end if the daemon exits before
/// it is ready.
pub fn close_pipe() -> Result<()> {
    let null = File::options()
        .write(true)
        .open("/dev/null")
        .context("/dev/null")?;
    // SAFETY: both descriptors are open; 1 is not owned by any value.
    if unsafe { libc::dup2(null.as_raw_fd(), libc::STDOUT_FILENO) } < 0 {
        return Err(std::io::Error::last_os_error()).context("dup2");
    }
    Ok(())
}
