//! From what the probes gave to what Prometheus scrapes. Nothing here knows a single probe but [`node_exporter`], which says what
//! node_exporter calls things; all other names are made from the declarations.

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

use crate::probe_sampler::Outcome;
use families::Families;
use families::Kind;
use families::Number;
pub use text::Format;

/// What the newest read of every running probe gave.
#[derive(Debug)]
pub struct Published {
    /// When it was read (CLOCK_REALTIME).
    pub realtime_ns: i64,
    /// The probes.
    pub probes: Vec<Sampled>,
}

/// One probe of them.
#[derive(Debug)]
pub struct Sampled {
    /// Its name.
    pub name: &'static str,
    /// What its rows mean.
    pub schema: Cow<'static, Schema>,
    /// What it gave.
    pub outcome: Outcome,
}

/// Everything that is exported, as text.
pub fn write(published: &Published, format: Format) -> String {
    let mut families = Families::default();
    for sampled in &published.probes {
        match sampled.schema.shape {
            Shape::Table | Shape::Histogram => table::expose(sampled, &mut families),
            Shape::Metrics => metrics(sampled, &mut families),
        }
    }
    health(published, &mut families);
    process::expose(&mut families);
    format.write(&families)
}

/// An open key set: what node_exporter has, and what is declared. What a key of which neither is known means nobody could say.
fn metrics(sampled: &Sampled, families: &mut Families) {
    let Sampled {
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
                for metric in [Some(metric), node_exporter::second(name, &key)]
                    .into_iter()
                    .flatten()
                {
                    families
                        .family(&metric.name, metric.kind, &help)
                        .sample([], value.times(metric.times));
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

/// As node_exporter says of its collectors: whether each probe could be read, and what that took.
fn health(published: &Published, families: &mut Families) {
    const SUCCESS: &str = "whether the newest read of each running probe succeeded";
    const DURATION: &str = "how long the newest read of each probe took";
    for Sampled { name, outcome, .. } in &published.probes {
        let labels = [("probe", name.as_bytes())];
        let succeeded = match outcome.status {
            Status::Ok => true,
            // A probe that was not due is as well as at the read before; one that has not answered gives a reason.
            Status::Skipped => outcome.reason.is_empty() && !outcome.rows.is_empty(),
            Status::Failed | Status::Unavailable => false,
        };
        families
            .family("loadprint_probe_success", Kind::Gauge, SUCCESS)
            .sample(labels, Number::Uint(u64::from(succeeded)));
    }
    for Sampled { name, outcome, .. } in &published.probes {
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
            "when the values here were read, in Unix time",
        )
        .sample([], Number::Double(published.realtime_ns as f64 / 1e9));
}

#[cfg(test)]
mod tests;
