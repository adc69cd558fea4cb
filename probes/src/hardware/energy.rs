//! Reads the energy used by packages, cores and memory (`/sys/class/powercap`; RAPL, Running
//! Average Power Limit).
//!
//! The counters wrap after minutes to hours, each at its own range, which is recorded with them.
//! Intel and AMD processors have them; virtual machines do not. Since Linux 5.10 only root can read
//! them, because they are a side channel.

use super::Attribute;
use super::Sensor;
use super::numbered;
use super::sample;
use loadprint_cpulist::small_files::line;
use loadprint_recording::rows::Odd;

use crate::prelude::*;
use crate::source::refused;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "energy",
    "energy used by packages, cores and memory",
    &SCHEMA,
    open,
);

static ENTITY: &[Text] = &[text("control"), text("zone")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    counter(Microjoule) "energy_uj",
        "energy used; wraps at the zone's range",
        "/sys/class/powercap/*/energy_uj", stored(Type::Int64), lower;
    gauge(Microjoule) "max_energy_range_uj",
        "largest value of the counter, after which it restarts at zero",
        "/sys/class/powercap/*/max_energy_range_uj", stored(Type::Int64);
};

/// The kernel's names of the interfaces to RAPL: by register, and on some laptops through memory.
const CONTROLS: [&str; 2] = ["intel-rapl:", "intel-rapl-mmio:"];

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let mut zones = zones(host);
    if zones.is_empty() {
        return Err(NotRunning::Unavailable(format!(
            "{}: no energy zone; it needs an Intel or AMD processor, no virtual machine, and the module intel_rapl_msr",
            host.sys("class/powercap").display()
        )));
    }
    // One zone without a meter, or of another driver, does not hide the others.
    let reads = zones
        .iter_mut()
        .map(|zone| zone.attribute.read(&mut Odd::default()));
    let errors: Vec<_> = reads.map_while(Result::err).collect();
    if let (Some(error), true) = (errors.first(), errors.len() == zones.len()) {
        return Err(NotRunning::Unavailable(refused(
            error,
            "run as root or with CAP_DAC_READ_SEARCH, which Linux 5.10 and newer require",
        )));
    }
    Ok(Background::spawn("energy", move |rows| sample(&mut zones, rows)))
}

/// All zones with an energy counter; the name of a zone follows the name of the zone that contains
/// it.
fn zones(host: &Host) -> Vec<Sensor<2>> {
    let root = host.sys("class/powercap");
    let name = |zone: &str| line(&root.join(zone).join("name")).unwrap_or_else(|| zone.to_owned());
    let mut zones: Vec<Sensor<2>> = vec![];
    for prefix in CONTROLS {
        for zone in numbered(&root, prefix) {
            let energy = root.join(&zone).join("energy_uj");
            if !energy.exists() {
                continue;
            }
            // `intel-rapl:0:1` is a part of `intel-rapl:0`.
            let mut full = match zone.rsplit_once(':') {
                Some((whole, _)) if whole.contains(':') => format!("{}/{}", name(whole), name(&zone)),
                _ => name(&zone),
            };
            let control = prefix.trim_end_matches(':');
            if zones.iter().any(|known| known.entity == [control, &full]) {
                full = format!("{full} ({zone})");
            }
            let mut range = Attribute::new(root.join(&zone).join("max_energy_range_uj"));
            zones.push(Sensor {
                entity: [control.to_owned(), full],
                attribute: Attribute::new(energy),
                constant: Some(range.read(&mut Odd::default()).unwrap_or(None)),
            });
        }
    }
    zones
}
