//! Performs the requests of the main thread: processes, mounts, namespaces, interrupts, owned paths. Each new
//! resource is written to state.json at once; a resource of a daemon that is killed before that
//! disappears with the daemon.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;
use loadprint_cpulist::CpuSet;
use rustix::fs::OFlags;
use serde_json::Value;
use serde_json::json;

use crate::cleanup;
use crate::cpus;
use crate::groups::Group;
use crate::interrupts;
use crate::log;
use crate::memory::NodeSet;
use crate::mounts;
use crate::netns::NetNs;
use crate::netns::PEER_INTERFACE;
use crate::output::Output;
use crate::placement::Placement;
use crate::protocol::Mount;
use crate::protocol::Request;
use crate::protocol::RunRequest;
use crate::spawn::Spawn;
use crate::state::Process;
use crate::state::ProcessState;
use crate::state::Shared;
use crate::state::State;
use crate::state_dir::StateDir;

/// Performs one request and returns its reply.
pub fn perform(main: &mut MainThread<'_>, request: Request) -> Result<Value> {
    match request {
        Request::Run(request) => run(main, *request),
        Request::Mount(request) => mount(main, request),
        Request::Netns {
            name,
            host_address,
            peer_address,
        } => netns(main, &name, &host_address, &peer_address),
        Request::Irqs { cpus, devices } => irqs(main, &cpus, &devices),
        Request::Own { path } => own(main, path),
        Request::Wait { .. }
        | Request::Stop { .. }
        | Request::Freeze { .. }
        | Request::Thaw { .. }
        | Request::Note { .. }
        | Request::Status
        | Request::End => {
            bail!("not a request for the main thread; please report this")
        }
    }
}

fn run(main: &mut MainThread<'_>, request: RunRequest) -> Result<Value> {
    check_name(&request.name)?;
    let mut env = Vec::with_capacity(request.env.len());
    for (index, pair) in request.env.iter().enumerate() {
        match pair.split_once('=') {
            Some((key, value)) if !key.is_empty() => env.push((key.to_owned(), value.to_owned())),
            // Without the text: it may be a secret.
            _ => bail!("--env number {} is not KEY=VALUE", index + 1),
        }
    }
    let netns = {
        let state = main.shared.lock();
        refuse_running(&state, &request.name)?;
        let find = |name: &String| anyhow::Ok(Arc::clone(&state.find_netns(name)?.descriptor));
        request.netns.as_ref().map(find).transpose()?
    };
    let cpus = request.cpus.as_deref().map(cpus::parse_online).transpose()?;
    let memory_nodes = request
        .memory_nodes
        .as_deref()
        .map(NodeSet::parse_present)
        .transpose()?;
    request.chroot.as_deref().map(check_root).transpose()?;
    let user = request.user.as_deref().map(user).transpose()?;
    let placement = watch(cpus, memory_nodes)?;
    let (stdout, stdout_file) = output(main, None, &request.name, "stdout")?;
    let (stderr, stderr_file) = output(main, request.stderr.as_deref(), &request.name, "stderr")?;
    let group = Arc::new(main.group.child(&request.name)?);
    let spawn = Spawn {
        argv: request.argv,
        env,
        group: Arc::clone(&group),
        cpus,
        memory_nodes,
        netns,
        chroot: request.chroot,
        user,
        stdout: stdout_file,
        stderr: stderr_file,
    };
    let pid = spawn
        .start()
        .inspect_err(|_| drop(group.remove()))
        .with_context(|| format!("cannot start `{}`", request.name))?;
    log::line(&format!("started {} (pid {pid})", request.name));
    let process = Process {
        number: main.started,
        pid,
        group,
        placement,
        cpus,
        stop_timeout: request.stop_timeout,
        stdout,
        stderr,
        state: ProcessState::Running,
        exit: None,
        name: request.name,
    };
    main.started += 1;
    let reply = json!({"name": process.name, "pid": pid});
    let mut state = main.shared.lock();
    state.processes.retain(|earlier| earlier.name != process.name);
    state.processes.push(process);
    drop(state);
    main.write_resources()?;
    Ok(reply)
}

/// The numbers of a user and a group.
fn user(text: &str) -> Result<(u32, u32)> {
    let numbers = text.split_once(':');
    let parsed = numbers.and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    parsed.with_context(|| format!("--user {text}: write two numbers, like 998:998"))
}

fn check_root(root: &Path) -> Result<()> {
    if fs::metadata(root)
        .with_context(|| format!("--chroot {}", root.display()))?
        .is_dir()
    {
        return Ok(());
    }
    bail!("--chroot {} is not a directory", root.display())
}

/// The placement to watch; without CPUs, those that the process inherits from the supervisor.
fn watch(cpus: Option<CpuSet>, memory_nodes: Option<NodeSet>) -> Result<Option<Placement>> {
    let cpus = match (cpus, memory_nodes) {
        (None, Some(_)) => Some(cpus::of_thread(0).context("cannot read the supervisor's CPUs")?),
        _ => cpus,
    };
    Ok(cpus.map(|cpus| Placement::new(cpus, memory_nodes)))
}

fn output(
    main: &MainThread<'_>,
    option: Option<&Path>,
    name: &str,
    stream: &str,
) -> Result<(Output, fs::File)> {
    let flags = OFlags::CREATE | OFlags::APPEND | OFlags::RDWR;
    let (path, opened) = match option {
        Some(path) => (path.to_owned(), Output::open(path)),
        None => {
            let name = format!("{name}.{stream}");
            let opened = main.dir.open_file(&name, flags).and_then(|file| {
                file.set_len(0)?; // of an earlier process of this name
                Output::new(file)
            });
            (main.dir.join(&name), opened)
        }
    };
    opened.with_context(|| format!("--{stream} {}", path.display()))
}

fn refuse_running(state: &State, name: &str) -> Result<()> {
    match state.find(name) {
        Ok(process) if process.state == ProcessState::Running => {
            bail!("process `{name}` is running (pid {}); stop it first", process.pid)
        }
        _ => Ok(()),
    }
}

fn mount(main: &mut MainThread<'_>, request: Mount) -> Result<Value> {
    let destination = match (request.bind.as_deref(), request.proc, request.dev) {
        (Some([source, destination]), ..) => {
            mounts::bind(source, destination)?;
            destination.clone()
        }
        (_, Some(destination), _) => {
            mounts::proc(&destination)?;
            destination
        }
        (_, _, Some(destination)) => {
            mounts::dev(&destination)?;
            destination
        }
        _ => bail!("nothing to mount; add --bind SRC DST, --proc DST or --dev DST"),
    };
    log::line(&format!("mounted {}", destination.display()));
    let reply = json!({"mounted": destination});
    main.shared.lock().resources.mounts.push(destination);
    main.write_resources()?;
    Ok(reply)
}

fn netns(main: &mut MainThread<'_>, name: &str, host: &str, peer: &str) -> Result<Value> {
    check_name(name)?;
    if main.shared.lock().find_netns(name).is_ok() {
        bail!("network namespace `{name}` already exists; choose another name");
    }
    // Interface names are unique on the host, unlike the namespaces of several supervisors, and
    // have at most 15 bytes.
    let interface = format!("lp{}n{}", std::process::id(), main.namespaces_created);
    main.namespaces_created += 1;
    let netns = NetNs::create(name, &interface, host, peer)?;
    log::line(&format!(
        "created network namespace {name} with interface {interface}"
    ));
    let reply = json!({
        "netns": name, "host_interface": interface, "peer_interface": PEER_INTERFACE,
        "host_address": host, "peer_address": peer,
    });
    let mut state = main.shared.lock();
    state.resources.interfaces.push(interface);
    state.namespaces.push(netns);
    drop(state);
    main.write_resources()?;
    Ok(reply)
}

fn irqs(main: &mut MainThread<'_>, cpus: &str, devices: &[String]) -> Result<Value> {
    let cpus = cpus::parse_online(cpus)?;
    let found = interrupts::find(Path::new(interrupts::PROC), Path::new(interrupts::SYS), devices)?;
    // state.json contains them before they move: unlike other resources they do not disappear with the daemon.
    let mut state = main.shared.lock();
    let moved = &mut state.resources.interrupts;
    for interrupt in &found {
        if !moved.iter().any(|earlier| earlier.irq == interrupt.irq) {
            moved.push(interrupt.clone());
        }
    }
    drop(state);
    main.write_resources()?;
    let reply = interrupts::move_to(Path::new(interrupts::PROC), &cpus, &found);
    log::line(&format!("moved interrupts: {reply}"));
    Ok(reply)
}

fn own(main: &mut MainThread<'_>, path: PathBuf) -> Result<Value> {
    let mounts = main.shared.lock().resources.mounts.clone();
    cleanup::check_owned(&path, &mounts)?;
    let path = cleanup::resolve(&path);
    let reply = json!({"owned": path});
    let mut state = main.shared.lock();
    if !state.resources.owned.contains(&path) {
        state.resources.owned.push(path);
    }
    drop(state);
    main.write_resources()?;
    Ok(reply)
}

/// Checks a name, which is used in file names and messages.
fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if name.is_empty() || name.len() > 64 || name.starts_with(['.', '-']) || !name.bytes().all(plain) {
        bail!(
            "name `{name}` must have 1 to 64 letters, digits, `_`, `.` or `-`, and must not start with `.` or `-`"
        );
    }
    Ok(())
}

/// The state of the main thread.
#[derive(Debug)]
pub struct MainThread<'a> {
    pub shared: Arc<Shared>,
    pub dir: &'a StateDir,
    /// The group of all processes.
    pub group: &'a Group,
    /// How many processes it has started.
    pub started: u64,
    pub namespaces_created: u32,
}

impl MainThread<'_> {
    /// Writes the resources that the next `start` must remove if this supervisor and its guard are
    /// killed.
    pub fn write_resources(&self) -> Result<()> {
        let resources = self.shared.lock().resources.clone();
        self.dir.write_json("state.json", &resources)
    }
}
