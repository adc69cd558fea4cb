//! Reads `/proc/pressure`: time in which some or all tasks waited for CPU, I/O or memory (pressure
//! stall information).

use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "pressure",
    "time stalled for lack of CPU, I/O or memory",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("resource"), text("severity")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

static COLUMNS: &[Column] = columns! {
    counter(Microsecond) "total_us", "time stalled since boot", "/proc/pressure total", lower;
};

const FIX: &str =
    "it needs Linux 4.20 with CONFIG_PSI, and psi=1 on the kernel command line if it is off by default";

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let mut files = Files::default();
    let mut unavailable = None;
    // Only Linux 6.1 and newer with CONFIG_IRQ_TIME_ACCOUNTING have that of interrupts.
    for resource in ["cpu", "io", "memory", "irq"] {
        match host.source(&format!("pressure/{resource}"), FIX) {
            Ok(file) => files = files.with(file.in_one_read(), move |text, rows| parse(text, resource, rows)),
            Err(error) => drop(unavailable.get_or_insert(error)),
        }
    }
    files.opened(unavailable)
}

/// Parses one file of `/proc/pressure` (Documentation/accounting/psi.rst).
///
/// ```text
/// some avg10=0.27 avg60=0.51 avg300=0.20 total=14282241
/// ```
///
/// # Errors
/// When there is no line.
pub fn parse(file: &[u8], resource: &str, rows: &mut Rows) -> Result<(), ParseError> {
    let before = rows.len();
    let odd = each_line(file, |cursor| {
        if let Some(severity) = cursor.word() {
            let mut total = None;
            while let Some(word) = cursor.word() {
                if let Some(number) = word.strip_prefix(b"total=") {
                    total = cursor.number("total", number);
                }
            }
            rows.row(&[resource.as_bytes(), severity]);
            rows.uint_or_null(total);
        }
    });
    rows.odd_mut().add(&odd);
    not_empty(rows, before, "some")
}
