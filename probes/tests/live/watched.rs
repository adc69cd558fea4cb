//! A child that the probe `ebpf_states` watches.

use std::fs;
use std::rc::Rc;

use loadprint_probes::ebpf::Shared;

use crate::children::Child;
use crate::readings::Live;
use crate::readings::Reading;
use crate::readings::between;
use crate::readings::repeat;
use crate::readings::watching;

/// The probe, and a child that it watches as role `server`.
pub struct Watched {
    pub child: Child,
    probe: Live,
}

/// The increase of the rows of the child between two readings.
#[derive(Debug)]
pub struct Seen(pub Reading);

impl Seen {
    /// Time (ns) and periods of a class of threads in a state.
    pub fn of(&self, threads: &str, state: &str) -> (u64, u64) {
        let row = self.0.get(&format!("server {threads} {state}"));
        row.map_or((0, 0), |row| (row["time_ns"], row["count"]))
    }

    /// The periods of connection threads in each state.
    pub fn periods<const STATES: usize>(&self, states: [&str; STATES]) -> [u64; STATES] {
        states.map(|state| self.of("connection", state).1)
    }

    pub fn sum(&self, column: &str) -> u64 {
        self.0.values().map(|row| row[column]).sum()
    }

    /// True if no thread has a connection.
    pub fn is_all_of_others(&self) -> bool {
        self.0.keys().all(|entity| entity.starts_with("server other "))
    }
}

impl Watched {
    /// The child exists before the probe, and its first round ends after it.
    pub fn new(work: impl Fn()) -> Self {
        Self::sharing(Shared::default(), work)
    }

    pub fn sharing(shared: Shared, work: impl Fn()) -> Self {
        let child = Child::new(work);
        let options = watching(&[format!("server={}", child.pid)]);
        let probe = Live::sharing("ebpf_states", &options, &Rc::new(shared));
        Self { child, probe }
    }

    /// The times of the child, which is asleep.
    pub fn read(&mut self) -> Reading {
        self.child.until_asleep();
        let reading = self.probe.read();
        for (entity, row) in &reading {
            let on_cpu = entity.ends_with(" on CPU");
            let has = ["user_ns", "system_ns"].map(|column| row.numbers.contains_key(column));
            assert_eq!(has, [on_cpu; 2], "{entity}");
        }
        reading
    }

    pub fn since(&mut self, before: &Reading) -> Seen {
        let after = self.read();
        let increase = |entity: &String| (entity.clone(), between(before, &after, entity));
        Seen(after.keys().map(increase).collect())
    }

    /// Nanoseconds on the CPU (`/proc/PID/schedstat`).
    fn on_cpu_ns(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.child.pid)).unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }

    /// Repeats a round of work until `is_complete` accepts its times: the kernel does not call
    /// the tracepoint at every switch (`sched.rs`), and a busy host delays a thread until it need
    /// not wait.
    pub fn once(&mut self, is_complete: impl Fn(&Seen) -> bool) -> Seen {
        self.child.round();
        repeat(|| {
            let (before, on_cpu) = (self.read(), self.on_cpu_ns());
            self.child.round();
            let seen = self.since(&before);
            let on_cpu = self.on_cpu_ns() - on_cpu;
            let ours = seen.of("connection", "on CPU").0 + seen.of("other", "on CPU").0;
            assert!(ours <= on_cpu, "{seen:?}\nkernel: {on_cpu}");
            if ours == on_cpu && is_complete(&seen) {
                return Ok(seen);
            }
            Err((seen, on_cpu))
        })
    }
}
