//! Converts the samples and descriptions of an endpoint to rows: entity (endpoint, metric), then
//! value, time and text.

use std::collections::HashMap;

use loadprint_recording::schema::Shape;

use super::exposition::Item;
use crate::prelude::*;

static ENTITY: &[Text] = &[text("endpoint"), text("metric")];

/// Each endpoint has its own set of metrics.
pub static SCHEMA: Schema = {
    let mut schema = Schema::table(ENTITY, COLUMNS);
    schema.shape = Shape::Metrics;
    schema
};

static COLUMNS: &[Column] = columns! {
    gauge(One) "value", "as exposed; null in rows of descriptions", "exposition", stored(Type::Double);
    gauge(Nanosecond) "timestamp_ns",
        "timestamp that the endpoint exposes, CLOCK_REALTIME; of up and scrape_* the start of the scrape",
        "exposition", stored(Type::Int64);
    info "text",
        "text of # HELP, # TYPE, # UNIT and # URL; of up the reason for 0; otherwise the exemplar",
        "exposition";
};

/// Appends a row with a value.
pub fn sample(rows: &mut Rows, entity: [&str; 2], value: f64, timestamp_ns: Option<i64>, text: Option<&str>) {
    rows.row(&entity.map(str::as_bytes));
    rows.double(value);
    match timestamp_ns {
        Some(timestamp_ns) => rows.int(timestamp_ns),
        None => rows.null(),
    }
    match text {
        Some(text) => rows.text(text.as_bytes()),
        None => rows.null(),
    }
}

/// The descriptions that were recorded: a description has a row only when it is new or has changed.
#[derive(Debug, Default)]
pub struct RecordedDescriptions(HashMap<String, String>);

impl RecordedDescriptions {
    /// Appends the row of a sample, or of a new description.
    pub fn item(&mut self, rows: &mut Rows, endpoint: &str, item: Item<'_>) {
        match item {
            Item::Sample {
                series,
                value,
                timestamp_ns,
                exemplar,
            } => sample(rows, [endpoint, series], value, timestamp_ns, exemplar),
            Item::Description { keyword, name, text } => {
                self.description(rows, endpoint, &format!("# {keyword} {name}"), text);
            }
        }
    }

    /// Appends the row of a description, if `text` is new.
    pub fn description(&mut self, rows: &mut Rows, endpoint: &str, key: &str, text: &str) {
        if self.0.get(key).is_some_and(|before| before == text) {
            return;
        }
        rows.row(&[endpoint.as_bytes(), key.as_bytes()]);
        rows.nulls(2);
        rows.text(text.as_bytes());
        self.0.insert(key.to_owned(), text.to_owned());
    }
}
