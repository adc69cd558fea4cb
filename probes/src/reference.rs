//! Generates the metric reference, `docs/metrics.md`, from the declarations of all probes.

use loadprint_recording::schema::Better;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Kind;
use loadprint_recording::schema::Shape;
use loadprint_recording::schema::Unit;

use crate::Cadence;
use crate::PROBES;
use crate::ProbeEntry;

const HEAD: &str = "\
# Metric reference

`loadprint-collect probes --format markdown` prints this page from the declarations of the probes; a
test compares the two. [recording-format.md](recording-format.md) explains shapes, units and kinds.
Counters are cumulative, as printed by their source; a value that the source does not print is null.
*Better* shows whether a higher or a lower value is better, all else equal.
";

/// The whole reference as Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    page += "\n| probe | description |\n|---|---|\n";
    for entry in PROBES {
        line(
            &mut page,
            &[&format!("[{0}](#{0})", entry.name), &cell(entry.help)],
        );
    }
    PROBES.iter().for_each(|entry| section(entry, &mut page));
    page
}

fn section(entry: &ProbeEntry, page: &mut String) {
    let schema = entry.schema;
    let (shape, table) = match schema.shape {
        Shape::Table => ("table", "column"),
        Shape::Metrics => ("metrics", "metric"),
        Shape::Histogram => ("histogram", "column"),
    };
    let entity: Vec<_> = schema.entity.iter().map(|name| format!("`{name}`")).collect();
    let request = if entry.on_request {
        format!("; only with `--with {}`", entry.name)
    } else {
        String::new()
    };
    page.push_str(&format!(
        "\n## {}\n{}.\n\nShape `{shape}`, entity {}; read at {}{request}.\n",
        entry.name,
        capitalised(entry.help),
        entity.join(", "),
        cadence(entry.cadence),
    ));
    let columns = match schema.shape {
        Shape::Metrics => &schema.metrics,
        Shape::Table | Shape::Histogram => &schema.columns,
    };
    if schema.shape == Shape::Metrics {
        page.push_str("All metrics of the source are recorded; the unit of a metric that is not listed here is unknown.\n");
        // Some tables also have a text column.
        for column in schema.columns.iter().filter(|column| column.name != "value") {
            page.push_str(&format!("Column `{}`: {}.\n", column.name, column.help));
        }
    }
    if columns.is_empty() {
        return;
    }
    page.push('\n');
    line(page, &[table, "unit", "kind", "better", "meaning", "source"]);
    page.push_str("|---|---|---|---|---|---|\n");
    columns.iter().for_each(|column| row(column, page));
}

fn row(column: &Column, page: &mut String) {
    let kind = match (column.kind, column.bits) {
        (Kind::Counter, Some(bits)) => &format!("counter, {bits} bits"),
        (Kind::Counter, None) => "counter",
        (Kind::Gauge, _) => "gauge",
        (Kind::Histogram, _) => "histogram",
        (Kind::Info, _) => "info",
    };
    let better = match column.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "",
    };
    // A text has no unit.
    let unit = if column.kind == Kind::Info {
        String::new()
    } else {
        unit(column.unit)
    };
    let name = format!("`{}`", column.name);
    line(
        page,
        &[
            &name,
            &unit,
            kind,
            better,
            &cell(&column.help),
            &cell(&column.source),
        ],
    );
}

/// The name of a unit in the metadata of a recording.
fn unit(unit: Unit) -> String {
    serde_json::to_value(unit)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// The description of a cadence.
#[must_use]
pub fn cadence(cadence: Cadence) -> &'static str {
    match cadence {
        Cadence::Every => "every tick",
        Cadence::Nth => "every n-th tick (`--threads-every`) and the last one",
        Cadence::Slow => "every tenth of the n-th ticks (`--threads-every`) and the last one",
        Cadence::Ends => "the first and the last tick",
    }
}

fn capitalised(phrase: &str) -> String {
    let mut letters = phrase.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Escapes text for a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn line(page: &mut String, cells: &[&str]) {
    page.push('|');
    for cell in cells {
        page.push(' ');
        page.push_str(cell);
        page.push_str(if cell.is_empty() { "|" } else { " |" });
    }
    page.push('\n');
}
