//! Reads `/proc/interrupts` and `/proc/softirqs`: sums per line, per CPU and per line over each CPU
//! set. Offline CPUs have a column in `/proc/softirqs` too.
//!
//! With 256 CPUs and 2000 lines the file has half a million cells, most of them zero: a zero is
//! recognised by its eleven bytes and not parsed. The counters of the kernel have 32 bits and wrap.

use crate::options::CpuSet;
use crate::prelude::*;

/// The line of `interrupts` in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "interrupts",
    "interrupts per line, per CPU and per line over each CPU set",
    &SCHEMA,
    open,
);

/// The line of `softirqs` in the registry.
pub const SOFTIRQS_ENTRY: ProbeEntry = ProbeEntry::new(
    "softirqs",
    "soft interrupts per kind, per CPU and per kind over each CPU set",
    &SOFTIRQS_SCHEMA,
    open_softirqs,
);

static ENTITY: &[Text] = &[text("line"), text("cpus")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    counter(One) "count", "interrupts; the counter of a CPU wraps at 2^32", "/proc/interrupts", bits(32);
    info "description", "chip, trigger and device; only in rows over all CPUs", "/proc/interrupts";
};

static SOFTIRQS_ENTITY: &[Text] = &[text("kind"), text("cpus")];
static SOFTIRQS_SCHEMA: Schema = Schema::table(SOFTIRQS_ENTITY, SOFTIRQS_COLUMNS);
static SOFTIRQS_COLUMNS: &[Column] = columns! {
    counter(One) "count", "soft interrupts; the counter of a CPU wraps at 2^32", "/proc/softirqs", bits(32);
};

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = host.source("interrupts", MOUNT_PROC)?;
    Ok(probe(file, Matrix::new(options, true)))
}

fn open_softirqs(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = host.source("softirqs", MOUNT_PROC)?.in_one_read();
    Ok(probe(file, Matrix::new(options, false)))
}

fn probe(file: Source, mut matrix: Matrix) -> Box<dyn Probe> {
    let parse = move |text: &[u8], rows: &mut Rows| matrix.parse(text, rows);
    Box::new(Files::default().with(file, parse))
}

/// Sums the matrix of lines and CPUs of `/proc/interrupts` or `/proc/softirqs`.
#[derive(Debug)]
pub struct Matrix {
    sets: Vec<(String, CpuSet)>,
    described: bool,
    /// The first line of the file, and for each column the number of the CPU and its sets.
    head: Vec<u8>,
    cpus: Vec<String>,
    members: Vec<Vec<usize>>,
    /// The counts of one line.
    counts: Vec<u64>,
    per_cpu: Vec<u64>,
    per_set: Vec<u64>,
}

/// Lines that count for the host: on x86, ARM and PowerPC.
const OF_HOST: [&[u8]; 4] = [b"ERR", b"MIS", b"Err", b"BAD"];

/// A cell of a line that never fired on a CPU: on a large host most cells are zero.
const ZERO: &[u8; 11] = b"          0";

impl Matrix {
    /// A matrix with or without a description after the cells.
    #[must_use]
    pub fn new(options: &Options, described: bool) -> Self {
        Self {
            sets: options.cpusets.clone(),
            described,
            head: vec![],
            cpus: vec![],
            members: vec![],
            counts: vec![],
            per_cpu: vec![],
            per_set: vec![],
        }
    }

    /// Parses the file (proc_interrupts(5), `kernel/irq/proc.c`; `fs/proc/softirqs.c`).
    ///
    /// ```text
    ///            CPU0       CPU1
    ///  36:          0     222022 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
    /// LOC:     209869     233222   Local timer interrupts
    /// ERR:          0
    /// ```
    /// Some lines count for the host, as all with fewer counts than CPUs: they have only a row over
    /// all CPUs and are not in the sums per CPU. A count that is none is not in any sum.
    ///
    /// # Errors
    /// When the first line has no CPUs.
    pub fn parse(&mut self, file: &[u8], rows: &mut Rows) -> Result<(), ParseError> {
        let mut cursor = Cursor::new(file);
        self.parse_head(cursor.remainder())?;
        self.per_cpu.fill(0);
        cursor.next_line();
        while !cursor.at_end() {
            self.line(&mut cursor, rows);
            cursor.next_line();
        }
        rows.odd_mut().add(&cursor.into_odd());
        for (name, count) in self.cpus.iter().zip(&self.per_cpu) {
            rows.row(&[b"all", name.as_bytes()]);
            self.cells(*count, None, rows);
        }
        Ok(())
    }

    /// Parses the columns; they change only when a CPU goes online or offline.
    fn parse_head(&mut self, head: &[u8]) -> Result<(), ParseError> {
        if head == self.head && !head.is_empty() {
            return Ok(());
        }
        let mut words = Cursor::new(head);
        let (mut cpus, mut members) = (vec![], vec![]);
        while let Some(word) = words.word() {
            let number = word
                .strip_prefix(b"CPU")
                .and_then(|number| words.number("CPU", number));
            let number: u32 = number.ok_or_else(|| empty("CPU0"))?;
            let sets = self.sets.iter().enumerate();
            let sets = sets.filter(|(_, (_, set))| set.contains(number));
            members.push(sets.map(|(index, _)| index).collect());
            cpus.push(number.to_string());
        }
        if cpus.is_empty() {
            return Err(empty("CPU0"));
        }
        self.per_cpu = vec![0; cpus.len()];
        self.per_set = vec![0; self.sets.len()];
        self.cpus = cpus;
        self.members = members;
        self.head = head.to_vec();
        Ok(())
    }

    fn line(&mut self, cursor: &mut Cursor<'_>, rows: &mut Rows) {
        if cursor.ends() {
            return;
        }
        let Some(name) = cursor.until(b':').map(<[u8]>::trim_ascii) else {
            return cursor.odd_line("no name of an interrupt");
        };
        self.counts.clear();
        while self.counts.len() < self.cpus.len() {
            if cursor.rest().starts_with(ZERO) {
                cursor.skip(ZERO.len());
                self.counts.push(0);
            } else if !cursor.ends() && matches!(cursor.rest()[0], b'0'..=b'9' | b'-') {
                self.counts.push(cursor.uint("count").unwrap_or(0));
            } else {
                break;
            }
        }
        if self.counts.is_empty() {
            return cursor.odd_line("a name without counts");
        }
        rows.row(&[name, b"all"]);
        let total = self
            .counts
            .iter()
            .fold(0, |sum: u64, count| sum.wrapping_add(*count));
        self.cells(total, Some(cursor.remainder()), rows);
        if OF_HOST.contains(&name) || self.counts.len() < self.cpus.len() {
            return;
        }
        self.per_set.fill(0);
        for (cpu, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.per_cpu[cpu] = self.per_cpu[cpu].wrapping_add(*count);
            for &set in &self.members[cpu] {
                self.per_set[set] = self.per_set[set].wrapping_add(*count);
            }
        }
        for ((role, _), count) in self.sets.iter().zip(&self.per_set) {
            rows.row(&[name, role.as_bytes()]);
            self.cells(*count, None, rows);
        }
    }

    fn cells(&self, count: u64, description: Option<&[u8]>, rows: &mut Rows) {
        rows.uint(count);
        if self.described {
            match description {
                Some(text) if !text.is_empty() => rows.text(text),
                _ => rows.null(),
            }
        }
    }
}
