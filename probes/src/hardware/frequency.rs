//! `cpufreq/scaling_cur_freq`: the frequency at which each CPU runs, or ran at its last tick.
//!
//! A read may wait 20 ms for a measurement (x86 before Linux 5.18), or ask the firmware (acpi-cppc). `/proc/cpuinfo` is made in
//! the same way and is no cheaper; where there is no cpufreq, it has the nominal frequency only, which would be no finding.

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Type;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::Attribute;
use super::Watch;
use super::int_or_null;
use super::numbered;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::background::Background;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry =
    ProbeEntry::new("frequency", "clock frequency per CPU", &SCHEMA, open).every_nth();

static ENTITY: &[Text] = &[text("cpu")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
const CPUFREQ: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq";
static COLUMNS: &[Column] = &[
    Column::gauge(
        "khz",
        Unit::Kilohertz,
        "as the driver measures or asks for it",
        CPUFREQ,
    )
    .stored(Type::Int64)
    .higher(),
    Column::gauge(
        "read_us",
        Unit::Microsecond,
        "how long the read took",
        "the recorder's clock",
    ),
];

#[derive(Debug)]
struct Cpu {
    number: String,
    frequency: Attribute,
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let root = host.sys("devices/system/cpu");
    let path = |cpu: &str| root.join(cpu).join("cpufreq/scaling_cur_freq");
    let names = numbered(&root, "cpu");
    if !names.iter().any(|cpu| path(cpu).exists()) {
        return Err(NotRunning::Unavailable(format!(
            "{}: there is no cpufreq; guests have none, a host needs a driver for it (intel_pstate, amd-pstate, acpi-cpufreq)",
            root.join("cpu0/cpufreq").display()
        )));
    }
    // A CPU that is offline now has no file, and may have one later.
    let mut cpus: Vec<_> = names
        .iter()
        .map(|name| Cpu {
            number: name["cpu".len()..].to_owned(),
            frequency: Attribute::new(path(name)),
        })
        .collect();
    Ok(Background::spawn("frequency", move |rows| {
        sample(&mut cpus, rows)
    }))
}

fn sample(cpus: &mut [Cpu], rows: &mut Rows) -> Result<(), ProbeError> {
    let (mut watch, before) = (Watch::default(), rows.len());
    for cpu in cpus {
        if let Some((khz, took_us)) = watch.read(&mut cpu.frequency) {
            rows.row(&[cpu.number.as_bytes()]);
            int_or_null(khz, rows);
            rows.uint(took_us);
        }
    }
    watch.end(rows, before)
}
