//! Compares the scheduler probes with processes that block a known number of times.
//!
//! The counts must equal those of the kernel: /proc/PID/status and /proc/PID/schedstat.

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::io::pipe;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::process;
use std::ptr::null;
use std::ptr::null_mut;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use crate::children::Child;
use crate::children::Kernel;
use crate::children::alone_on_one_cpu;
use crate::children::nap;
use crate::children::until;
use loadprint_probes::Host;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_probes::ebpf::Shared;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;

/// The two probes of the scheduler's programs.
struct Sched {
    time: Box<dyn Probe>,
    switches: Box<dyn Probe>,
    rows: Rows,
}

/// The values of one role: sum and number of periods in each state, and the counts.
#[derive(Clone, Debug, Default)]
struct Seen {
    states: BTreeMap<String, (u64, u64)>,
    voluntary: u64,
    involuntary: u64,
    migrations: u64,
}

impl Seen {
    fn periods(&self, state: &str) -> u64 {
        self.states[state].1
    }

    fn sum_ns(&self, state: &str) -> u64 {
        self.states[state].0
    }

    /// Periods off the CPU, over all reasons.
    fn off_cpu(&self) -> u64 {
        let reasons = self.states.iter().filter(|(state, _)| *state != "run queue");
        reasons.map(|(_, (_, periods))| periods).sum()
    }

    fn since(&self, before: &Self) -> Self {
        let states = self.states.iter().map(|(state, (sum, periods))| {
            let before = before.states[state];
            (state.clone(), (sum - before.0, periods - before.1))
        });
        Self {
            states: states.collect(),
            voluntary: self.voluntary - before.voluntary,
            involuntary: self.involuntary - before.involuntary,
            migrations: self.migrations - before.migrations,
        }
    }
}

impl Sched {
    fn watching(processes: &[String]) -> Self {
        Self::sharing(Shared::default(), processes)
    }

    fn sharing(shared: Shared, processes: &[String]) -> Self {
        let options = Options {
            processes: processes.iter().map(|process| process.parse().unwrap()).collect(),
            ..Options::default()
        };
        let shared = Rc::new(shared);
        let open = |name| {
            common::entry(name)
                .open(&Host::default(), &options, &shared)
                .unwrap()
        };
        Self {
            time: open("ebpf_sched"),
            switches: open("ebpf_switches"),
            rows: Rows::default(),
        }
    }

    fn read(&mut self, role: &str) -> Seen {
        let mut seen = Seen::default();
        let rows = &mut self.rows;
        common::read(self.time.as_mut(), rows).unwrap();
        for row in 0..rows.len() {
            let entity: Vec<_> = rows.entity(row).map(String::from_utf8_lossy).collect();
            let (Value::Bits(sum), Value::List(buckets)) = (rows.value(row, 0, 2), rows.value(row, 1, 2))
            else {
                panic!("not a histogram");
            };
            if entity[0] == role {
                seen.states
                    .insert(entity[1].to_string(), (sum, buckets.iter().sum()));
            }
        }
        common::read(self.switches.as_mut(), rows).unwrap();
        let row = (0..rows.len())
            .find(|row| rows.entity(*row).next() == Some(role.as_bytes()))
            .unwrap();
        let count = |column| match rows.value(row, column, 3) {
            Value::Bits(count) => count,
            other => panic!("{other:?}"),
        };
        [seen.voluntary, seen.involuntary, seen.migrations] = [count(0), count(1), count(2)];
        seen
    }

    /// The values of `role` since `before` if they equal the kernel's; `None` if the kernel counted
    /// more. The probe must never count more than the kernel.
    ///
    /// The kernel does not call the tracepoints at every switch: sometimes, and in bursts, a
    /// program on sched_switch (also that of bpftrace) sees tasks leave a CPU that it never saw
    /// start there. The caller therefore repeats a round of work. A program that counts
    /// wrongly never passes.
    fn agrees(&mut self, child: &Child, role: &str, before: &(Seen, Kernel)) -> Option<Seen> {
        let (seen, now) = self.before(child, role);
        let seen = seen.since(&before.0);
        let waits = (seen.sum_ns("run queue"), seen.periods("run queue"));
        let ours = [seen.voluntary, seen.involuntary, waits.0, waits.1];
        let kernels = [
            now.voluntary - before.1.voluntary,
            now.involuntary - before.1.involuntary,
            now.waited_ns - before.1.waited_ns,
            now.timeslices - before.1.timeslices,
        ];
        let more = ours.iter().zip(kernels).any(|(ours, kernels)| *ours > kernels);
        assert!(!more, "{seen:?}\nkernel: {kernels:?}");
        assert!(seen.off_cpu() <= kernels[3], "{seen:?}\nkernel: {kernels:?}");
        (ours == kernels && seen.off_cpu() == seen.voluntary).then_some(seen)
    }

    /// Runs the work of a child until one complete round is counted.
    fn once(&mut self, child: &mut Child, role: &str) -> Seen {
        let deadline = Instant::now() + Duration::from_secs(300);
        loop {
            let before = self.before(child, role);
            child.go();
            child.finish();
            if let Some(seen) = self.agrees(child, role, &before) {
                return seen;
            }
            assert!(Instant::now() < deadline, "the kernel counts more in every round");
        }
    }

    /// The counts of a sleeping child, once they no longer change.
    fn before(&mut self, child: &Child, role: &str) -> (Seen, Kernel) {
        let still = |one: &Kernel, other: &Kernel| {
            one.is_asleep
                && other.is_asleep
                && one.voluntary == other.voluntary
                && one.timeslices == other.timeslices
        };
        loop {
            let first = child.kernel();
            let seen = self.read(role);
            if still(&first, &child.kernel()) {
                return (seen, first);
            }
        }
    }
}

/// A child that has switched at least once after the programs were attached. Its earlier switches
/// are not counted, which the first assertion checks.
fn watched(work: impl Fn()) -> (Child, Sched) {
    let mut child = Child::new(work);
    let mut sched = Sched::watching(&[format!("load={}", child.pid)]);
    assert_eq!(sched.read("load").off_cpu(), 0);
    child.go();
    child.finish();
    until("it sleeps again", || child.kernel().is_asleep);
    (child, sched)
}

#[test]
fn sleeps_are_counted_and_timed() {
    let (mut child, mut sched) = watched(|| (0..23).for_each(|_| nap()));
    let began = Instant::now();
    let seen = sched.once(&mut child, "load");
    let most = began.elapsed().as_nanos() as u64;
    // One period is the wait on the pipe.
    assert_eq!(
        (seen.periods("sleep"), seen.periods("other")),
        (23, 1),
        "{seen:?}"
    );
    assert!(
        // A sleep lasts 20 ms from its call; the thread leaves the CPU a few microseconds later.
        (23 * 19_000_000..most).contains(&seen.sum_ns("sleep")),
        "{seen:?}"
    );
}

/// Without task storage, as on Linux 5.10: the same work gives the same counts.
#[test]
fn sleeps_are_counted_without_task_storage() {
    let mut child = Child::new(|| (0..23).for_each(|_| nap()));
    let mut sched = Sched::sharing(Shared::without_task_storage(), &[format!("load={}", child.pid)]);
    child.go();
    child.finish();
    until("it sleeps again", || child.kernel().is_asleep);
    let seen = sched.once(&mut child, "load");
    assert_eq!(
        (seen.periods("sleep"), seen.periods("other")),
        (23, 1),
        "{seen:?}"
    );
}

fn futex(word: *mut u32, operation: i32, value: u32) {
    // SAFETY: the word is in shared memory that outlives the processes.
    unsafe {
        libc::syscall(libc::SYS_futex, word, operation, value, null::<libc::timespec>());
    }
}

fn shared_words() -> *mut u32 {
    // SAFETY: a new mapping, which is never removed.
    let memory = unsafe {
        libc::mmap(
            null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(memory, libc::MAP_FAILED);
    memory.cast()
}

const ROUNDS: u32 = 1000;

/// Wakes the other process and sleeps until it is woken. On one CPU, where neither preempts the
/// other, both block in every round.
fn ping_pong(own: *mut u32, other: *mut u32) {
    alone_on_one_cpu();
    for round in 0..ROUNDS {
        futex(other, libc::FUTEX_WAKE, 1);
        // SAFETY: as above; only this process writes to its futex.
        unsafe { own.write_volatile(round) };
        futex(own, libc::FUTEX_WAIT, round);
    }
    futex(other, libc::FUTEX_WAKE, 1);
}

#[test]
fn thousand_waits_between_two_roles_are_counted() {
    let words = shared_words();
    // SAFETY: both words are in the page.
    let other = unsafe { words.add(64) };
    let mut ping = Child::new(|| ping_pong(words, other));
    let mut pong = Child::new(|| ping_pong(other, words));
    let mut sched = Sched::watching(&[format!("ping={}", ping.pid), format!("pong={}", pong.pid)]);
    let mut seen = None;
    // The first round ends the periods that started before the programs were attached.
    let mut rounds = 0;
    until("a complete round is counted", || {
        let (first, second) = (sched.before(&ping, "ping"), sched.before(&pong, "pong"));
        // It sleeps in its futex before the other process starts.
        pong.go();
        until("it waits for the other one", || pong.waits_in(libc::SYS_futex));
        ping.go();
        ping.finish();
        pong.finish();
        rounds += 1;
        if rounds > 1 {
            let first = sched.agrees(&ping, "ping", &first);
            seen = first.zip(sched.agrees(&pong, "pong", &second));
        }
        seen.is_some()
    });
    let seen = seen.unwrap();
    for seen in [&seen.0, &seen.1] {
        assert_eq!(
            (seen.periods("lock"), seen.periods("other")),
            (u64::from(ROUNDS), 1),
            "{seen:?}"
        );
        assert_eq!(seen.migrations, 0, "{seen:?}");
    }
}

#[test]
fn yields_are_involuntary() {
    let yields = || {
        alone_on_one_cpu();
        for _ in 0..500 {
            // SAFETY: sched_yield(2) has no arguments.
            unsafe { libc::sched_yield() };
        }
    };
    let mut one = Child::new(yields);
    let mut two = Child::new(yields);
    let mut sched = Sched::watching(&[format!("one={}", one.pid), format!("two={}", two.pid)]);
    let mut rounds = 0;
    until("a complete round is counted", || {
        let before = (sched.before(&one, "one"), sched.before(&two, "two"));
        one.go();
        two.go();
        one.finish();
        two.finish();
        rounds += 1;
        let first = (rounds > 1)
            .then(|| sched.agrees(&one, "one", &before.0))
            .flatten();
        let Some((first, second)) = first.zip(sched.agrees(&two, "two", &before.1)) else {
            return false;
        };
        for seen in [first, second] {
            assert_eq!((seen.voluntary, seen.periods("other")), (1, 1), "{seen:?}");
            assert_eq!(seen.periods("run queue"), 1 + seen.involuntary, "{seen:?}");
        }
        true
    });
}

#[test]
fn reads_of_a_file_block_on_the_device_and_of_a_socket_on_the_network() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = fs::File::create(dir.path().join("file")).unwrap();
    let (_near, far) = UnixStream::pair().unwrap();
    far.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (wait, _open) = pipe().unwrap();
    let byte = 0u8;
    let (mut child, mut sched) = watched(|| {
        // SAFETY: the descriptors are open, and the byte exists.
        unsafe {
            for _ in 0..23 {
                libc::pwrite(file.as_raw_fd(), (&raw const byte).cast(), 1, 0);
                libc::fsync(file.as_raw_fd());
            }
            for _ in 0..7 {
                // No data arrive: the calls end after the timeout of the socket.
                let mut buffer = 0u8;
                libc::read(far.as_raw_fd(), (&raw mut buffer).cast(), 1);
                libc::recv(far.as_raw_fd(), (&raw mut buffer).cast(), 1, 0);
                let mut poll = libc::pollfd {
                    fd: wait.as_raw_fd(),
                    events: libc::POLLIN,
                    revents: 0,
                };
                libc::poll(&raw mut poll, 1, 20);
            }
        }
    });
    let seen = sched.once(&mut child, "load");
    assert_eq!(
        (seen.periods("network"), seen.periods("other")),
        (3 * 7, 1),
        "{seen:?}"
    );
    assert!(
        seen.periods("block I/O") > 0 && seen.periods("lock") == 0,
        "{seen:?}"
    );
}

#[test]
fn counts_continue_after_a_server_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let naps = || (0..5).for_each(|_| nap());
    let mut sched = Sched::watching(&[format!("server=@{}", pid_file.display())]);
    assert_eq!(sched.read("server").voluntary, 0);
    let mut last = 0;
    for _ in 0..3 {
        let mut server = Child::new(naps);
        fs::write(&pid_file, server.pid.to_string()).unwrap();
        // The reading that finds the process is the last one that does not count it.
        until("it is found", || {
            server.go();
            server.finish();
            sched.read("server").periods("sleep") > last
        });
        let seen = sched.once(&mut server, "server");
        assert_eq!(seen.periods("sleep"), 5, "{seen:?}");
        last = sched.read("server").periods("sleep");
        assert!(last >= 5, "earlier counts remain");
    }
}

#[test]
fn later_process_with_the_same_id_is_not_watched() {
    let mut first = Child::new(nap);
    let pid = first.pid;
    let mut sched = Sched::watching(&[format!("server={pid}")]);
    first.go();
    first.finish();
    drop(first);
    // Processes are looked up once a tick, and ticks are further apart than this.
    nap();
    let ended = sched.read("server");
    assert!(ended.periods("sleep") <= 1, "{ended:?}");
    let mut second = Child::numbered(pid, || (0..23).for_each(|_| nap()));
    assert_eq!(second.pid, pid);
    let everybody = sched.read("all");
    second.go();
    second.finish();
    let now = sched.read("server");
    assert_eq!((now.voluntary, now.states), (ended.voluntary, ended.states));
    assert!(sched.read("all").since(&everybody).voluntary > 0);
}

/// A control group of either version, removed when the test ends.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let root = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .find(|words| words[2] == "cgroup2" || words[2] == "cgroup")
            .unwrap()[1]
            .to_owned();
        let path = Path::new(&root).join(format!("{name}-{}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn add(&self, pid: i32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn processes_of_a_control_group_have_the_role() {
    let group = Group::new("loadprint");
    let mut sched = Sched::watching(&[format!("server=cgroup:{}", group.0.display())]);
    let mut inside = Child::new(nap);
    let mut outside = Child::new(|| (0..7).for_each(|_| nap()));
    group.add(inside.pid);
    // It is watched from the next reading.
    until("it is found", || {
        inside.go();
        inside.finish();
        sched.read("server").periods("sleep") > 0
    });
    outside.go();
    let seen = sched.once(&mut inside, "server");
    outside.finish();
    assert_eq!((seen.periods("sleep"), seen.periods("other")), (1, 1), "{seen:?}");
}

#[test]
fn rows_of_the_host_need_no_watched_process() {
    let mut sched = Sched::watching(&[]);
    let before = sched.read("all");
    let mut child = Child::new(nap);
    child.go();
    child.finish();
    until("its switches are counted", || {
        let seen = sched.read("all").since(&before);
        seen.periods("run queue") >= 2 && seen.voluntary >= 2
    });
}
