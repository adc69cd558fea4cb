//! From what an endpoint says to rows: entity (endpoint, metric), then value, time and text.

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

/// An open key set per endpoint.
pub static SCHEMA: Schema = {
    let mut schema = Schema::table(ENTITY, COLUMNS);
    schema.shape = Shape::Metrics;
    schema
};

static COLUMNS: &[Column] = &[
    Column::gauge("value", Unit::One, "as exposed; null in a row that describes", "exposition")
        .stored(Type::Double),
    Column::gauge(
        "timestamp_ns",
        Unit::Nanosecond,
        "when it was measured, CLOCK_REALTIME, where the endpoint says so; of up and scrape_* when the scrape began",
        "exposition",
    )
    .stored(Type::Int64),
    Column::info(
        "text",
        "of # HELP, # TYPE, # UNIT and # URL what they say, of up why it is 0, else the exemplar",
        "exposition",
    ),
];

/// The descriptions that were recorded, so that each is recorded again only when it changes.
#[derive(Debug, Default)]
pub struct Told {
    texts: HashMap<Box<str>, Box<str>>,
    key: String,
}

impl Told {
    /// A row of the recorder's own about a scrape.
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

    /// The row that says where the endpoint is, the first time; a query may hold what is nobody's business.
    pub fn place(&mut self, rows: &mut Rows, endpoint: &[u8], url: &str) {
        let place = url.split('?').next().unwrap_or_default();
        self.key.clear();
        self.key.push_str("# URL");
        self.described(rows, endpoint, place);
    }

    /// The row of what a line says, if it says something new.
    pub fn row(&mut self, rows: &mut Rows, endpoint: &[u8], item: Item<'_>) {
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
            Item::Described { keyword, name, text } => {
                self.key.clear();
                self.key.extend(["# ", keyword, " ", name]);
                self.described(rows, endpoint, text);
            }
        }
    }

    /// A row of `self.key`, if `text` is new.
    fn described(&mut self, rows: &mut Rows, endpoint: &[u8], text: &str) {
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
