//! The helper process: opens the files of watched processes, and forks a child without privileges
//! for everything that reads them.

use std::fs;
use std::fs::File;
use std::io;
use std::io::IoSlice;
use std::io::IoSliceMut;
use std::io::Read;
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use rustix::event;
use rustix::io::Errno;
use rustix::net;
use rustix::process;
use rustix::thread;

use super::MAX_REPLY;
use super::MAX_REQUEST;
use super::Mapping;
use super::Reply;
use super::Request;
use super::elf::Elf;
use super::maps;
use super::open;

/// The time of a request, after which its child is killed.
const DEADLINE: Duration = Duration::from_secs(5);
/// The most files that a child sends at once (`SCM_MAX_FD` is 253).
const MAX_FILES: usize = 64;
/// The most modules: each has an open file, or two.
const MAX_MODULES: usize = 512;

/// The open files of a module: its own, and its debug file.
type Module = Vec<File>;

struct Helper {
    proc: PathBuf,
    recorder: UnixStream,
    modules: Vec<Module>,
}

/// Answers requests on the standard input, a socket, until its end. `proc` is the root of procfs.
#[must_use]
pub fn run(proc: &Path) -> ExitCode {
    // It ends when the recorder has gone.
    drop(serve(proc));
    ExitCode::SUCCESS
}

fn serve(proc: &Path) -> io::Result<()> {
    let mut helper = Helper {
        proc: proc.to_owned(),
        recorder: io::stdin().as_fd().try_clone_to_owned()?.into(),
        modules: (0..MAX_MODULES).map(|_| vec![]).collect(),
    };
    loop {
        let mut length = [0; 4];
        helper.recorder.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_REQUEST {
            return Err(io::Error::other("a request is too long"));
        }
        let mut json = vec![0; length];
        helper.recorder.read_exact(&mut json)?;
        let answer = helper.answer(&serde_json::from_slice(&json)?)?;
        let reply = answer.unwrap_or_else(Reply::failure);
        helper.recorder.write_all(&reply.to_bytes())?;
    }
}

impl Helper {
    /// Answers a request; the outer error is the end of the recorder.
    fn answer(&mut self, request: &Request) -> io::Result<Result<Reply, String>> {
        let none = vec![];
        let module = |number: &u32| self.modules.get(*number as usize).unwrap_or(&none);
        let kept: &[File] = match request {
            Request::Functions { module: number } | Request::Names { module: number, .. } => module(number),
            _ => &[],
        };
        let proc = &self.proc;
        let result = in_child(&self.recorder, |socket| {
            let kept_numbers = kept.iter().map(AsRawFd::as_raw_fd);
            close_others(proc, &kept_numbers.chain([socket]).collect::<Vec<_>>())?;
            answer_in_child(proc, request, kept)
        })?;
        Ok(result.map(|(reply, files)| {
            match request {
                Request::Open { files: wanted, .. } => {
                    // The child sent the places of those that it could open.
                    let opened: Vec<usize> = reply.value().unwrap_or_default();
                    for (place, file) in opened.into_iter().zip(files) {
                        self.keep(wanted.get(place).map(|(number, _)| *number), file);
                    }
                }
                Request::DebugFile { module, .. } => {
                    if let Some(file) = files.into_iter().next() {
                        self.keep(Some(*module), file);
                    }
                }
                _ => {}
            }
            reply
        }))
    }

    fn keep(&mut self, module: Option<u32>, file: OwnedFd) {
        let module = module.and_then(|number| self.modules.get_mut(number as usize));
        if let Some(module) = module.filter(|module| module.len() < 2) {
            module.push(file.into());
        }
    }
}

/// Opens what the request needs, gives up all privileges, and reads; returns the reply and the files
/// to send with it.
fn answer_in_child(proc: &Path, request: &Request, kept: &[File]) -> io::Result<(Reply, Vec<File>)> {
    let own = || {
        kept.first()
            .ok_or_else(|| io::Error::other("the file of the module is not open"))
    };
    Ok(match request {
        Request::Maps { pid } => {
            let file = open::of_process(proc, *pid, "maps")?;
            confine()?;
            let mut text = vec![];
            file.take(maps::MAX_TEXT).read_to_end(&mut text)?;
            // The last line may be cut.
            text.truncate(memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1));
            let mappings = maps::parse(&text).map_err(|error| io::Error::other(error.message))?;
            (Reply::new(mappings, vec![]), vec![])
        }
        Request::Open { pid, files } => {
            let open = |(_, mapping): &(u32, Mapping)| open::of_mapping(proc, *pid, mapping);
            let opened = files.iter().take(MAX_FILES).map(open).enumerate();
            let (places, files): (Vec<_>, Vec<_>) = opened
                .filter_map(|(place, file)| Some((place, file.ok()?)))
                .unzip();
            (Reply::new(places, vec![]), files)
        }
        Request::Functions { .. } => {
            confine()?;
            let elf = elf(own()?)?;
            let functions = to_bytes(elf.functions(elf.description.base()));
            (Reply::new(&elf.description, functions), vec![])
        }
        Request::DebugFile {
            pid,
            path,
            build_id,
            link,
            base,
            ..
        } => {
            let files = open::debug_files(proc, *pid, path, build_id, link.as_deref());
            confine()?;
            let debug_file = files.into_iter().find_map(|file| {
                let elf = elf(&file).ok()?;
                let is_of_module = elf.description.build_id.as_ref() == Some(build_id);
                let is_wanted = is_of_module && !elf.description.is_stripped;
                let functions = is_wanted.then(|| to_bytes(elf.functions(*base)))?;
                Some((Reply::new((), functions), vec![file]))
            });
            debug_file.ok_or_else(|| io::Error::other("no debug file"))?
        }
        Request::Names { functions, .. } => {
            confine()?;
            let mut names = vec![None; functions.len()];
            for file in kept {
                let found = elf(file)?.names(functions);
                for (name, found) in names.iter_mut().zip(found) {
                    *name = name.take().or(found);
                }
            }
            (Reply::new(names, vec![]), vec![])
        }
        Request::Dispatch { pid } => {
            let file = open::of_process(proc, *pid, "exe")?;
            confine()?;
            (Reply::new(elf(&file)?.dispatch(), vec![]), vec![])
        }
    })
}

/// Closes all files of this process but standard output, standard error and `kept`: modules of other
/// requests, the socket of the recorder, and what the recorder inherited.
fn close_others(proc: &Path, kept: &[RawFd]) -> io::Result<()> {
    let names = fs::read_dir(proc.join("self/fd"))?.map(|entry| Ok(entry?.file_name()));
    for name in names.collect::<io::Result<Vec<_>>>()? {
        let number = name.to_str().and_then(|name| name.parse().ok());
        let number = number.ok_or_else(|| io::Error::other("/proc/self/fd has an unknown name"))?;
        if !kept.contains(&number) && !matches!(number, libc::STDOUT_FILENO | libc::STDERR_FILENO) {
            // SAFETY: this child uses none of them from here on, and ends without closing them again.
            unsafe { libc::close(number) };
        }
    }
    Ok(())
}

fn elf(file: &File) -> io::Result<Elf<'_>> {
    Elf::open(file).ok_or_else(|| io::Error::other("not an ELF file"))
}

fn to_bytes(functions: Vec<(u32, u32)>) -> Vec<u8> {
    functions
        .into_iter()
        .flat_map(|(start, size)| [start.to_le_bytes(), size.to_le_bytes()])
        .flatten()
        .collect()
}

/// Sends a reply, and files with its first bytes.
fn send(socket: &UnixStream, reply: &Reply, files: &[File]) -> io::Result<()> {
    let bytes = reply.to_bytes();
    let borrowed: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut ancillary = net::SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        ancillary.push(net::SendAncillaryMessage::ScmRights(&borrowed));
    }
    let sent = net::sendmsg(
        socket,
        &[IoSlice::new(&bytes)],
        &mut ancillary,
        net::SendFlags::NOSIGNAL,
    )?;
    (&*socket).write_all(&bytes[sent..])
}

/// Runs `work` in a child, which sends its reply through the socket that `work` gets. The outer error is the end of the
/// recorder, the inner one that of the child.
fn in_child(
    recorder: &UnixStream,
    work: impl FnOnce(RawFd) -> io::Result<(Reply, Vec<File>)>,
) -> io::Result<Result<(Reply, Vec<OwnedFd>), String>> {
    let (socket, of_child) = UnixStream::pair()?;
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // A child that panics sends nothing.
            if let Ok(worked) = catch_unwind(AssertUnwindSafe(|| work(of_child.as_raw_fd()))) {
                let failure = |error: io::Error| (Reply::failure(error.to_string()), vec![]);
                let (reply, files) = worked.unwrap_or_else(failure);
                drop(send(&of_child, &reply, &files));
            }
            // SAFETY: ends this process at once; the buffers of the parent are not its own to write.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(of_child);
            let received = receive(&socket, recorder);
            // It may have ended.
            let _killed = process::Pid::from_raw(child)
                .map(|child| process::kill_process(child, process::Signal::KILL));
            // A child that is blocked in an open cannot end yet: it is reaped after a later request.
            while let Ok(Some(_)) = process::waitpid(None, process::WaitOptions::NOHANG) {}
            received
        }
    }
}

/// Reads the reply of a child until the deadline.
fn receive(socket: &UnixStream, recorder: &UnixStream) -> io::Result<Result<(Reply, Vec<OwnedFd>), String>> {
    let until = Instant::now() + DEADLINE;
    let (mut bytes, mut files) = (vec![], vec![]);
    let mut buffer = vec![0; 1 << 18];
    loop {
        let left = event::Timespec::try_from(until.saturating_duration_since(Instant::now()))
            .map_err(io::Error::other)?;
        let mut ready = [
            event::PollFd::new(socket, event::PollFlags::IN),
            event::PollFd::new(recorder, event::PollFlags::empty()),
        ];
        match event::poll(&mut ready, Some(&left)) {
            Ok(0) => return Ok(Err(format!("reading took more than {} s", DEADLINE.as_secs()))),
            Ok(_) if ready[1].revents().contains(event::PollFlags::HUP) => {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
        let mut ancillary = net::RecvAncillaryBuffer::new(&mut space);
        let message = net::recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut buffer)],
            &mut ancillary,
            net::RecvFlags::CMSG_CLOEXEC,
        )?;
        for control in ancillary.drain() {
            if let net::RecvAncillaryMessage::ScmRights(received) = control {
                files.extend(received);
            }
        }
        bytes.extend(&buffer[..message.bytes]);
        if bytes.len() > 2 * MAX_REPLY || files.len() > MAX_FILES {
            return Ok(Err("an answer is too long".to_owned()));
        }
        match Reply::take(&mut bytes) {
            Ok(Some(reply)) => return Ok(Ok((reply, files))),
            Ok(None) if message.bytes == 0 => {
                return Ok(Err("the process that reads the file was ended".to_owned()));
            }
            Ok(None) => {}
            Err(reason) => return Ok(Err(reason)),
        }
    }
}

/// Bytes of memory: a table of four million symbols, twice, and this program.
const MEMORY: u64 = 512 << 20;
/// Seconds of CPU time.
const CPU: u64 = 5;
/// User IDs for processes without an account, the lower ones of systemd's `DynamicUser=` (61184 to
/// 65519): first, and how many. The playbooks' MySQL server has 64033.
const USERS: (u32, u32) = (61_184, 816);

/// Leaves this process nothing but its open files, memory and CPU time.
///
/// A process with root's privileges gets a user ID that no account and no other reader has. One
/// without them keeps its own.
///
/// # Errors
/// When the kernel refuses any part: then nothing may be read.
fn confine() -> io::Result<()> {
    let limits = [
        (process::Resource::As, MEMORY),
        (process::Resource::Cpu, CPU),
        (process::Resource::Core, 0),
        (process::Resource::Fsize, 0),
        // A process that it forks would outlive its deadline.
        (process::Resource::Nproc, 0),
    ];
    for (resource, limit) in limits {
        let limit = Some(limit);
        process::setrlimit(
            resource,
            process::Rlimit {
                current: limit,
                maximum: limit,
            },
        )?;
    }
    if process::geteuid().is_root() {
        let (first, count) = USERS;
        let id = first + process::getpid().as_raw_nonzero().get().cast_unsigned() % count;
        let (user, group) = (process::Uid::from_raw(id), process::Gid::from_raw(id));
        thread::set_thread_groups(&[])?;
        thread::set_thread_res_gid(group, group, group)?;
        thread::set_thread_res_uid(user, user, user)?;
    }
    let none = thread::CapabilitySet::empty();
    thread::set_capabilities(
        None,
        thread::CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?;
    // After the change of the user, which resets it.
    process::set_parent_process_death_signal(Some(process::Signal::KILL))?;
    thread::set_no_new_privs(true)?;
    Ok(())
}
