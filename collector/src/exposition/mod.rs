//! Converts the rows of probes to Prometheus metrics. [`node_exporter`] maps columns to
//! node_exporter's names; all other names are generated from the probes' declarations.

mod families;
mod generated_names;
mod histogram;
mod node_exporter;
mod process;
mod table;
mod text;
mod unit;

use std::borrow::Cow;

use loadprint_recording::journal::Status;
use loadprint_recording::rows::Value;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Shape;

use crate::outcome::Outcome;
use families::Families;
use families::Kind;
use families::Number;
pub use text::Format;

/// A copy of the newest outcome of every running probe.
#[derive(Debug)]
pub struct Snapshot {
    /// Start of the read (CLOCK_REALTIME).
    pub realtime_ns: i64,
    /// The probes.
    pub probes: Vec<SampledProbe>,
}

/// One probe of a snapshot.
#[derive(Debug)]
pub struct SampledProbe {
    /// The probe's name.
    pub name: &'static str,
    /// The schema of its rows.
    pub schema: Cow<'static, Schema>,
    /// Status, times and rows.
    pub outcome: Outcome,
}

/// All metrics as text.
pub fn write(snapshot: &Snapshot, format: Format) -> String {
    let mut families = Families::default();
    for sampled in &snapshot.probes {
        match sampled.schema.shape {
            Shape::Table | Shape::Histogram => table::expose(sampled, &mut families),
            Shape::Metrics => metrics(sampled, &mut families),
        }
    }
    health(snapshot, &mut families);
    process::expose(&mut families);
    format.write(&families)
}

/// Exports an open key set: the keys that node_exporter exports and those that the probe declares.
/// The meaning of other keys is unknown.
fn metrics(sampled: &SampledProbe, families: &mut Families) {
    let SampledProbe {
        name,
        schema,
        outcome,
    } = sampled;
    let (rows, width) = (&outcome.rows, schema.columns.len());
    for row in 0..rows.len() {
        let Value::Bits(bits) = rows.value(row, 0, width) else {
            continue;
        };
        let key = String::from_utf8_lossy(rows.entity(row).next().unwrap_or_default());
        let value = Number::from_bits(bits, schema.columns[0].storage);
        let declared = schema.metrics.iter().find(|metric| metric.name == key);
        match (node_exporter::metric(name, &key, declared.is_some()), declared) {
            (Some(Some(metric)), declared) => {
                let help = declared.map_or_else(|| format!("{key} as the kernel prints it"), table::help);
                for metric in [Some(metric), node_exporter::second_metric(name, &key)]
                    .into_iter()
                    .flatten()
                {
                    families
                        .family(&metric.name, metric.kind, &help)
                        .sample([], value.times(metric.factor));
                }
            }
            (None, Some(declared)) => {
                let family = generated_names::name(name, declared);
                families
                    .family(&family, declared.kind.into(), &table::help(declared))
                    .sample([], value.scaled(declared.unit));
            }
            (Some(None), _) | (None, None) => {}
        }
    }
}

/// Exports success and duration of each probe's read, as node_exporter does for its collectors.
fn health(snapshot: &Snapshot, families: &mut Families) {
    const SUCCESS: &str = "whether the newest read of each running probe succeeded";
    const DURATION: &str = "duration of the newest read of each probe";
    for SampledProbe { name, outcome, .. } in &snapshot.probes {
        let labels = [("probe", name.as_bytes())];
        let succeeded = match outcome.status {
            Status::Ok => true,
            // A probe that was not due keeps its previous rows; one that did not finish has a
            // reason.
            Status::Skipped => outcome.reason.is_empty() && !outcome.rows.is_empty(),
            Status::Failed | Status::Unavailable => false,
        };
        families
            .family("loadprint_probe_success", Kind::Gauge, SUCCESS)
            .sample(labels, Number::Uint(u64::from(succeeded)));
    }
    for SampledProbe { name, outcome, .. } in &snapshot.probes {
        if outcome.status == Status::Ok {
            let seconds = (outcome.end_ns - outcome.start_ns) as f64 / 1e9;
            families
                .family("loadprint_probe_duration_seconds", Kind::Gauge, DURATION)
                .sample([("probe", name.as_bytes())], Number::Double(seconds));
        }
    }
    families
        .family(
            "loadprint_sample_timestamp_seconds",
            Kind::Gauge,
            "Unix time of the read of these values",
        )
        .sample([], Number::Double(snapshot.realtime_ns as f64 / 1e9));
}

#[cfg(test)]
mod tests;
