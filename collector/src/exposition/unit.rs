//! Converts values and names to base units, as Prometheus recommends
//! (prometheus.io/docs/practices/naming).
//!
//! Recordings keep the unit of the source; only exported values are converted. The arithmetic
//! repeats node_exporter's operations, so that equal counters give equal floating-point numbers.

use loadprint_recording::schema::Unit;
use rustix::param::clock_ticks_per_second;
use rustix::param::page_size;

/// True if the unit is a base unit.
pub fn is_base(unit: Unit) -> bool {
    matches!(unit, Unit::One | Unit::Byte | Unit::Second | Unit::Kelvin)
}

/// Converts `value` from `unit` to the base unit.
pub fn to_base(value: f64, unit: Unit) -> f64 {
    match unit {
        Unit::One | Unit::Byte | Unit::Second | Unit::Kelvin => value,
        Unit::Kibibyte => value * 1024.0,
        Unit::Sector => value * 512.0,
        Unit::Page => value * page_size() as f64,
        Unit::Millisecond => value * (1.0 / 1000.0),
        Unit::Microsecond => value / 1000.0 / 1000.0,
        Unit::Nanosecond => value / 1e9,
        Unit::Picosecond => value / 1e12,
        Unit::Tick => value / clock_ticks_per_second() as f64,
        Unit::Microjoule => value / 1e6,
        Unit::Kilohertz => value * 1000.0,
        Unit::Millicelsius => value / 1000.0,
        Unit::Percent => value / 100.0,
    }
}

/// The base unit in metric names, and the endings of column names that it replaces.
pub fn words(unit: Unit) -> (&'static str, &'static [&'static str]) {
    match unit {
        Unit::One => ("", &[]),
        Unit::Byte => ("bytes", &["bytes"]),
        Unit::Kibibyte => ("bytes", &["kb", "kib"]),
        Unit::Sector => ("bytes", &["sectors"]),
        Unit::Page => ("bytes", &["pages"]),
        Unit::Second => ("seconds", &["seconds", "s"]),
        Unit::Millisecond => ("seconds", &["ms"]),
        Unit::Microsecond => ("seconds", &["us"]),
        Unit::Nanosecond => ("seconds", &["ns"]),
        Unit::Picosecond => ("seconds", &["ps"]),
        Unit::Tick => ("seconds", &["ticks"]),
        Unit::Microjoule => ("joules", &["uj"]),
        Unit::Kilohertz => ("hertz", &["khz"]),
        Unit::Millicelsius => ("celsius", &["mcel", "millicelsius"]),
        Unit::Kelvin => ("kelvin", &["k", "kelvin"]),
        Unit::Percent => ("ratio", &["percent", "pct"]),
    }
}

/// The unit at the end of a family's name, for OpenMetrics's `# UNIT`; `name` is without `_total`.
pub fn of_name(name: &str) -> Option<&'static str> {
    const UNITS: [&str; 7] = [
        "seconds", "bytes", "ratio", "joules", "hertz", "celsius", "kelvin",
    ];
    UNITS.into_iter().find(|unit| {
        name.strip_suffix(unit)
            .is_some_and(|before| before.ends_with('_'))
    })
}
