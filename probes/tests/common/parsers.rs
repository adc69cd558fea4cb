//! Every parser of text that others write, under the name of its corpus: what `fuzz.rs` and `forms.rs` feed.
//!
//! A parser is added by a line here and a folder `tests/corpus/<name>` with at least one file that it accepts.
#![allow(dead_code, reason = "each test file uses its part")]

use loadprint_probes::Options;
use loadprint_probes::ebpf::programs;
use loadprint_probes::hardware;
use loadprint_probes::hardware::nvme;
use loadprint_probes::host::ParseError;
use loadprint_probes::procfs::cgroup;
use loadprint_probes::procfs::cpu;
use loadprint_probes::procfs::diskstats;
use loadprint_probes::procfs::interrupts::Matrix;
use loadprint_probes::procfs::lines::Lines;
use loadprint_probes::procfs::meminfo;
use loadprint_probes::procfs::mounts;
use loadprint_probes::procfs::net_dev;
use loadprint_probes::procfs::pressure;
use loadprint_probes::procfs::process;
use loadprint_probes::procfs::snmp;
use loadprint_probes::procfs::sockets;
use loadprint_probes::procfs::threads;
use loadprint_probes::procfs::vmstat;
use loadprint_recording::rows::Rows;

/// What a parser makes of one text. It is called again and again with the same rows, as at tick after tick.
pub type Parse = Box<dyn FnMut(&[u8], &mut Rows) -> Result<(), String>>;

/// A parser by name, the width of its rows, and how to make one.
pub struct Parser {
    pub name: &'static str,
    pub width: usize,
    pub make: fn() -> Parse,
}

const fn parser(name: &'static str, width: usize, make: fn() -> Parse) -> Parser {
    Parser { name, width, make }
}

/// The place and the reason, as the path would come before them.
fn told<T>(result: Result<T, ParseError>) -> Result<T, String> {
    result.map_err(|error| format!("{}: {}: {}", error.line, error.item, error.message))
}

/// Cells that a parser gives without a row.
fn cells(
    result: Result<impl IntoIterator<Item = Option<u64>>, ParseError>,
    rows: &mut Rows,
) -> Result<(), String> {
    let found = told(result)?;
    rows.row(&[b"all"]);
    found.into_iter().for_each(|cell| rows.uint_or_null(cell));
    Ok(())
}

/// A parser of one row's cells behind an entity that another file gives.
fn of_row(parse: impl Fn(&[u8], &mut Rows) -> Result<(), ParseError> + 'static) -> Parse {
    Box::new(move |text, rows| {
        rows.row(&[b"all"]);
        told(parse(text, rows))
    })
}

fn matrix(full_matrix: bool, described: bool) -> Parse {
    let options = Options {
        cpusets: vec![
            ("server".to_owned(), "0-1".parse().unwrap()),
            ("load".to_owned(), "2-3".parse().unwrap()),
        ],
        full_matrix,
        ..Options::default()
    };
    let mut matrix = Matrix::new(&options, described);
    Box::new(move |text, rows| told(matrix.parse(text, rows)))
}

/// A parser that takes again what did not change since its reading before.
fn by_lines(parse: impl Fn(&[u8], &mut Lines, &mut Rows) -> Result<(), ParseError> + 'static) -> Parse {
    let mut lines = Lines::default();
    Box::new(move |text, rows| told(parse(text, &mut lines, rows)))
}

fn two_lines() -> Parse {
    let mut heads = snmp::Heads::default();
    Box::new(move |text, rows| told(snmp::parse(text, &mut heads, rows)))
}

/// All of them.
pub static PARSERS: &[Parser] = &[
    parser("cpu", 16, || Box::new(|text, rows| told(cpu::parse(text, rows)))),
    parser("interrupts", 2, || matrix(false, true)),
    parser("interrupts_matrix", 2, || matrix(true, true)),
    parser("softirqs", 1, || matrix(false, false)),
    parser("disk", 17, || {
        by_lines(|text, lines, rows| diskstats::parse(text, |_| true, lines, rows))
    }),
    parser("nic", 16, || by_lines(net_dev::parse)),
    parser("snmp", 1, two_lines),
    parser("netstat", 1, two_lines),
    parser("sockstat", 1, || by_lines(snmp::parse_sockstat)),
    parser("memory", 1, || by_lines(meminfo::parse)),
    parser("vmstat", 1, || by_lines(vmstat::parse)),
    parser("pressure", 4, || {
        by_lines(|text, lines, rows| pressure::parse(text, "io", lines, rows))
    }),
    parser("process_stat", 10, || {
        Box::new(|text, rows| told(process::parse_stat(text, [b"server", b"42"], rows)))
    }),
    parser("process_io", 6, || of_row(process::parse_io)),
    parser("thread_status", 3, || {
        Box::new(|text, rows| {
            let status = told(threads::parse_status(text))?;
            rows.row(&[b"server", b"42", b"43"]);
            rows.text(&status.name);
            rows.uint_or_null(status.voluntary);
            rows.uint_or_null(status.nonvoluntary);
            Ok(())
        })
    }),
    parser("schedstat", 3, || {
        Box::new(|text, rows| cells(threads::parse_schedstat(text).map(|ran| ran.map(Some)), rows))
    }),
    parser("sockets_snmp", 8, || {
        Box::new(|text, rows| cells(sockets::parse_snmp(text), rows))
    }),
    parser("sockets_sockstat", 2, || {
        Box::new(|text, rows| {
            cells(
                sockets::parse_sockstat(text, &[(b"TCP", b"inuse"), (b"TCP", b"tw")]),
                rows,
            )
        })
    }),
    parser("cgroup_cpu_stat", 5, || {
        Box::new(|text, rows| cells(cgroup::parse_cpu_stat(text), rows))
    }),
    parser("program_fdinfo", 2, || {
        Box::new(|text, rows| {
            cells(
                programs::parse(text).map(|(time, calls)| [Some(time), Some(calls)]),
                rows,
            )
        })
    }),
    parser("cgroup_cpu_max", 2, || {
        Box::new(|text, rows| {
            cells(
                cgroup::parse_cpu_max(text).map(|(quota, period)| [quota, period]),
                rows,
            )
        })
    }),
    parser("cgroup_mounts", 0, || {
        Box::new(|text, _| told(mounts::parse_mounts(text)).map(drop))
    }),
    parser("cgroup_members", 0, || {
        Box::new(|text, _| told(mounts::parse_memberships(text)).map(drop))
    }),
    parser("attribute", 1, || {
        Box::new(|text, rows| {
            cells(
                hardware::parse_number(text).map(|value| [value.map(i64::cast_unsigned)]),
                rows,
            )
        })
    }),
    parser("nvme_health", 14, || {
        Box::new(|page, rows| cells(Ok(nvme::parse_health(page)), rows))
    }),
    parser("nvme_amazon", 11, || {
        Box::new(|page, rows| cells(Ok(nvme::parse_amazon(page).unwrap_or([None; 11])), rows))
    }),
];
