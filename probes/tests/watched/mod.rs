//! A child that the probe `ebpf_states` watches.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test stops where it failed"
)]

use std::collections::BTreeMap;
use std::fs;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use loadprint_probes::Host;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_probes::ebpf::Shared;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;

use crate::children::Child;
use crate::children::until;
use crate::common;

/// The probe, and a child that it watches as role `server`.
pub struct Watched {
    pub child: Child,
    probe: Box<dyn Probe>,
}

/// Time (ns) and periods by class of threads and state.
#[derive(Clone, Debug, Default)]
pub struct Seen(pub BTreeMap<(String, String), (u64, u64)>);

impl Seen {
    pub fn of(&self, threads: &str, state: &str) -> (u64, u64) {
        let state = (threads.to_owned(), state.to_owned());
        self.0.get(&state).copied().unwrap_or_default()
    }

    /// The periods of connection threads in a state.
    pub fn periods(&self, state: &str) -> u64 {
        self.of("connection", state).1
    }

    pub fn sum_ns(&self) -> u64 {
        self.0.values().map(|(time, _)| time).sum()
    }

    pub fn since(&self, before: &Self) -> Self {
        let states = self.0.iter().map(|((threads, state), (time, count))| {
            let before = before.of(threads, state);
            (
                (threads.clone(), state.clone()),
                (time - before.0, count - before.1),
            )
        });
        Self(states.collect())
    }
}

impl Watched {
    /// The child exists before the probe, and its first round ends after it.
    pub fn new(work: impl Fn()) -> Self {
        Self::sharing(Shared::default(), work)
    }

    pub fn sharing(shared: Shared, work: impl Fn()) -> Self {
        let child = Child::new(work);
        let options = Options {
            processes: vec![format!("server={}", child.pid).parse().unwrap()],
            ..Options::default()
        };
        let probe = common::entry("ebpf_states")
            .open(&Host::default(), &options, &Rc::new(shared))
            .unwrap();
        Self { child, probe }
    }

    /// The times of the child, which is asleep.
    pub fn read(&mut self) -> Seen {
        until("it is asleep", || self.child.kernel().is_asleep);
        let mut rows = Rows::default();
        common::read(self.probe.as_mut(), &mut rows).unwrap();
        let row = |row| {
            let entity: Vec<_> = rows.entity(row).map(String::from_utf8_lossy).collect();
            assert_eq!(entity[0], "server");
            let number = |column| match rows.value(row, column, 4) {
                Value::Bits(number) => Some(number),
                _ => None,
            };
            let on_cpu = entity[2] == "on CPU";
            assert_eq!((number(2).is_some(), number(3).is_some()), (on_cpu, on_cpu));
            let value = (number(0).unwrap(), number(1).unwrap());
            ((entity[1].to_string(), entity[2].to_string()), value)
        };
        Seen((0..rows.len()).map(row).collect())
    }

    /// User and system time of all threads by the probe, in nanoseconds.
    pub fn user_and_system_ns(&mut self) -> u64 {
        let mut rows = Rows::default();
        common::read(self.probe.as_mut(), &mut rows).unwrap();
        let values = (0..rows.len()).flat_map(|row| [2, 3].map(|column| rows.value(row, column, 4)));
        values
            .map(|value| match value {
                Value::Bits(number) => number,
                _ => 0,
            })
            .sum()
    }

    /// Nanoseconds on the CPU (`/proc/PID/schedstat`).
    pub fn on_cpu_ns(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.child.pid)).unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }

    /// Repeats a round of work until `is_complete` accepts its times: the kernel does not call
    /// the tracepoint at every switch (`sched.rs`), and a busy host delays a thread until it need
    /// not wait.
    pub fn once(&mut self, is_complete: impl Fn(&Seen) -> bool) -> Seen {
        let deadline = Instant::now() + Duration::from_secs(120);
        self.child.go();
        self.child.finish();
        loop {
            let (before, on_cpu) = (self.read(), self.on_cpu_ns());
            self.child.go();
            self.child.finish();
            let seen = self.read().since(&before);
            let on_cpu = self.on_cpu_ns() - on_cpu;
            let ours = seen.of("connection", "on CPU").0 + seen.of("other", "on CPU").0;
            assert!(ours <= on_cpu, "{seen:?}\nkernel: {on_cpu}");
            if ours == on_cpu && is_complete(&seen) {
                return seen;
            }
            assert!(Instant::now() < deadline, "{seen:?}\nkernel: {on_cpu}");
        }
    }
}
