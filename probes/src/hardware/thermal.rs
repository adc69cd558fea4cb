//! Reads temperatures (`/sys/class/hwmon`, `/sys/class/thermal`) and count and time of thermal
//! throttling of CPUs.
//!
//! A sensor can be behind a slow bus, or in a drive that answers a command: the duration of each
//! read is recorded.

use std::fs;
use std::path::Path;

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Type;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::Attribute;
use super::TimedReads;
use super::int_or_null;
use super::numbered;
use super::word;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::background::Background;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "thermal",
    "temperatures, and thermal throttling of CPUs",
    &SCHEMA,
    open,
)
.every_nth();

static ENTITY: &[Text] = &[text("source"), text("sensor")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
const THROTTLE: &str = "/sys/devices/system/cpu/cpu*/thermal_throttle";
static COLUMNS: &[Column] = &[
    Column::gauge(
        "temperature",
        Unit::Millicelsius,
        "temperature of a hwmon sensor or a thermal zone",
        "/sys/class/hwmon/hwmon*/temp*_input, /sys/class/thermal/thermal_zone*/temp",
    )
    .stored(Type::Int64)
    .lower(),
    Column::counter(
        "throttles",
        Unit::One,
        "times that it was throttled because of heat",
        THROTTLE,
    )
    .stored(Type::Int64)
    .lower(),
    Column::counter(
        "throttled_ms",
        Unit::Millisecond,
        "time throttled because of heat; Linux 5.6",
        THROTTLE,
    )
    .stored(Type::Int64)
    .lower(),
    Column::gauge(
        "read_us",
        Unit::Microsecond,
        "duration of the read",
        "clock of the recorder",
    ),
];

/// One row: the temperature of a sensor, or the two counters of a CPU or package.
#[derive(Debug)]
struct Sensor {
    source: &'static str,
    name: String,
    reads: Reads,
}

#[derive(Debug)]
enum Reads {
    Temperature(Attribute),
    Throttle {
        count: Attribute,
        milliseconds: Attribute,
    },
}

fn open(host: &Host, _: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let mut sensors = temperatures(host);
    sensors.extend(throttles(host));
    if sensors.is_empty() {
        return Err(NotRunning::Unavailable(format!(
            "{}: no temperatures and no throttling counters; virtual machines have none, a host needs a driver (coretemp, k10temp)",
            host.sys("class/hwmon").display()
        )));
    }
    Ok(Background::spawn("thermal", move |rows| {
        sample(&mut sensors, rows)
    }))
}

/// Every `temp*_input` as `chip/device/label`, and every thermal zone.
fn temperatures(host: &Host) -> Vec<Sensor> {
    let mut sensors = vec![];
    let root = host.sys("class/hwmon");
    for chip in numbered(&root, "hwmon") {
        let dir = root.join(&chip);
        let name = word(&dir.join("name")).unwrap_or_else(|| chip.clone());
        // The number of a chip can change at a boot, its device does not.
        let device = fs::read_link(dir.join("device"))
            .ok()
            .and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned()));
        let device = device.unwrap_or(chip);
        for input in numbered(&dir, "temp")
            .iter()
            .filter_map(|file| file.strip_suffix("_input"))
        {
            let label = word(&dir.join(format!("{input}_label"))).unwrap_or_else(|| input.to_owned());
            sensors.push(temperature(
                "hwmon",
                format!("{name}/{device}/{label}"),
                &dir.join(format!("{input}_input")),
            ));
        }
    }
    let root = host.sys("class/thermal");
    for zone in numbered(&root, "thermal_zone") {
        let kind = word(&root.join(&zone).join("type")).unwrap_or_default();
        let number = &zone["thermal_zone".len()..];
        sensors.push(temperature(
            "zone",
            format!("{number}/{kind}"),
            &root.join(&zone).join("temp"),
        ));
    }
    make_names_unique(&mut sensors);
    sensors
}

fn temperature(source: &'static str, name: String, path: &Path) -> Sensor {
    Sensor {
        source,
        name,
        reads: Reads::Temperature(Attribute::new(path.to_owned())),
    }
}

/// Adds a number to the name of a sensor if an earlier one has the same name.
fn make_names_unique(sensors: &mut [Sensor]) {
    for index in 1..sensors.len() {
        let (before, rest) = sensors.split_at_mut(index);
        let same = before.iter().filter(|other| other.name == rest[0].name).count();
        if same > 0 {
            rest[0].name = format!("{} #{}", rest[0].name, index + 1);
        }
    }
}

/// The counters of every CPU and every package. All CPUs of a package have its counters; one of
/// them is read.
fn throttles(host: &Host) -> Vec<Sensor> {
    let root = host.sys("devices/system/cpu");
    let mut sensors: Vec<Sensor> = vec![];
    for cpu in numbered(&root, "cpu") {
        let dir = root.join(&cpu);
        let throttle = |source, name: String, what: &str| Sensor {
            source,
            name,
            reads: Reads::Throttle {
                count: Attribute::new(dir.join(format!("thermal_throttle/{what}_throttle_count"))),
                milliseconds: Attribute::new(
                    dir.join(format!("thermal_throttle/{what}_throttle_total_time_ms")),
                ),
            },
        };
        if dir.join("thermal_throttle/core_throttle_count").exists() {
            sensors.push(throttle("cpu", cpu["cpu".len()..].to_owned(), "core"));
        }
        if dir.join("thermal_throttle/package_throttle_count").exists()
            && let Some(package) = word(&dir.join("topology/physical_package_id"))
            && !sensors
                .iter()
                .any(|sensor| sensor.source == "package" && sensor.name == package)
        {
            sensors.push(throttle("package", package, "package"));
        }
    }
    sensors
}

fn sample(sensors: &mut [Sensor], rows: &mut Rows) -> Result<(), ProbeError> {
    let (mut watch, before) = (TimedReads::default(), rows.len());
    for sensor in sensors {
        let entity = [sensor.source.as_bytes(), sensor.name.as_bytes()];
        match &mut sensor.reads {
            Reads::Temperature(attribute) => {
                if let Some((value, took_us)) = watch.read(attribute) {
                    rows.row(&entity);
                    int_or_null(value, rows);
                    rows.nulls(2);
                    rows.uint(took_us);
                }
            }
            Reads::Throttle { count, milliseconds } => {
                if let Some((count, took_us)) = watch.read(count) {
                    rows.row(&entity);
                    rows.null();
                    int_or_null(count, rows);
                    // Kernels before 5.6 have only the count.
                    int_or_null(milliseconds.read().unwrap_or(None), rows);
                    rows.uint(took_us);
                }
            }
        }
    }
    watch.end(rows, before)
}
