//! The guard: takes the lock, removes the resources of an earlier supervisor, opens the private
//! mount namespace, forks the daemon and waits for it. When the daemon is killed, the guard (a
//! child subreaper) ends its control group and removes its other resources. When the guard is
//! killed, the daemon gets SIGTERM and ends normally.

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
use crate::groups::Group;
use crate::launch::Options;
use crate::launch::close_pipe;
use crate::launch::report_ready;
use crate::log;
use crate::mounts;
use crate::protocol::Reply;
use crate::state::Reason;
use crate::state::signal_name;
use crate::state_dir::Lock;
use crate::state_dir::StateDir;

/// Runs guard and daemon. The first line on stdout is a [`Reply`]: the daemon accepts connections,
/// or an error.
pub fn serve(options: &Options) -> Result<()> {
    let (dir, lock, group, cleaned) = match prepare(options) {
        Ok(prepared) => prepared,
        Err(error) => return report_ready(&Reply::Error(format!("{error:#}"))),
    };
    let guard = getpid();
    // SAFETY: this process has one thread, so the child can continue without restrictions.
    let child = unsafe { libc::fork() };
    if child < 0 {
        let error = std::io::Error::last_os_error();
        return report_ready(&Reply::Error(format!("cannot fork: {error}")));
    }
    if child > 0 {
        let outcome = watch(child, &dir, &group);
        drop(lock);
        return outcome;
    }
    // In another session, so that a signal to one process group never reaches both.
    setsid().context("setsid")?;
    set_parent_process_death_signal(Some(Signal::TERM)).context("PR_SET_PDEATHSIG")?;
    set_child_subreaper(Some(getpid())).context("PR_SET_CHILD_SUBREAPER")?;
    if getppid() != Some(guard) {
        bail!("the guard has ended");
    }
    if let Err(error) = daemon::serve(options, &dir, &group, &cleaned) {
        log::line(&format!("{error:#}"));
        report_ready(&Reply::Error(format!("{error:#}")))?;
        exit(1);
    }
    exit(0);
}

fn prepare(options: &Options) -> Result<(StateDir, Lock, Group, Value)> {
    let dir = StateDir::open(&options.state_dir)?
        .with_context(|| format!("{} was removed", options.state_dir.display()))?;
    let lock = dir.open_lock()?;
    if !lock.try_take().context("cannot lock the state directory")? {
        let resources = dir.read_resources().ok().flatten();
        let pid = resources
            .map(|resources| format!(" (pid {})", resources.pid))
            .unwrap_or_default();
        let dir = dir.path().display();
        bail!("a supervisor runs at {dir}{pid}; end it with `loadprint-supervise end --state {dir}`");
    }
    mounts::enter_private_namespace()?;
    // The earlier supervisor may have owned its state directory, which is in use again.
    let cleaned = cleanup::remove_by_state(&dir, &[dir.path()])?;
    dir.remove("status.json").context("status.json")?;
    let group = Group::create(&format!("loadprint-{}", std::process::id()))?;
    set_child_subreaper(Some(getpid())).context("PR_SET_CHILD_SUBREAPER")?;
    Ok((dir, lock, group, cleaned))
}

fn watch(daemon: i32, dir: &StateDir, group: &Group) -> Result<()> {
    close_pipe()?;
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
    clean_after(status, dir, group)
}

fn clean_after(status: WaitStatus, dir: &StateDir, group: &Group) -> Result<()> {
    log::line(&format!(
        "the daemon ended unexpectedly ({}); removing its resources",
        describe(status)
    ));
    let reap = || while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {};
    let mut left: Vec<String> = group.end(reap).into_iter().collect();
    if let Some(resources) = dir.read_resources()? {
        left.extend(cleanup::remove_resources(&resources));
    }
    for line in &left {
        log::line(&format!("not removed: {line}"));
    }
    if !dir.exists() {
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
        (_, Some(signal)) => format!("signal {}", signal_name(signal)),
        _ => "unknown".to_owned(),
    }
}
