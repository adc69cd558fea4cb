//! Reads `/proc/softirqs`: soft interrupts by kind, summed like hardware interrupts. Offline CPUs
//! have a column too.

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::MOUNT_PROC;
use super::interrupts::Matrix;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::host::Source;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "softirqs",
    "soft interrupts per kind, per CPU and per kind over each CPU set",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("kind"), text("cpus")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = &[Column::counter(
    "count",
    Unit::One,
    "soft interrupts; the counter of a CPU wraps at 2^32",
    "/proc/softirqs",
)];

#[derive(Debug)]
struct Softirqs {
    file: Source,
    matrix: Matrix,
}

fn open(host: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let file = host.source("softirqs", MOUNT_PROC)?.in_one_read();
    Ok(Box::new(Softirqs {
        file,
        matrix: Matrix::new(options, false),
    }))
}

impl Probe for Softirqs {
    fn sample(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let Self { file, matrix } = self;
        file.parse(|text| matrix.parse(text, rows))
    }
}
