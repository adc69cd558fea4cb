//! `start`: makes the state directory, starts the guard in a session of its own and returns when the daemon's socket
//! answers, or with the one line that says why it does not.

use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use rustix::fs::OFlags;

use crate::client;
use crate::procfs::ProcessId;
use crate::protocol::Reply;
use crate::state_dir::StateDir;

/// What a supervisor is started with.
#[derive(Debug)]
pub struct Options {
    /// Absolute.
    pub state_dir: PathBuf,
    pub lease: Duration,
    pub controller_pid: Option<u32>,
}

/// Starts a supervisor and prints what it is.
pub fn start(options: &Options) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("needs root: it mounts, makes network namespaces and changes users");
    }
    if options.lease < Duration::from_secs(1) {
        bail!("--lease is under a second");
    }
    if let Some(pid) = options.controller_pid
        && ProcessId::of(pid).is_none()
    {
        bail!("--controller-pid {pid}: there is no such process");
    }
    let dir = StateDir::create(&options.state_dir)?;
    let log_path = dir.join("supervisor.log");
    let log = dir
        .open_file("supervisor.log", OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY)
        .with_context(|| format!("{}", log_path.display()))?;
    let mut guard = guard_command(options, log)?
        .spawn()
        .context("cannot start the supervisor")?;
    let mut line = String::new();
    if let Some(stdout) = guard.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut line)
            .context("cannot hear the supervisor")?;
    }
    if line.is_empty() {
        bail!(
            "the supervisor died before it was ready; see {}",
            log_path.display()
        );
    }
    let reply: Reply =
        serde_json::from_str(&line).context("the supervisor's first line is not understood")?;
    client::print(&reply.into_result()?)
}

fn guard_command(options: &Options, log: File) -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command.arg("serve").arg("--state").arg(&options.state_dir);
    command
        .arg("--lease")
        .arg(format!("{}ms", options.lease.as_millis()));
    if let Some(pid) = options.controller_pid {
        command.arg("--controller-pid").arg(pid.to_string());
    }
    // The caller's environment may hold secrets, and its working directory may be one to unmount.
    command.env_clear().env(
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    );
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    // SAFETY: plain system calls without memory arguments.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::umask(0o077);
            // An inherited pipe that stays open would keep its reader (ssh, ansible) waiting for ever.
            libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            Ok(())
        });
    }
    Ok(command)
}
