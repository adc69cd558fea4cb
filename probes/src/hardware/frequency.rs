//! Reads the current frequency of each CPU (`cpufreq/scaling_cur_freq`), or its frequency at its
//! last tick.
//!
//! A read can wait 20 ms for a measurement (x86 before Linux 5.18) or query the firmware
//! (acpi-cppc). `/proc/cpuinfo` reads the same values at the same cost; without cpufreq it prints
//! only the nominal frequency.

use super::Attribute;
use super::Sensor;
use super::numbered;
use super::sample;
use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry =
    ProbeEntry::new("frequency", "clock frequency per CPU", &SCHEMA, open).read_at(Cadence::Nth);

static ENTITY: &[Text] = &[text("cpu")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
const CPUFREQ: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq";
static COLUMNS: &[Column] = columns! {
    gauge(Kilohertz) "khz",
        "frequency that the driver measures or requests", CPUFREQ, stored(Type::Int64), higher;
};

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let root = host.sys("devices/system/cpu");
    let path = |cpu: &str| root.join(cpu).join("cpufreq/scaling_cur_freq");
    let names = numbered(&root, "cpu");
    if !names.iter().any(|cpu| path(cpu).exists()) {
        return Err(NotRunning::Unavailable(format!(
            "{}: no cpufreq; virtual machines have none, a host needs a driver (intel_pstate, amd-pstate, acpi-cpufreq)",
            root.join("cpu0/cpufreq").display()
        )));
    }
    // A CPU that is offline has no file; it has one when it comes online.
    let cpu = |name: &String| Sensor {
        entity: [name["cpu".len()..].to_owned()],
        attribute: Attribute::new(path(name)),
        constant: None,
    };
    let mut cpus: Vec<_> = names.iter().map(cpu).collect();
    Ok(Background::spawn("frequency", move |rows| {
        sample(&mut cpus, rows)
    }))
}
