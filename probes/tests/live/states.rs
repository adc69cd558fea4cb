//! Compares the states of threads with processes that block in known calls for known times.

use std::fs::File;
use std::fs::OpenOptions;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::prelude::*;
use rustix::thread::futex;

/// Waits on a futex for 20 ms.
fn futex_nap() {
    let time = futex::Timespec {
        tv_sec: 0,
        tv_nsec: NAP.subsec_nanos().into(),
    };
    let _end = futex::wait(&AtomicU32::new(0), futex::Flags::empty(), 0, Some(&time));
}

/// Polls descriptors for 20 ms.
fn poll_nap(descriptors: &[i32], events: i16) {
    poll(descriptors, events, 20);
}

/// Receives from a descriptor; returns whether there were data.
fn receive(descriptor: i32) -> bool {
    let mut byte = 0u8;
    // SAFETY: the byte lives until the call returns.
    unsafe { libc::recv(descriptor, (&raw mut byte).cast(), 1, 0) == 1 }
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

const OPERATIONS: u64 = 10;

/// The server serves a client that waits 20 ms before each request, and also sleeps 20 ms. The second
/// time without task storage, as on Linux 5.10.
#[test]
fn client_of_an_earlier_connection_is_recognised() {
    for shared in [Shared::default(), Shared::without_task_storage()] {
        let (mut client, server) = tcp_pair();
        let descriptor = server.as_raw_fd();
        let mut watched = Watched::sharing(shared, || {
            for _ in 0..OPERATIONS {
                poll(&[descriptor], libc::POLLIN, -1);
                receive(descriptor);
                nap();
                // SAFETY: the byte lives until the call returns.
                unsafe { libc::send(descriptor, c"x".as_ptr().cast(), 1, 0) };
            }
        });
        let client = thread::spawn(move || {
            let mut byte = [0];
            loop {
                thread::sleep(NAP);
                // The end of the child ends the connection.
                if client.write_all(&byte).is_err() || client.read_exact(&mut byte).is_err() {
                    return;
                }
            }
        });
        let seen = watched.once(|seen| seen.periods(["client", "sleep"]) == [OPERATIONS; 2]);
        let times = ["client", "sleep"].map(|state| seen.of("connection", state).0);
        assert!(times.iter().sum::<u64>() > OPERATIONS * 30_000_000, "{seen:?}");
        assert_eq!(seen.of("other", "client"), (0, 0), "{seen:?}");
        drop((watched, server));
        client.join().unwrap();
    }
}

/// The states of a thread are exclusive and complete.
#[test]
fn sum_of_the_states_is_the_time() {
    let (_client, server) = tcp_pair();
    server.set_read_timeout(Some(NAP)).unwrap();
    let mut watched = Watched::new(|| {
        for _ in 0..5 {
            receive(server.as_raw_fd());
            nap();
            futex_nap();
        }
    });
    repeat(|| {
        let began = Instant::now();
        watched.child.round();
        let before = watched.read();
        // The last period before this reading started after `began`, and at most now.
        let inner = Instant::now();
        watched.child.go();
        watched.child.finish();
        let least = inner.elapsed();
        let seen = watched.since(&before);
        let most = began.elapsed();
        let sum = Duration::from_nanos(seen.sum("time_ns"));
        assert!(sum <= most, "{sum:?} > {most:?}: {seen:?}");
        // The child may have reported its end shortly before it sleeps.
        if sum + Duration::from_millis(2) >= least {
            return Ok(());
        }
        Err((sum, least, seen))
    });
}

#[test]
fn futex_after_the_end_of_the_connection_is_no_connection() {
    let mut watched = Watched::new(|| {
        let mut pair = [0; 2];
        // SAFETY: the array has two elements; the timeout lives until the call returns.
        unsafe {
            libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr());
            poll_nap(&pair[..1], libc::POLLIN);
            futex_nap();
            libc::close(pair[0]);
            libc::close(pair[1]);
        }
        futex_nap();
        futex_nap();
    });
    let seen = watched.once(|seen| seen.periods(["client", "lock", "no connection"]) == [1, 1, 2]);
    assert!(seen.of("connection", "no connection").0 > 38_000_000, "{seen:?}");
}

/// A server's thread closes its connection, and another thread accepts the next one before the first
/// thread waits for work.
#[test]
fn descriptor_that_another_connection_has_now_is_no_connection() {
    let mut watched = Watched::new(|| {
        let (mut ended, mut next) = ([0; 2], [0; 2]);
        // SAFETY: the arrays have two elements each.
        unsafe {
            libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ended.as_mut_ptr());
            poll_nap(&ended[..1], libc::POLLIN);
            libc::close(ended[0]);
            libc::close(ended[1]);
            libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, next.as_mut_ptr());
        }
        assert_eq!(ended, next);
        futex_nap();
        poll_nap(&next[..1], libc::POLLIN);
        futex_nap();
        // SAFETY: both are open.
        unsafe {
            libc::close(next[0]);
            libc::close(next[1]);
        }
    });
    watched.once(|seen| seen.periods(["client", "no connection", "lock"]) == [2, 1, 1]);
}

#[test]
fn threads_without_a_connection_are_others() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_read_timeout(Some(NAP)).unwrap();
    let (_near, far) = UnixStream::pair().unwrap();
    let mut watched = Watched::new(|| {
        poll_nap(&[listener.as_raw_fd()], libc::POLLIN);
        poll_nap(&[far.as_raw_fd(), listener.as_raw_fd()], libc::POLLIN);
        receive(datagrams.as_raw_fd());
        futex_nap();
        nap();
    });
    let seen =
        watched.once(|seen| ["network", "lock", "sleep"].map(|state| seen.of("other", state).1) == [3, 1, 1]);
    assert!(seen.is_all_of_others(), "{seen:?}");
}

#[test]
fn other_sockets_of_a_connection_thread_are_network() {
    let (_near, far) = tcp_pair();
    let (_client, server) = tcp_pair();
    let mut watched = Watched::new(|| {
        poll_nap(&[server.as_raw_fd()], libc::POLLIN);
        poll_nap(&[far.as_raw_fd()], libc::POLLIN);
    });
    watched.once(|seen| seen.periods(["client", "network"]) == [1, 1]);
}

/// The probe is in the process that made this connection.
#[test]
fn connection_of_the_recorder_is_not_counted() {
    let (_recorder, server) = UnixStream::pair().unwrap();
    let mut watched = Watched::new(|| poll_nap(&[server.as_raw_fd()], libc::POLLIN));
    let seen = watched.once(|seen| seen.of("other", "network").1 == 1);
    assert!(seen.is_all_of_others(), "{seen:?}");
}

#[test]
fn client_that_does_not_read_makes_the_server_wait_in_sending() {
    let (_client, server) = tcp_pair();
    server.set_read_timeout(Some(NAP)).unwrap();
    server.set_write_timeout(Some(NAP)).unwrap();
    let descriptor = server.as_raw_fd();
    let data = [0u8; 65536];
    let mut watched = Watched::new(|| {
        receive(descriptor);
        // SAFETY: the data live until the call returns.
        while unsafe { libc::send(descriptor, data.as_ptr().cast(), data.len(), 0) } > 0 {}
        poll_nap(&[descriptor], libc::POLLOUT);
    });
    let seen = watched.once(|seen| seen.periods(["client", "sending"]) == [1, 2]);
    assert!(seen.of("connection", "sending").0 > 38_000_000, "{seen:?}");
}

/// Stops a server for 20 ms while it waits for its client, which sends 20 ms later.
#[cfg(target_arch = "x86_64")]
fn stopped(stop: impl Fn(i32), resume: impl Fn(i32), group: Option<&ControlGroup>) {
    let (mut client, server) = tcp_pair();
    let descriptor = server.as_raw_fd();
    let mut watched = Watched::new(|| {
        poll(&[descriptor], libc::POLLIN, 60_000);
        receive(descriptor);
    });
    let pid = watched.child.pid;
    if let Some(group) = group {
        group.add(pid);
    }
    repeat(|| {
        let before = watched.read();
        watched.child.go();
        until("it polls", || watched.child.waits_in(libc::SYS_poll));
        stop(pid);
        thread::sleep(NAP);
        resume(pid);
        until("it polls again", || {
            watched.child.waits_in(libc::SYS_restart_syscall)
        });
        thread::sleep(NAP);
        client.write_all(&[0]).unwrap();
        watched.child.finish();
        let seen = watched.since(&before);
        // The kernel does not call the tracepoint at every switch.
        if seen.periods(["client", "stopped"]) != [2, 1] {
            return Err(seen);
        }
        assert!(seen.of("connection", "stopped").0 > 15_000_000, "{seen:?}");
        assert!(seen.of("connection", "client").0 > 15_000_000, "{seen:?}");
        assert_eq!(seen.periods(["other"]), [0], "{seen:?}");
        Ok(())
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn thread_stopped_by_a_signal_waits_for_its_client_again() {
    // SAFETY: the child has not been reaped.
    let send = |pid, signal| assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    stopped(
        |pid| send(pid, libc::SIGSTOP),
        |pid| send(pid, libc::SIGCONT),
        None,
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn frozen_thread_waits_for_its_client_again() {
    let group = ControlGroup::version_2();
    let freeze = |value| group.write("cgroup.freeze", value);
    stopped(|_| freeze("1"), |_| freeze("0"), Some(&group));
}

const PAGES: usize = 64;

/// Pages of a mapped file that are not in memory.
#[test]
fn read_of_a_mapped_file_is_a_page_fault() {
    let mut file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.write_all(&[1; PAGES * BLOCK]).unwrap();
    file.sync_all().unwrap();
    let descriptor = file.as_raw_fd();
    let mut watched = Watched::new(|| {
        // SAFETY: the pages are read while they are mapped.
        unsafe {
            libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED);
            let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
            let pages = libc::mmap(null_mut(), PAGES * BLOCK, protection, flags, descriptor, 0);
            for page in 0..PAGES {
                pages.cast::<u8>().add(page * BLOCK).read_volatile();
            }
            libc::munmap(pages, PAGES * BLOCK);
        }
    });
    let seen = watched.once(|seen| seen.of("other", "page fault").1 > 0);
    assert_eq!(seen.of("other", "read other file"), (0, 0), "{seen:?}");
}

/// The thread writes to the page cache, and reclaims the pages that it wrote before.
#[test]
fn write_beyond_the_memory_of_a_group_waits_for_memory() {
    let group = ControlGroup::new(
        "memory",
        &[("memory.limit_in_bytes", "8M")],
        &[("memory.high", "8M")],
    );
    let file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (descriptor, data) = (file.as_raw_fd(), vec![1u8; 1 << 16]);
    let mut watched = Watched::new(|| {
        for part in 0..512 {
            // SAFETY: the data live until the call returns.
            unsafe { libc::pwrite(descriptor, data.as_ptr().cast(), data.len(), part << 16) };
        }
    });
    group.add(watched.child.pid);
    watched.once(|seen| seen.of("other", "memory").0 > 1_000_000);
    drop(watched);
}

/// Files by the names of MySQL and MariaDB.
const FILES: [(&str, &str); 13] = [
    ("#ib_redo1", "redo log"),
    ("ib_logfile0", "redo log"),
    ("binlog.000001", "binary log"),
    ("t.ibd", "tablespace"),
    ("customer.ibd", "tablespace"),
    ("ibdata1", "tablespace"),
    ("t.MYD", "tablespace"),
    ("#ib_16384_0.dblwr", "doublewrite"),
    ("undo_001", "undo"),
    ("ibtmp1", "temporary"),
    ("temp_1.ibt", "temporary"),
    ("#sql-1", "temporary"),
    ("aria_log.00000001", "other file"),
];

const BLOCK: usize = 4096;

#[repr(align(4096))]
struct Block([u8; BLOCK]);

/// Reads, writes and flushes a file without the page cache.
fn use_file(file: &File) {
    let mut block = Block([1; BLOCK]);
    // SAFETY: the block lives until the calls return.
    unsafe {
        libc::pwrite(file.as_raw_fd(), block.0.as_ptr().cast(), BLOCK, 0);
        libc::fsync(file.as_raw_fd());
        libc::pread(file.as_raw_fd(), block.0.as_mut_ptr().cast(), BLOCK, 0);
    }
}

#[test]
fn waits_for_files_are_split_by_direction_and_name() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let files = FILES.map(|(name, kind)| {
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).read(true).write(true);
        let file = options.custom_flags(libc::O_DIRECT).open(dir.path().join(name));
        (file.unwrap(), kind)
    });
    let mut options = OpenOptions::new();
    let flags = libc::O_DIRECT | libc::O_TMPFILE;
    let nameless = options
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(dir.path());
    for (file, kind) in files.iter().chain([&(nameless.unwrap(), "temporary")]) {
        let mut watched = Watched::new(|| use_file(file));
        let states = ["write", "flush", "read"].map(|direction| format!("{direction} {kind}"));
        let seen = watched.once(|seen| states.iter().all(|state| seen.of("other", state).1 > 0));
        let all = seen.0.iter().filter(|(entity, row)| {
            let state = entity.strip_prefix("server other ").unwrap_or_default();
            let is_file = ["write ", "flush ", "read "]
                .iter()
                .any(|verb| state.starts_with(verb));
            is_file && row["count"] > 0
        });
        // An update of the file's metadata is a wait in the same call.
        assert_eq!(all.count(), 3, "{seen:?}");
    }
}
