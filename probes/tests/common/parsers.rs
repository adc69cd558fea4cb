//! Lists every parser of external text with the name of its corpus, for `fuzz.rs` and `forms.rs`.
//!
//! To add a parser, add a line here and a folder `tests/corpus/<name>` with at least one file that
//! it accepts.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs::File;
use std::io::Write;

use loadprint_probes::Options;
use loadprint_probes::ebpf::programs;
use loadprint_probes::hardware;
use loadprint_probes::hardware::nvme;
use loadprint_probes::procfs::cgroup;
use loadprint_probes::procfs::cpu;
use loadprint_probes::procfs::diskstats;
use loadprint_probes::procfs::fields::values;
use loadprint_probes::procfs::interrupts::Matrix;
use loadprint_probes::procfs::memory;
use loadprint_probes::procfs::mounts;
use loadprint_probes::procfs::net_dev;
use loadprint_probes::procfs::pressure;
use loadprint_probes::procfs::process;
use loadprint_probes::procfs::snmp;
use loadprint_probes::procfs::sockets;
use loadprint_probes::procfs::softnet;
use loadprint_probes::procfs::threads;
use loadprint_probes::source::ParseError;
use loadprint_probes::symbols::MAX_NAME;
use loadprint_probes::symbols::demangle::demangle;
use loadprint_probes::symbols::elf::Elf;
use loadprint_probes::symbols::maps;
use loadprint_recording::rows::Odd;
use loadprint_recording::rows::Rows;
use rustix::fs::MemfdFlags;
use rustix::fs::memfd_create;

/// Parses one text. It is called repeatedly with the same rows, as at successive ticks.
pub type Parse = Box<dyn FnMut(&[u8], &mut Rows) -> Result<(), String>>;

/// The name of a parser, the width of its rows, and its constructor.
pub struct Parser {
    pub name: &'static str,
    pub width: usize,
    pub make: fn() -> Parse,
}

const fn parser(name: &'static str, width: usize, make: fn() -> Parse) -> Parser {
    Parser { name, width, make }
}

/// Formats an error as line, item and reason.
fn text_error<T>(result: Result<T, ParseError>) -> Result<T, String> {
    result.map_err(|error| format!("{}: {}: {}", error.line, error.item, error.message))
}

/// Appends cells that a parser returns without a row.
fn cells(cells: impl IntoIterator<Item = Option<u64>>, rows: &mut Rows) -> Result<(), String> {
    rows.row(&[b"all"]);
    cells.into_iter().for_each(|cell| rows.uint_or_null(cell));
    Ok(())
}

/// A parser of the cells of one row whose entity comes from another file.
fn of_row(parse: impl Fn(&[u8], &mut Rows) -> Result<(), ParseError> + 'static) -> Parse {
    Box::new(move |text, rows| {
        rows.row(&[b"all"]);
        text_error(parse(text, rows))
    })
}

/// A parser of some cells of a row of sockets.
fn of_cells(parse: impl Fn(&[u8], &mut sockets::Cells, &mut Odd) + 'static) -> Parse {
    Box::new(move |text, rows| {
        let mut parsed = sockets::Cells::default();
        parse(text, &mut parsed, rows.odd_mut());
        cells(parsed, rows)
    })
}

/// A program that a watched process has mapped.
pub fn elf(bytes: &[u8]) -> Result<(), String> {
    let mut file = File::from(memfd_create("elf", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    let elf = Elf::open(&file).ok_or("1: file: not an ELF file")?;
    let base = elf.description.base();
    let starts = elf.functions(base).into_iter().map(|(start, _)| start);
    let addresses: Vec<u64> = starts
        .take(100)
        .map(|start| base.wrapping_add(start.into()))
        .collect();
    assert_eq!(elf.names(&addresses).len(), addresses.len());
    elf.dispatch();
    Ok(())
}

fn matrix(described: bool) -> Parse {
    let options = Options {
        cpusets: vec![
            ("server".to_owned(), "0-1".parse().unwrap()),
            ("load".to_owned(), "2-3".parse().unwrap()),
        ],
        ..Options::default()
    };
    let mut matrix = Matrix::new(&options, described);
    Box::new(move |text, rows| text_error(matrix.parse(text, rows)))
}

/// A parser of rows.
fn of_rows(parse: impl Fn(&[u8], &mut Rows) -> Result<(), ParseError> + 'static) -> Parse {
    Box::new(move |text, rows| text_error(parse(text, rows)))
}

/// All parsers.
pub static PARSERS: &[Parser] = &[
    parser("cpu", 16, || of_rows(cpu::parse)),
    parser("interrupts", 2, || matrix(true)),
    parser("softirqs", 1, || matrix(false)),
    parser("disk", 17, || {
        of_rows(|text, rows| diskstats::parse(text, |_| true, rows))
    }),
    parser("nic", 16, || of_rows(net_dev::parse)),
    parser("softnet", 2, || of_rows(softnet::parse)),
    parser("snmp", 1, || of_rows(snmp::parse)),
    parser("netstat", 1, || of_rows(snmp::parse)),
    parser("sockstat", 1, || of_rows(snmp::parse_sockstat)),
    parser("memory", 1, || of_rows(memory::parse_meminfo)),
    parser("vmstat", 1, || of_rows(memory::parse_vmstat)),
    parser("pressure", 1, || {
        of_rows(|text, rows| pressure::parse(text, "io", rows))
    }),
    parser("process_stat", 8, || {
        Box::new(|text, rows| text_error(process::parse_stat(text, [b"server", b"42"], rows)))
    }),
    parser("process_io", 2, || of_row(process::parse_io)),
    parser("thread_status", 3, || {
        Box::new(|text, rows| {
            let status = text_error(threads::parse_status(text, rows.odd_mut()))?;
            rows.row(&[b"server", b"42", b"43"]);
            rows.text(&status.name);
            rows.uint_or_null(status.voluntary);
            rows.uint_or_null(status.nonvoluntary);
            Ok(())
        })
    }),
    parser("schedstat", 3, || {
        Box::new(|text, rows| cells(threads::parse_schedstat(text, rows.odd_mut()), rows))
    }),
    parser("sockets_snmp", 3, || of_cells(sockets::parse_snmp)),
    parser("sockets_sockstat", 3, || of_cells(sockets::parse_sockstat)),
    parser("cgroup_cpu_stat", 4, || {
        Box::new(|text, rows| cells(values(text, cgroup::CPU_STAT, rows.odd_mut()), rows))
    }),
    parser("program_fdinfo", 2, || {
        Box::new(|text, rows| {
            let (time, calls) = text_error(programs::parse(text))?;
            cells([Some(time), Some(calls)], rows)
        })
    }),
    parser("cgroup_cpu_max", 2, || {
        Box::new(|text, rows| {
            let (quota, period) = cgroup::parse_cpu_max(text, rows.odd_mut());
            cells([quota, period], rows)
        })
    }),
    parser("process_maps", 0, || {
        Box::new(|text, _| text_error(maps::parse(text)).map(drop))
    }),
    parser("elf", 0, || Box::new(|bytes, _| elf(bytes))),
    parser("symbol_name", 0, || {
        Box::new(|name, _| match demangle(name).len() {
            0..=MAX_NAME => Ok(()),
            length => panic!("{length} bytes"),
        })
    }),
    parser("cgroup_mounts", 0, || {
        Box::new(|text, _| {
            mounts::parse_mounts(text);
            Ok(())
        })
    }),
    parser("cgroup_members", 0, || {
        Box::new(|text, _| {
            mounts::parse_memberships(text);
            Ok(())
        })
    }),
    parser("attribute", 1, || {
        Box::new(|text, rows| {
            let value = hardware::parse_number(text, rows.odd_mut());
            cells([value.map(i64::cast_unsigned)], rows)
        })
    }),
    parser("nvme_amazon", 4, || {
        Box::new(|page, rows| cells(nvme::parse_amazon(page).unwrap_or([None; 4]), rows))
    }),
];
