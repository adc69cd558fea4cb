//! `start`: creates the state directory, starts the guard in a new session, and returns when the
//! daemon accepts connections or has failed.

use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use clap::Args;
use rustix::fs::OFlags;
use rustix::process::Pid;
use rustix::process::PidfdFlags;
use rustix::process::pidfd_open;

use crate::client;
use crate::protocol::Reply;
use crate::protocol::duration;
use crate::state_dir::StateDir;

// Options of `start`.
#[derive(Debug, Args)]
pub struct Options {
    /// An absolute path, of all commands.
    #[arg(skip)]
    pub state_dir: PathBuf,
    /// End after this time without a command
    #[arg(long, default_value = "60s", value_parser = duration)]
    pub lease: Duration,
    /// End when this process exits
    #[arg(long, value_name = "PID")]
    pub controller_pid: Option<u32>,
}

/// Starts a supervisor and prints its pid, state directory and lease.
pub fn start(options: &Options) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("needs root, to mount, create network namespaces and change users; use sudo");
    }
    if options.lease < Duration::from_secs(1) {
        bail!("--lease must be at least 1s");
    }
    drop(options.controller_pid.map(open_controller).transpose()?);
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
            .context("cannot read from the supervisor")?;
    }
    if line.is_empty() {
        bail!(
            "the supervisor ended before it was ready; see {}",
            log_path.display()
        );
    }
    let reply: Reply = serde_json::from_str(&line).context("the supervisor's first line cannot be parsed")?;
    client::print(&reply.into_result()?)
}

/// Opens the process whose exit ends the supervisor.
pub fn open_controller(pid: u32) -> Result<OwnedFd> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    number
        .and_then(|number| pidfd_open(number, PidfdFlags::empty()).ok())
        .with_context(|| format!("--controller-pid {pid}: no such process"))
}

fn guard_command(options: &Options, log: File) -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program's executable")?;
    let mut command = Command::new(program);
    command.arg("serve").arg("--state").arg(&options.state_dir);
    command
        .arg("--lease")
        .arg(format!("{}ms", options.lease.as_millis()));
    if let Some(pid) = options.controller_pid {
        command.arg("--controller-pid").arg(pid.to_string());
    }
    // The caller's environment may contain secrets, and its working directory could block an
    // unmount.
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
            // An inherited pipe that stays open would block its reader (ssh, ansible) forever.
            libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            Ok(())
        });
    }
    Ok(command)
}

/// Sends the line that `start` waits for, and closes the pipe.
pub fn report_ready(reply: &Reply) -> Result<()> {
    let mut stdout = io::stdout();
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
        return Err(io::Error::last_os_error()).context("dup2");
    }
    Ok(())
}
