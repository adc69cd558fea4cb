//! The requests that only the main thread performs: processes, mounts, namespaces, owned paths. Each is written to
//! state.json as soon as it holds something; a death before that is covered by what vanishes with the daemon.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use rustix::fs::OFlags;
use serde_json::Value;
use serde_json::json;

use crate::account::Account;
use crate::cleanup;
use crate::cpus::CpuSet;
use crate::daemon::Daemon;
use crate::log;
use crate::mounts;
use crate::netns::NetNs;
use crate::netns::PEER_INTERFACE;
use crate::output::Output;
use crate::placement::Placement;
use crate::procfs::ProcessId;
use crate::procfs::read_stat;
use crate::protocol::Request;
use crate::protocol::RunRequest;
use crate::signals;
use crate::spawn::Spawn;
use crate::state::Process;
use crate::state::ProcessState;
use crate::state::State;

/// Does one request and gives its answer.
pub fn perform(daemon: &mut Daemon<'_>, request: Request) -> Result<Value> {
    match request {
        Request::Run(request) => run(daemon, *request),
        Request::Bind { source, destination } => {
            mounts::bind(&source, &destination)?;
            mounted(daemon, destination)
        }
        Request::Proc { destination } => {
            mounts::proc(&destination)?;
            mounted(daemon, destination)
        }
        Request::Dev { destination } => {
            mounts::dev(&destination)?;
            mounted(daemon, destination)
        }
        Request::Unmount { destination } => unmount(daemon, &destination),
        Request::Netns {
            name,
            host_address,
            peer_address,
        } => netns(daemon, &name, &host_address, &peer_address),
        Request::Own { path } => own(daemon, path),
        Request::Wait { .. }
        | Request::Stop { .. }
        | Request::Note { .. }
        | Request::Status
        | Request::End => {
            bail!("this request is answered elsewhere")
        }
    }
}

fn run(daemon: &mut Daemon<'_>, request: RunRequest) -> Result<Value> {
    check_name(&request.name)?;
    let netns = {
        let state = daemon.shared.lock();
        refuse_running(&state, &request.name)?;
        request
            .netns
            .as_deref()
            .map(|name| find_netns(&state, name))
            .transpose()?
    };
    let cpus = request.cpus.as_deref().map(CpuSet::parse_online).transpose()?;
    let stop_signal = signals::parse(&request.stop_signal)
        .with_context(|| format!("unknown signal `{}`; try TERM, INT or QUIT", request.stop_signal))?;
    let root = request.chroot.as_deref().unwrap_or(Path::new("/"));
    if !fs::metadata(root)
        .with_context(|| format!("--chroot {}", root.display()))?
        .is_dir()
    {
        bail!("--chroot {} is not a directory", root.display());
    }
    let account = request
        .user
        .as_deref()
        .map(|user| Account::resolve(user, root))
        .transpose()?;
    let (stdout, stdout_file) = output(daemon, request.stdout.as_deref(), &request.name, "stdout")?;
    let (stderr, stderr_file) = output(daemon, request.stderr.as_deref(), &request.name, "stderr")?;
    let spawn = Spawn {
        argv: request.argv,
        env: request.env,
        token: daemon.token.clone(),
        cpus,
        netns,
        chroot: request.chroot,
        cwd: request.cwd,
        account,
        stdout: stdout_file,
        stderr: stderr_file,
    };
    let pid = spawn
        .start()
        .with_context(|| format!("cannot start `{}`", request.name))?;
    // It cannot have been reaped yet, so its stat is there even if it has died.
    let stat = read_stat(&format!("/proc/{pid}/stat")).with_context(|| format!("/proc/{pid}/stat"))?;
    log::line(&format!("started {} (pid {pid})", request.name));
    let process = Process {
        role: request.role,
        id: ProcessId {
            pid,
            start_time: stat.start_time,
        },
        placement: cpus.as_ref().map(Placement::new),
        cpus,
        stop_signal,
        stop_timeout: request.stop_timeout,
        stdout,
        stderr,
        state: ProcessState::Running,
        name: request.name,
    };
    let reply = json!({"name": process.name, "pid": pid});
    let mut state = daemon.shared.lock();
    state.processes.retain(|earlier| earlier.name != process.name);
    state.processes.push(process);
    drop(state);
    daemon.write_holdings()?;
    Ok(reply)
}

fn output(daemon: &Daemon<'_>, asked: Option<&Path>, name: &str, stream: &str) -> Result<(Output, fs::File)> {
    let flags = OFlags::CREATE | OFlags::APPEND | OFlags::RDWR;
    let (path, opened) = match asked {
        Some(path) => (path.to_owned(), Output::open(path)),
        None => {
            let name = format!("{name}.{stream}");
            let opened = daemon.dir.open_file(&name, flags).and_then(Output::new);
            (daemon.dir.join(&name), opened)
        }
    };
    opened.with_context(|| format!("--{stream} {}", path.display()))
}

fn refuse_running(state: &State, name: &str) -> Result<()> {
    match state.find(name) {
        Ok(process) if process.state == ProcessState::Running => {
            bail!(
                "process `{name}` is running (pid {}); stop it first",
                process.id.pid
            )
        }
        _ => Ok(()),
    }
}

fn find_netns(state: &State, name: &str) -> Result<Arc<OwnedFd>> {
    if let Some(netns) = state.namespaces.iter().find(|netns| netns.name == name) {
        return Ok(Arc::clone(&netns.descriptor));
    }
    let names: Vec<&str> = state.namespaces.iter().map(|netns| netns.name.as_str()).collect();
    match names.as_slice() {
        [] => bail!("no network namespace `{name}`: none was made here"),
        _ => bail!("no network namespace `{name}`; there are: {}", names.join(", ")),
    }
}

fn mounted(daemon: &mut Daemon<'_>, destination: PathBuf) -> Result<Value> {
    log::line(&format!("mounted {}", destination.display()));
    let reply = json!({"mounted": destination});
    daemon.shared.lock().mounts.push(destination);
    daemon.write_holdings()?;
    Ok(reply)
}

fn unmount(daemon: &mut Daemon<'_>, destination: &Path) -> Result<Value> {
    let position = daemon
        .shared
        .lock()
        .mounts
        .iter()
        .rposition(|mount| mount == destination);
    let Some(position) = position else {
        bail!("{} was not mounted by this supervisor", destination.display());
    };
    mounts::undo(destination)?;
    log::line(&format!("unmounted {}", destination.display()));
    daemon.shared.lock().mounts.remove(position);
    daemon.write_holdings()?;
    Ok(json!({"unmounted": destination}))
}

fn netns(daemon: &mut Daemon<'_>, name: &str, host: &str, peer: &str) -> Result<Value> {
    check_name(name)?;
    if daemon
        .shared
        .lock()
        .namespaces
        .iter()
        .any(|netns| netns.name == name)
    {
        bail!("network namespace `{name}` exists in this supervisor; choose another name");
    }
    // Namespaces of other supervisors may have the same name; interfaces of the host may not (15 bytes at most).
    let interface = format!("lp{}n{}", std::process::id(), daemon.namespaces_made);
    daemon.namespaces_made += 1;
    let netns = NetNs::create(name, &interface, host, peer)?;
    log::line(&format!("made network namespace {name} behind {interface}"));
    let reply = json!({
        "netns": name, "host_interface": interface, "peer_interface": PEER_INTERFACE,
        "host_address": host, "peer_address": peer,
    });
    daemon.shared.lock().namespaces.push(netns);
    daemon.write_holdings()?;
    Ok(reply)
}

fn own(daemon: &mut Daemon<'_>, path: PathBuf) -> Result<Value> {
    let mounts = daemon.shared.lock().mounts.clone();
    cleanup::check_owned(&path, &mounts)?;
    let path = cleanup::resolve(&path);
    let reply = json!({"owned": path});
    let mut state = daemon.shared.lock();
    if !state.owned.contains(&path) {
        state.owned.push(path);
    }
    drop(state);
    daemon.write_holdings()?;
    Ok(reply)
}

/// Names become file names and part of messages.
fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if name.is_empty() || name.len() > 64 || name.starts_with(['.', '-']) || !name.bytes().all(plain) {
        bail!("name `{name}` must be 1 to 64 letters, digits, `_`, `.` or `-`, not starting with `.` or `-`");
    }
    Ok(())
}
