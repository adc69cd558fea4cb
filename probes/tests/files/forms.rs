//! Tests files whose format differs between kernels, and hosts that change between ticks. Values
//! are found by name, never by position.
//!
//! The texts are in `tests/corpus`; the expected numbers were read from them by hand.

use crate::children::Child;
use crate::common;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use loadprint_probes::Host;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_probes::ProbeEntry;
use loadprint_recording::rows::Rows;
use tempfile::TempDir;

/// A fake `/proc` of a few files, and a probe that reads it tick by tick.
struct Fake {
    proc: TempDir,
    entry: &'static ProbeEntry,
    probe: Box<dyn Probe>,
    rows: Rows,
}

fn text(form: &str) -> Vec<u8> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus")).join(form);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Fake {
    fn new(probe: &str, files: &[(&str, &str)]) -> Self {
        let proc = tempfile::tempdir().unwrap();
        for (file, form) in files {
            let path = proc.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text(form)).unwrap();
        }
        let entry = common::entry(probe);
        let host = Host::new(proc.path(), "/nonexistent");
        let probe = common::open(entry, &host, &common::options()).unwrap();
        Self {
            proc,
            entry,
            probe,
            rows: Rows::default(),
        }
    }

    fn put(&self, file: &str, text: &[u8]) {
        fs::write(self.proc.path().join(file), text).unwrap();
    }

    fn tick(&mut self) -> Vec<String> {
        common::read(self.probe.as_mut(), &mut self.rows).unwrap();
        common::words(self.entry, &self.rows)
    }
}

#[test]
fn disks_have_eleven_fifteen_or_seventeen_fields() {
    let mut fake = Fake::new("disk", &[("diskstats", "disk/linux-4.17")]);
    let first = "sda reads=100 read_merges=1 read_sectors=2000 read_ms=30 writes=40 write_merges=5 write_sectors=600 write_ms=70 \
                 in_flight=0 io_ms=80 weighted_ms=90";
    let discards = " discards=11 discard_merges=12 discard_sectors=13 discard_ms=14";
    assert_eq!(fake.tick(), [first]);
    fake.put("diskstats", &text("disk/linux-4.18"));
    assert_eq!(fake.tick(), [format!("{first}{discards}")]);
    // A disk with a slash in its name is added and removed.
    fake.put("diskstats", &text("disk/linux-5.5"));
    let with_flushes = format!("{first}{discards} flushes=15 flush_ms=16");
    let both = fake.tick();
    assert_eq!((both.len(), &both[1]), (2, &with_flushes));
    assert!(both[0].starts_with("cciss/c0d0 reads=1 "));
    fake.put("diskstats", &text("disk/two-fields-more"));
    assert_eq!(fake.tick(), [with_flushes]);
}

#[test]
fn cpus_have_four_states_or_more_than_the_known_ones() {
    let mut fake = Fake::new("cpu", &[("stat", "cpu/linux-2.4")]);
    assert_eq!(
        fake.tick(),
        [
            "0 user=1132 nice=34 system=1441 idle=11311718",
            "all user=1132 nice=34 system=1441 idle=11311718 ctxt=115315 intr=1462898 processes=86031"
        ]
    );
    fake.put("stat", &text("cpu/a-field-more"));
    assert_eq!(
        fake.tick()[0],
        "0 user=1 nice=2 system=3 idle=4 iowait=5 irq=6 softirq=7 steal=8 guest=9 guest_nice=10"
    );
    // A CPU goes online and offline.
    fake.put("stat", b"cpu  2 0 0 0\ncpu0 1 0 0 0\ncpu9 1 0 0 0\n");
    assert_eq!(fake.tick()[1], "9 user=1 nice=0 system=0 idle=0");
    fake.put("stat", b"cpu  2 0 0 0\ncpu0 1 0 0 0\n");
    assert_eq!(fake.tick().len(), 2);
}

#[test]
fn status_of_a_thread_that_did_not_run_is_reused() {
    let task = |file: &str| format!("4242/task/4243/{file}");
    let files = [
        ("4242/task/4243/status", "thread_status/linux-6.1-t0"),
        ("4242/task/4243/schedstat", "schedstat/linux-6.1-t0"),
    ];
    let mut fake = Fake::new("threads", &files);
    let status_text = |name: &str, switches: u32| {
        format!("Name:\t{name}\nvoluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t2\n")
    };
    let row = |name: &str, switches: u32, ran: [u32; 3]| {
        let [on_cpu, delay, slices] = ran;
        [format!(
            "server/4242/4243 comm=`{name}` voluntary_ctxt_switches={switches} nonvoluntary_ctxt_switches=2 \
             on_cpu_ns={on_cpu} run_delay_ns={delay} timeslices={slices}"
        )]
    };
    let mut tick = |name: &str, switches: u32, ran: [u32; 3]| {
        fake.put(&task("status"), status_text(name, switches).as_bytes());
        fake.put(
            &task("schedstat"),
            ran.map(|value| value.to_string()).join(" ").as_bytes(),
        );
        fake.tick()
    };
    assert_eq!(tick("a", 1, [5, 6, 7]), row("a", 1, [5, 6, 7]));
    // Impossible on a real kernel: it shows that `status` is not read until one of the three
    // counters changes.
    assert_eq!(tick("b", 2, [5, 6, 7]), row("a", 1, [5, 6, 7]));
    assert_eq!(tick("b", 2, [6, 6, 7]), row("b", 2, [6, 6, 7]));
    assert_eq!(tick("c", 3, [6, 7, 7]), row("c", 3, [6, 7, 7]));
    assert_eq!(tick("d", 4, [6, 7, 8]), row("d", 4, [6, 7, 8]));
    // A changed name is read after some samples.
    let changed = (0..20).find(|_| tick("e", 4, [6, 7, 8]) == row("e", 4, [6, 7, 8]));
    assert!(changed.is_some_and(|samples| samples > 0), "{changed:?}");
    // A kernel without counters does not show which thread ran.
    assert_eq!(tick("f", 5, [0, 0, 0]), row("f", 5, [0, 0, 0]));
    assert_eq!(tick("g", 6, [0, 0, 0]), row("g", 6, [0, 0, 0]));
}

#[test]
fn columns_of_snmp_and_netstat_are_found_by_name_in_any_order() {
    let files = [
        ("net/snmp", "snmp/linux-2.6.32"),
        ("net/netstat", "netstat/one-order"),
        ("net/sockstat", "sockstat/linux-2.6.12"),
    ];
    let mut fake = Fake::new("tcp", &files);
    let has = |lines: &[String], line: &str| {
        assert!(lines.iter().any(|other| other == line), "{line} not in {lines:?}")
    };
    let first = fake.tick();
    for line in [
        "Tcp.ActiveOpens value=11",
        "Tcp.RetransSegs value=7",
        "TcpExt.TCPTimeouts value=2",
        "TcpExt.DelayedACKs value=3",
    ] {
        has(&first, line);
    }
    assert!(
        !first
            .iter()
            .any(|line| line.starts_with("Tcp.InCsumErrors") || line.starts_with("sockstat.UDP.mem"))
    );
    fake.put("net/snmp", &text("snmp/another-order"));
    fake.put("net/netstat", &text("netstat/another-order"));
    let second = fake.tick();
    for line in [
        "Tcp.ActiveOpens value=12",
        "Tcp.RetransSegs value=8",
        "Tcp.NewOne value=99",
        "TcpExt.TCPTimeouts value=3",
        "TcpExt.DelayedACKs value=4",
        "IpExt.OutOctets value=21",
    ] {
        has(&second, line);
    }
}

#[test]
fn interrupts_have_any_number_of_cpus() {
    let mut fake = Fake::new("interrupts", &[("interrupts", "interrupts/one-cpu")]);
    let of = |lines: &[String], start: &str| lines.iter().find(|line| line.starts_with(start)).cloned();
    let one = fake.tick();
    assert_eq!(of(&one, "all/").unwrap(), "all/0 count=36");
    fake.put("interrupts", &text("interrupts/arm64"));
    let arm = fake.tick();
    assert_eq!(of(&arm, "all/2").unwrap(), "all/2 count=7");
    assert_eq!(
        of(&arm, "IPI0/server").unwrap(),
        format!("IPI0/server count={}", 12345 + 23456)
    );
    fake.put("interrupts", &text("interrupts/cpus-with-holes"));
    let holes = fake.tick();
    assert_eq!(of(&holes, "all/17").unwrap(), "all/17 count=30");
    // CPU 2 is the second column and belongs to the set of the load.
    assert_eq!(of(&holes, "24/load").unwrap(), "24/load count=0");
    assert!(of(&holes, "all/1 ").is_none() && of(&holes, "MIS/all").unwrap() == "MIS/all count=2");
}

#[test]
fn pressure_has_no_full_line_or_more_fields() {
    let files = [
        ("pressure/cpu", "pressure/linux-4.20-cpu"),
        ("pressure/io", "pressure/a-field-more"),
        ("pressure/memory", "pressure/linux-6.1-irq"),
    ];
    assert_eq!(
        Fake::new("pressure", &files).tick(),
        [
            "cpu/some total_us=14282241",
            "io/full total_us=0",
            "io/some total_us=5",
            "memory/full total_us=123",
        ]
    );
}

#[test]
fn softnet_has_no_number_of_the_cpu_or_a_cpu_is_offline() {
    let tick = |form: &str| Fake::new("softnet", &[("net/softnet_stat", form)]).tick();
    assert_eq!(
        tick("softnet/linux-5.4"),
        ["0 dropped=2 squeezed=16", "1 dropped=0 squeezed=4294967295"]
    );
    assert_eq!(
        tick("softnet/cpu-offline"),
        ["0 dropped=0 squeezed=1", "10 dropped=0 squeezed=2"]
    );
}

#[test]
fn names_of_processes_can_contain_any_character() {
    for (form, name) in [
        ("a-bracket-and-a-blank", "a) R 1 (b"),
        ("a-newline", "a\nb"),
        ("empty-name", ""),
        ("not-utf8", "\u{fffd}\u{fffd}"),
    ] {
        let mut fake = Fake::new("process", &[("4242/stat", &format!("process_stat/{form}"))]);
        let row = fake.tick().remove(0);
        let rest = "starttime=88120 utime=11 stime=12 threads=5 rss=372 minflt=102 majflt=3";
        assert_eq!(row, format!("server/4242 comm=`{name}` {rest}"));
    }
}

#[test]
fn received_bytes_can_follow_the_colon_directly() {
    let lines = Fake::new("nic", &[("net/dev", "nic/no-blank-behind-the-colon")]).tick();
    assert!(lines[0].starts_with("eth0 rx_bytes=1234567890 rx_packets=10 "));
    assert!(lines[1].starts_with("eth0.100 rx_bytes=5 rx_packets=1 "));
}

fn field(rows: &[String], role: &str, name: &str) -> Option<u64> {
    let row = rows.iter().find(|row| row.starts_with(role))?;
    let cell = row
        .split(' ')
        .find_map(|cell| cell.strip_prefix(name)?.strip_prefix('='))?;
    cell.parse().ok()
}

/// The kernel reuses a process ID: the rows continue, and `starttime` distinguishes the two
/// processes.
#[test]
fn reused_pid_has_another_starttime() {
    let mut first = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = first.id();
    let options = Options {
        processes: vec![format!("load={pid}").parse().unwrap()],
        ..Options::default()
    };
    let entry = common::entry("process");
    let mut probe = common::open(entry, &Host::default(), &options).unwrap();
    let mut rows = Rows::default();
    let mut tick = || {
        common::read(probe.as_mut(), &mut rows).unwrap();
        common::words(entry, &rows)
    };
    let first_start = field(&tick(), "load/", "starttime").unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(
        field(&tick(), "load/", "starttime"),
        None,
        "the process has exited"
    );
    // Start times are in hundredths of a second: within one of them the two would be equal.
    let deadline = Instant::now() + Duration::from_secs(60);
    let (second, again) = loop {
        let second = Child::numbered(pid.cast_signed(), || ());
        let again = field(&tick(), "load/", "starttime").unwrap();
        if again != first_start || Instant::now() > deadline {
            break (second, again);
        }
        drop(second);
        tick();
    };
    // If a process exits and another one gets its ID between two ticks, the first tick has no row:
    // the open files are those of the old process.
    drop(second);
    let _third = Child::numbered(pid.cast_signed(), || ());
    let (between, after) = (tick(), tick());
    assert!(again > first_start, "{again} after {first_start}");
    assert_eq!(field(&between, "load/", "starttime"), None);
    assert!(field(&after, "load/", "starttime") >= Some(again));
}
