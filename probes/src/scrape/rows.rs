//! Converts the samples and descriptions of an endpoint to rows: entity (endpoint, metric), then
//! value, time and text.

use std::collections::HashMap;

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Shape;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Type;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::exposition::Item;

static ENTITY: &[Text] = &[text("endpoint"), text("metric")];

/// Each endpoint has its own set of metrics.
pub static SCHEMA: Schema = {
    let mut schema = Schema::table(ENTITY, COLUMNS);
    schema.shape = Shape::Metrics;
    schema
};

static COLUMNS: &[Column] = &[
    Column::gauge(
        "value",
        Unit::One,
        "as exposed; null in rows of descriptions",
        "exposition",
    )
    .stored(Type::Double),
    Column::gauge(
        "timestamp_ns",
        Unit::Nanosecond,
        "timestamp that the endpoint exposes, CLOCK_REALTIME; of up and scrape_* the start of the scrape",
        "exposition",
    )
    .stored(Type::Int64),
    Column::info(
        "text",
        "text of # HELP, # TYPE, # UNIT and # URL; of up the reason for 0; otherwise the exemplar",
        "exposition",
    ),
];

/// The descriptions that were recorded: a description has a row only when it is new or has changed.
#[derive(Debug, Default)]
pub struct RecordedDescriptions {
    texts: HashMap<Box<str>, Box<str>>,
    key: String,
}

impl RecordedDescriptions {
    /// Appends a row that the recorder adds to a scrape.
    pub fn synthetic(
        &self,
        rows: &mut Rows,
        endpoint: &[u8],
        metric: &[u8],
        value: f64,
        realtime_ns: i64,
        text: Option<&str>,
    ) {
        rows.row(&[endpoint, metric]);
        rows.double(value);
        rows.int(realtime_ns);
        text_or_null(rows, text);
    }

    /// Appends the row with the URL of the endpoint, once. The query is left out: it can contain a
    /// secret.
    pub fn url(&mut self, rows: &mut Rows, endpoint: &[u8], url: &str) {
        let without_query = url.split('?').next().unwrap_or_default();
        self.key.clear();
        self.key.push_str("# URL");
        self.description(rows, endpoint, without_query);
    }

    /// Appends the row of a sample, or of a new description.
    pub fn item(&mut self, rows: &mut Rows, endpoint: &[u8], item: Item<'_>) {
        match item {
            Item::Sample {
                series,
                value,
                timestamp_ns,
                exemplar,
            } => {
                rows.row(&[endpoint, series.as_bytes()]);
                rows.double(value);
                match timestamp_ns {
                    Some(timestamp_ns) => rows.int(timestamp_ns),
                    None => rows.null(),
                }
                text_or_null(rows, exemplar);
            }
            Item::Description { keyword, name, text } => {
                self.key.clear();
                self.key.extend(["# ", keyword, " ", name]);
                self.description(rows, endpoint, text);
            }
        }
    }

    /// Appends the row of `self.key`, if `text` is new.
    fn description(&mut self, rows: &mut Rows, endpoint: &[u8], text: &str) {
        if self.is_new(text) {
            rows.row(&[endpoint, self.key.as_bytes()]);
            rows.nulls(2);
            rows.text(text.as_bytes());
        }
    }

    fn is_new(&mut self, text: &str) -> bool {
        match self.texts.get_mut(self.key.as_str()) {
            Some(before) if **before == *text => false,
            Some(before) => {
                *before = text.into();
                true
            }
            None => {
                self.texts.insert(self.key.as_str().into(), text.into());
                true
            }
        }
    }
}

fn text_or_null(rows: &mut Rows, text: Option<&str>) {
    match text {
        Some(text) => rows.text(text.as_bytes()),
        None => rows.null(),
    }
}
