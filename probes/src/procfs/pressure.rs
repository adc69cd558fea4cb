//! Reads `/proc/pressure`: time in which some or all tasks waited for CPU, I/O or memory (pressure
//! stall information).

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::fields::each_line;
use super::fields::empty;
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

static COLUMNS: &[Column] = &[Column::counter(
    "total_us",
    Unit::Microsecond,
    "time stalled since boot",
    "/proc/pressure total",
)
.lower()];

const FIX: &str =
    "it needs Linux 4.20 with CONFIG_PSI, and psi=1 on the kernel command line if it is off by default";

#[derive(Debug)]
struct Pressure {
    files: Vec<(&'static str, Source)>,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = |resource| {
        Ok((
            resource,
            host.source(&format!("pressure/{resource}"), FIX)?.in_one_read(),
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
            .try_for_each(|(resource, file)| file.parse(|text| parse(text, resource, rows)))
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
pub fn parse(file: &[u8], resource: &str, rows: &mut Rows) -> Result<(), ParseError> {
    let before = rows.len();
    each_line(file, |cursor| {
        if let Some(severity) = cursor.word() {
            let mut total = None;
            while let Some(word) = cursor.word() {
                let Some(equals) = memchr::memchr(b'=', word) else {
                    continue;
                };
                if &word[..equals] == b"total" {
                    total = Some(cursor.convert("total", &word[equals + 1..])?);
                }
            }
            rows.row(&[resource.as_bytes(), severity]);
            rows.uint_or_null(total);
        }
        Ok(())
    })?;
    if rows.len() == before {
        Err(empty("some"))
    } else {
        Ok(())
    }
}
