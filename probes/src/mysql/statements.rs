//! Reads the latency of all statements together, from the histogram of performance_schema
//! (`mysql_statements`).
//!
//! The server defines the bounds of the buckets; they are read at the start and stored in the
//! metadata of the column.

use std::borrow::Cow;

use super::PerformanceTable;
use super::client::Failure;
use super::server::Kind;
use super::server::Link;
use super::server::QueryError;
use super::server::Server;
use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "mysql_statements",
    "latency of all statements in the MySQL server, from its own histogram",
    &SCHEMA,
    open,
)
.read_at(Cadence::Nth)
.live();

static ENTITY: &[Text] = &[text("statements")];
static SCHEMA: Schema = Schema::histogram(ENTITY, COLUMNS);
static COLUMNS: &[Column] = columns! {
    buckets(Picosecond) "buckets",
        "statements by the time they took; the server defines the bounds, and each recording contains them",
        "performance_schema.events_statements_histogram_global", lower;
};

const BOUNDS: &str = "SELECT BUCKET_NUMBER, BUCKET_TIMER_LOW, BUCKET_TIMER_HIGH \
                      FROM performance_schema.events_statements_histogram_global ORDER BY BUCKET_NUMBER";
const COUNTS: &str =
    "SELECT BUCKET_NUMBER, COUNT_BUCKET FROM performance_schema.events_statements_histogram_global";
pub(super) const TABLE: PerformanceTable = PerformanceTable {
    name: "events_statements_histogram_global",
    since: [8, 0, 3],
    in_mariadb: false,
};
/// More buckets than any server has.
const MAX_BUCKETS: usize = 4096;

fn open(_: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let server = super::server_with(TABLE, options)?;
    let bounds = match server.query_once(bounds) {
        Ok(bounds) if bounds.len() > 1 => bounds,
        Ok(_) => {
            let empty =
                "the server's statement histogram has no buckets; enable its consumer statements_digest";
            return Err(NotRunning::Unavailable(empty.to_owned()));
        }
        Err(QueryError::NoAnswer(reason)) => {
            return Err(NotRunning::Unavailable(format!(
                "{reason}; start the recorder after the server, because it reads the bounds of the histogram at the start"
            )));
        }
        Err(QueryError::Refused(failure)) => return Err(NotRunning::Unavailable(failure.to_string())),
    };
    let count = bounds.len() - 1;
    let mut schema = SCHEMA.clone();
    schema.columns.to_mut()[0].bounds = Cow::Owned(bounds);
    let mut buckets = vec![0; count];
    let probe = Background::new("mysql_statements", move |rows| read(server, &mut buckets, rows));
    Ok(Box::new(probe.with_schema(schema)))
}

/// The lower bounds, and infinity for the end of the last bucket.
fn bounds(link: &mut Link) -> Result<Vec<Option<f64>>, Failure> {
    let mut bounds = vec![];
    link.query(Kind::Select, BOUNDS, |cells| {
        bounds.extend(cells.number(1).map(Some));
    })?;
    bounds.truncate(MAX_BUCKETS);
    bounds.push(None);
    Ok(bounds)
}

fn read(server: &'static Server, buckets: &mut [u64], rows: &mut Rows) -> Result<(), ProbeError> {
    let mut read = 0;
    let mut is_malformed = false;
    let counted = server.link()?.query(Kind::Select, COUNTS, |cells| {
        let bucket = cells.number(0).and_then(|index: usize| buckets.get_mut(index));
        match (bucket, cells.number(1)) {
            (Some(bucket), Some(count)) => {
                *bucket = count;
                read += 1;
            }
            _ => is_malformed = true,
        }
    });
    counted.map_err(|failure| server.error(&failure))?;
    if is_malformed || read != buckets.len() {
        return Err(ProbeError::Source(format!(
            "{}: the statement histogram no longer has the {} buckets that it had at the start; restart the recorder",
            server.account().describe(),
            buckets.len()
        )));
    }
    rows.row(&[b"all"]);
    rows.list(buckets);
    Ok(())
}
