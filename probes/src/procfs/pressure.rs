//! Reads `/proc/pressure`: time in which some or all tasks waited for CPU, I/O or memory (pressure
//! stall information).

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Type;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::fields::empty;
use super::lines::Lines;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::host::ParseError;
use crate::host::Source;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "pressure",
    "time stalled for lack of CPU, I/O or memory",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("resource"), text("severity")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);

const fn average(name: &'static str, help: &'static str) -> Column {
    Column::gauge(name, Unit::Percent, help, "/proc/pressure")
        .stored(Type::Double)
        .lower()
}

static COLUMNS: &[Column] = &[
    Column::counter(
        "total_us",
        Unit::Microsecond,
        "time stalled since boot",
        "/proc/pressure total",
    )
    .lower(),
    average("avg10", "the kernel's average over 10 s"),
    average("avg60", "the kernel's average over 60 s"),
    average("avg300", "the kernel's average over 300 s"),
];

const FIX: &str =
    "it needs Linux 4.20 with CONFIG_PSI, and psi=1 on the kernel command line if it is off by default";

#[derive(Debug)]
struct Pressure {
    files: Vec<(&'static str, Source, Lines)>,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = |resource| {
        Ok((
            resource,
            host.source(&format!("pressure/{resource}"), FIX)?.in_one_read(),
            Lines::default(),
        ))
    };
    let mut files = vec![file("cpu")?, file("io")?, file("memory")?];
    // Only Linux 6.1 and newer with CONFIG_IRQ_TIME_ACCOUNTING have it.
    files.extend(file("irq"));
    Ok(Box::new(Pressure { files }))
}

impl Probe for Pressure {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        self.files
            .iter_mut()
            .try_for_each(|(resource, file, lines)| file.parse(|text| parse(text, resource, lines, rows)))
    }
}

/// Parses one file of `/proc/pressure` (Documentation/accounting/psi.rst).
///
/// ```text
/// some avg10=0.27 avg60=0.51 avg300=0.20 total=14282241
/// ```
///
/// # Errors
/// When there is no line, or a value is not a number.
pub fn parse(file: &[u8], resource: &str, lines: &mut Lines, rows: &mut Rows) -> Result<(), ParseError> {
    let before = rows.len();
    lines.parse(file, COLUMNS.len(), rows, |cursor, rows| {
        if let Some(severity) = cursor.word() {
            let mut averages = [None; 3];
            let mut total = None;
            while let Some(word) = cursor.word() {
                let Some(equals) = memchr::memchr(b'=', word) else {
                    continue;
                };
                let (name, value) = (&word[..equals], &word[equals + 1..]);
                match name {
                    b"avg10" => averages[0] = Some(cursor.decimal("avg10", value)?),
                    b"avg60" => averages[1] = Some(cursor.decimal("avg60", value)?),
                    b"avg300" => averages[2] = Some(cursor.decimal("avg300", value)?),
                    b"total" => total = Some(cursor.convert("total", value)?),
                    _ => {}
                }
            }
            rows.row(&[resource.as_bytes(), severity]);
            rows.uint_or_null(total);
            averages.iter().for_each(|average| match average {
                Some(value) => rows.double(*value),
                None => rows.null(),
            });
        }
        Ok(())
    })?;
    if rows.len() == before {
        Err(empty("some"))
    } else {
        Ok(())
    }
}
