//! The guard: takes the lock, removes what an earlier supervisor left, opens the private mount namespace, forks the
//! daemon and sleeps. When the daemon is killed, its orphans fall to the guard (a child subreaper), which kills them
//! and removes the rest. When the guard is killed, the daemon gets SIGTERM and ends in order.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::exit;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use rustix::process::Signal;
use rustix::process::WaitOptions;
use rustix::process::WaitStatus;
use rustix::process::getpid;
use rustix::process::getppid;
use rustix::process::set_child_subreaper;
use rustix::process::set_parent_process_death_signal;
use rustix::process::setsid;
use rustix::process::wait;
use serde_json::Value;
use serde_json::json;

use crate::cleanup;
use crate::daemon;
use crate::launch::Options;
use crate::log;
use crate::mounts;
use crate::procfs::descendants;
use crate::protocol::Reply;
use crate::state::Reason;
use crate::state_dir::Lock;
use crate::state_dir::StateDir;

/// Runs guard and daemon; the first line on stdout is a [`Reply`] that says whether the socket answers.
pub fn serve(options: &Options) -> Result<()> {
    let (dir, lock, cleaned) = match prepare(options) {
        Ok(prepared) => prepared,
        Err(error) => return say_ready(&Reply::Error(format!("{error:#}"))),
    };
    let guard = getpid();
    // SAFETY: this process has one thread, so the child may go on as the parent could.
    let child = unsafe { libc::fork() };
    if child < 0 {
        let error = std::io::Error::last_os_error();
        return say_ready(&Reply::Error(format!("cannot fork: {error}")));
    }
    if child > 0 {
        let outcome = watch(child, &dir);
        drop(lock);
        return outcome;
    }
    // Of its own session, so that a signal to one process group never takes both.
    setsid().context("setsid")?;
    set_parent_process_death_signal(Some(Signal::TERM)).context("PR_SET_PDEATHSIG")?;
    set_child_subreaper(Some(getpid())).context("PR_SET_CHILD_SUBREAPER")?;
    if getppid() != Some(guard) {
        bail!("the guard died");
    }
    if let Err(error) = daemon::serve(options, &dir, &cleaned) {
        log::line(&format!("{error:#}"));
        say_ready(&Reply::Error(format!("{error:#}")))?;
        exit(1);
    }
    exit(0);
}

fn prepare(options: &Options) -> Result<(StateDir, Lock, Value)> {
    let dir = StateDir::open(&options.state_dir)?
        .with_context(|| format!("{} has been removed", options.state_dir.display()))?;
    let lock = dir.open_lock()?;
    let before = || dir.read_holdings().ok().flatten();
    if !lock.try_take().context("cannot lock the state directory")? {
        let pid = before()
            .map(|holdings| format!(" (pid {})", holdings.pid))
            .unwrap_or_default();
        let dir = dir.path().display();
        bail!("a supervisor runs at {dir}{pid}; end it with `loadprint-supervise end --state {dir}`");
    }
    // The directory itself may be among it, and is used again.
    let cleaned = cleanup::remove_what_was_left(&dir, &[dir.path()])?;
    dir.remove("status.json").context("status.json")?;
    mounts::enter_private_namespace()?;
    set_child_subreaper(Some(getpid())).context("PR_SET_CHILD_SUBREAPER")?;
    Ok((dir, lock, cleaned))
}

/// Tells `start`; it reads no more than this line.
pub fn say_ready(reply: &Reply) -> Result<()> {
    let mut stdout = std::io::stdout();
    // `start` may have been killed; the lease will end what it began.
    drop(writeln!(stdout, "{}", serde_json::to_string(reply)?));
    detach_stdout()
}

/// Lets go of the pipe, so that `start` sees its end when the daemon dies before it is ready.
fn detach_stdout() -> Result<()> {
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

fn watch(daemon: i32, dir: &StateDir) -> Result<()> {
    detach_stdout()?;
    let status = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == daemon => break status,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("wait"),
        }
    };
    if status.exit_status() == Some(0) {
        return Ok(());
    }
    clean_after(status, dir)
}

fn clean_after(status: WaitStatus, dir: &StateDir) -> Result<()> {
    log::line(&format!(
        "the daemon died ({}); removing what it held",
        describe(status)
    ));
    let me = getpid().as_raw_nonzero().get().unsigned_abs();
    let reap = || while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {};
    let mut left = cleanup::kill_all(|| descendants(me), reap);
    if let Some(holdings) = dir.read_holdings()? {
        left.extend(cleanup::remove_leftovers(&holdings));
    }
    for line in &left {
        log::line(&format!("left behind: {line}"));
    }
    if !dir.is_there() {
        dir.remove_empty_parent();
        return Ok(());
    }
    let mut status: Value = dir
        .read_json("status.json")
        .ok()
        .flatten()
        .unwrap_or_else(|| json!({}));
    status["ended"] = json!(Reason::Killed);
    status["left"] = json!(left);
    dir.write_json("status.json", &status)?;
    dir.remove("control.sock").context("control.sock")?;
    if left.is_empty() {
        dir.remove("state.json").context("state.json")?;
    }
    log::line("removed");
    Ok(())
}

fn describe(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (_, Some(signal)) => format!("signal {}", crate::signals::name(signal)),
        _ => "unknown".to_owned(),
    }
}
