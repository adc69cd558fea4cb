//! Compares the scheduler probes with processes that block a known number of times.
//!
//! The counts must equal those of the kernel: /proc/PID/status and /proc/PID/schedstat.

use std::fs;
use std::io::pipe;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::prelude::*;
use rustix::thread::futex;

/// The two probes of the scheduler's programs.
struct Sched {
    time: Live,
    switches: Live,
}

/// The rows of one role: of its states by their names, and of its switches by an empty name.
#[derive(Debug, PartialEq)]
struct Seen(Reading);

impl Seen {
    fn periods<const STATES: usize>(&self, states: [&str; STATES]) -> [u64; STATES] {
        states.map(|state| self.0[state].count())
    }

    fn sum_ns(&self, state: &str) -> u64 {
        self.0[state]["sum_ns"]
    }

    fn switches(&self, column: &str) -> u64 {
        self.0[""][column]
    }

    /// Periods off the CPU, over all reasons.
    fn off_cpu(&self) -> u64 {
        let reasons = self.0.iter().filter(|(state, _)| *state != "run queue");
        reasons.map(|(_, row)| row.count()).sum()
    }

    fn since(&self, before: &Self) -> Self {
        let increase = |state: &String| (state.clone(), between(&before.0, &self.0, state));
        Self(self.0.keys().map(increase).collect())
    }
}

impl Sched {
    fn watching(processes: &[String]) -> Self {
        Self::sharing(Shared::default(), processes)
    }

    fn sharing(shared: Shared, processes: &[String]) -> Self {
        Self::of(&Rc::new(shared), &watching(processes))
    }

    fn of(shared: &Rc<Shared>, options: &Options) -> Self {
        Self {
            time: Live::sharing("ebpf_sched", options, shared),
            switches: Live::sharing("ebpf_switches", options, shared),
        }
    }

    fn read(&mut self, role: &str) -> Seen {
        let rows = self.time.read().into_iter().chain(self.switches.read());
        let of_role = rows.filter_map(|(entity, row)| {
            let state = entity.strip_prefix(role)?;
            Some((state.trim_start().to_owned(), row))
        });
        Seen(of_role.collect())
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
        let [voluntary, involuntary] = ["voluntary", "involuntary"].map(|column| seen.switches(column));
        let [waits] = seen.periods(["run queue"]);
        let ours = [voluntary, involuntary, seen.sum_ns("run queue"), waits];
        let kernels = [0, 1, 2, 3].map(|place| now.counts[place] - before.1.counts[place]);
        let more = ours.iter().zip(kernels).any(|(ours, kernels)| *ours > kernels);
        assert!(!more, "{seen:?}\nkernel: {kernels:?}");
        assert!(seen.off_cpu() <= kernels[3], "{seen:?}\nkernel: {kernels:?}");
        (ours == kernels && seen.off_cpu() == voluntary).then_some(seen)
    }

    /// Runs the work of a child until one complete round is counted.
    fn once(&mut self, child: &mut Child, role: &str) -> Seen {
        eventually("a round in which the kernel does not count more", || {
            let before = self.before(child, role);
            child.round();
            self.agrees(child, role, &before)
        })
    }

    /// The counts of a sleeping child, once they no longer change.
    fn before(&mut self, child: &Child, role: &str) -> (Seen, Kernel) {
        eventually("the child sleeps", || {
            let first = child.kernel();
            let seen = self.read(role);
            (first.is_asleep && first == child.kernel()).then_some((seen, first))
        })
    }
}

/// A child that has switched at least once after the programs were attached. Its earlier switches
/// are not counted, which the assertion checks.
fn watched(shared: Shared, work: impl Fn()) -> (Child, Sched) {
    let mut child = Child::new(work);
    let mut sched = Sched::sharing(shared, &[format!("load={}", child.pid)]);
    assert_eq!(sched.read("load").off_cpu(), 0);
    child.round();
    (child, sched)
}

/// The second time without task storage, as on Linux 5.10.
#[test]
fn sleeps_are_counted_and_timed() {
    for shared in [Shared::default(), Shared::without_task_storage()] {
        let (mut child, mut sched) = watched(shared, || (0..23).for_each(|_| nap()));
        let began = Instant::now();
        let seen = sched.once(&mut child, "load");
        let most = began.elapsed().as_nanos() as u64;
        // One period is the wait on the pipe.
        assert_eq!(seen.periods(["sleep", "other"]), [23, 1], "{seen:?}");
        // A sleep lasts 20 ms from its call; the thread leaves the CPU a few microseconds later.
        let asleep = 23 * 19_000_000..most;
        assert!(asleep.contains(&seen.sum_ns("sleep")), "{seen:?}");
    }
}

/// The values of two children in a round that is counted completely.
fn both(mut children: [Child; 2], round: impl Fn(&mut [Child; 2])) -> [Seen; 2] {
    let roles = ["one", "two"];
    let watched = [0, 1].map(|place| format!("{}={}", roles[place], children[place].pid));
    let mut sched = Sched::watching(&watched);
    // Ends the periods that started before the programs were attached.
    round(&mut children);
    eventually("a complete round is counted", || {
        let before = [0, 1].map(|place| sched.before(&children[place], roles[place]));
        round(&mut children);
        let [one, two] = [0, 1].map(|place| sched.agrees(&children[place], roles[place], &before[place]));
        Some([one?, two?])
    })
}

const ROUNDS: u32 = 1000;

/// Wakes the other process and sleeps until it is woken. On one CPU, where neither preempts the
/// other, both block in every round.
fn ping_pong(own: &AtomicU32, other: &AtomicU32) {
    let shared = futex::Flags::empty();
    alone_on_one_cpu();
    for round in 0..ROUNDS {
        let _woken = futex::wake(other, shared, 1);
        own.store(round, Ordering::Relaxed);
        let _end = futex::wait(own, shared, round, None);
    }
    let _woken = futex::wake(other, shared, 1);
}

#[test]
fn thousand_waits_between_two_roles_are_counted() {
    let words = shared_numbers();
    let child = |own: usize, other: usize| Child::new(move || ping_pong(&words[own], &words[other]));
    let seen = both([child(0, 64), child(64, 0)], |[ping, pong]| {
        // It sleeps in its futex before the other process starts.
        pong.go();
        until("it waits for the other one", || pong.waits_in(libc::SYS_futex));
        ping.go();
        ping.finish();
        pong.finish();
    });
    for seen in seen {
        assert_eq!(seen.periods(["lock", "other"]), [ROUNDS.into(), 1], "{seen:?}");
        assert_eq!(seen.switches("migrations"), 0, "{seen:?}");
    }
}

#[test]
fn yields_are_involuntary() {
    let yields = || {
        alone_on_one_cpu();
        (0..500).for_each(|_| rustix::thread::sched_yield());
    };
    let seen = both([Child::new(yields), Child::new(yields)], |children| {
        children.iter_mut().for_each(Child::go);
        children.iter_mut().for_each(Child::finish);
    });
    for seen in seen {
        let [other, waits] = seen.periods(["other", "run queue"]);
        assert_eq!((seen.switches("voluntary"), other), (1, 1), "{seen:?}");
        assert_eq!(waits, 1 + seen.switches("involuntary"), "{seen:?}");
    }
}

#[test]
fn reads_of_a_file_block_on_the_device_and_of_a_socket_on_the_network() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = fs::File::create(dir.path().join("file")).unwrap();
    let (_near, far) = UnixStream::pair().unwrap();
    far.set_read_timeout(Some(NAP)).unwrap();
    let (wait, _open) = pipe().unwrap();
    let byte = 0u8;
    let (mut child, mut sched) = watched(Shared::default(), || {
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
                poll(&[wait.as_raw_fd()], libc::POLLIN, 20);
            }
        }
    });
    let seen = sched.once(&mut child, "load");
    assert_eq!(
        seen.periods(["network", "other", "lock"]),
        [3 * 7, 1, 0],
        "{seen:?}"
    );
    assert!(seen.periods(["block I/O"]) > [0], "{seen:?}");
}

#[test]
fn counts_continue_after_a_server_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let naps = || (0..5).for_each(|_| nap());
    let mut sched = Sched::watching(&[format!("server=@{}", pid_file.display())]);
    assert_eq!(sched.read("server").switches("voluntary"), 0);
    let mut last = [0];
    for _ in 0..3 {
        let mut server = Child::new(naps);
        fs::write(&pid_file, server.pid.to_string()).unwrap();
        // The reading that finds the process is the last one that does not count it.
        until("it is found", || {
            server.round();
            sched.read("server").periods(["sleep"]) > last
        });
        let seen = sched.once(&mut server, "server");
        assert_eq!(seen.periods(["sleep"]), [5], "{seen:?}");
        last = sched.read("server").periods(["sleep"]);
        assert!(last >= [5], "earlier counts remain");
    }
}

#[test]
fn later_process_with_the_same_id_is_not_watched() {
    let mut first = Child::new(nap);
    let pid = first.pid;
    let mut sched = Sched::watching(&[format!("server={pid}")]);
    first.round();
    drop(first);
    // Processes are looked up once a tick, and ticks are further apart than this.
    nap();
    let ended = sched.read("server");
    assert!(ended.periods(["sleep"]) <= [1], "{ended:?}");
    let mut second = Child::numbered(pid, || (0..23).for_each(|_| nap()));
    assert_eq!(second.pid, pid);
    let all_before = sched.read("all");
    second.round();
    assert_eq!(sched.read("server"), ended);
    assert!(sched.read("all").since(&all_before).switches("voluntary") > 0);
}

#[test]
fn processes_of_a_control_group_have_the_role() {
    let group = ControlGroup::new("cpu", &[], &[]);
    let mut sched = Sched::watching(&[format!("server=cgroup:{}", group.0.display())]);
    let mut inside = Child::new(nap);
    let mut outside = Child::new(|| (0..7).for_each(|_| nap()));
    group.add(inside.pid);
    // It is watched from the next reading.
    until("it is found", || {
        inside.round();
        sched.read("server").periods(["sleep"]) > [0]
    });
    outside.go();
    let seen = sched.once(&mut inside, "server");
    outside.finish();
    assert_eq!(seen.periods(["sleep", "other"]), [1, 1], "{seen:?}");
}

#[test]
fn rows_of_the_host_need_no_watched_process() {
    let mut sched = Sched::watching(&[]);
    let before = sched.read("all");
    let mut child = Child::new(nap);
    child.round();
    until("its switches are counted", || {
        let seen = sched.read("all").since(&before);
        seen.periods(["run queue"]) >= [2] && seen.switches("voluntary") >= 2
    });
}

/// Closed, the programs are not called; a wait that began before, or while the gate was closed, adds nothing at
/// the switch that ends it.
#[test]
fn nothing_is_counted_of_the_time_in_which_the_gate_is_closed() {
    const CLOSED: Duration = Duration::from_millis(200);
    let mut child = Child::new(nap);
    let options = watching(&[format!("load={}", child.pid)]);
    let shared = Rc::new(Shared::default());
    let mut sched = Sched::of(&shared, &options);
    let mut states = Live::sharing("ebpf_states", &options, &shared);
    let mut programs = Live::sharing("ebpf_programs", &options, &shared);
    child.round();
    child.until_asleep();

    shared.set_gate(false).unwrap();
    let (before, in_states, calls) = (sched.read("load"), states.read(), programs.read());
    for _ in 0..10 {
        child.round();
    }
    child.until_asleep();
    assert_eq!(sched.read("load"), before);
    assert_eq!(states.read(), in_states);
    assert_eq!(
        between(&calls, &programs.read(), "sched sched_switch all")["calls"],
        0
    );

    // Its wait for the next round lasts until the gate is open again.
    shared.set_gate(true).unwrap();
    child.round();
    child.until_asleep();
    let (before, in_states) = (sched.read("load"), states.read());
    shared.set_gate(false).unwrap();
    thread::sleep(CLOSED);
    shared.set_gate(true).unwrap();
    child.round();
    child.until_asleep();
    let seen = sched.read("load").since(&before);
    assert!(seen.off_cpu() >= 1, "{seen:?}");
    let closed = u64::try_from(CLOSED.as_nanos()).unwrap();
    let times = seen.0.values().filter_map(|row| row.numbers.get("sum_ns"));
    assert!(times.sum::<u64>() < closed, "{seen:?}");
    let now = states.read();
    let times = now
        .keys()
        .map(|state| between(&in_states, &now, state)["time_ns"]);
    assert!(times.sum::<u64>() < closed, "{now:?}");
}
