//! `mysql_digests`: what statements the server has run, by their normalised text, at the first and the last tick.

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

use super::PerformanceTable;
use super::client::Cells;
use super::client::Failure;
use super::server::Kind;
use super::server::Server;
use crate::Host;
use crate::NotRunning;
use crate::Options;
use crate::Probe;
use crate::ProbeEntry;
use crate::ProbeError;
use crate::background::Background;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "mysql_digests",
    "statements of the MySQL server by their normalised text, at both ends",
    &SCHEMA,
    open,
)
.at_ends()
.live();

static ENTITY: &[Text] = &[text("schema"), text("digest")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
const TABLE: PerformanceTable = PerformanceTable {
    name: "events_statements_summary_by_digest",
    since: 50_605,
    in_mariadb: true,
};
/// The row that the server keeps for all statements whose digest found no place; its own DIGEST is NULL.
const NO_PLACE: &[u8] = b"(no place)";

const fn count(name: &'static str, help: &'static str, source: &'static str) -> Column {
    Column::counter(name, Unit::One, help, source)
}

static COLUMNS: &[Column] = &[
    Column::info(
        "digest_text",
        "the statement, values replaced by ?",
        "DIGEST_TEXT",
    ),
    count("count", "executions", "COUNT_STAR"),
    Column::counter(
        "sum_timer_wait",
        Unit::Picosecond,
        "time in them",
        "SUM_TIMER_WAIT",
    )
    .lower(),
    Column::counter(
        "sum_lock_time",
        Unit::Picosecond,
        "time waiting for table locks",
        "SUM_LOCK_TIME",
    )
    .lower(),
    count("errors", "errors raised", "SUM_ERRORS").lower(),
    count("warnings", "warnings raised", "SUM_WARNINGS").lower(),
    count("rows_affected", "rows changed", "SUM_ROWS_AFFECTED"),
    count("rows_sent", "rows sent", "SUM_ROWS_SENT"),
    count(
        "rows_examined",
        "rows read from storage engines",
        "SUM_ROWS_EXAMINED",
    )
    .lower(),
    count("tmp_tables", "temporary tables made", "SUM_CREATED_TMP_TABLES").lower(),
    count(
        "tmp_disk_tables",
        "of these on disk",
        "SUM_CREATED_TMP_DISK_TABLES",
    )
    .lower(),
    count("sort_rows", "rows sorted", "SUM_SORT_ROWS"),
    count(
        "no_index_used",
        "executions that scanned a table",
        "SUM_NO_INDEX_USED",
    )
    .lower(),
    count(
        "no_good_index_used",
        "executions that found no good index",
        "SUM_NO_GOOD_INDEX_USED",
    )
    .lower(),
    Column::counter(
        "cpu_time",
        Unit::Picosecond,
        "CPU time, from MySQL 8.0.28 on, 0 unless its consumer is on",
        "SUM_CPU_TIME",
    )
    .lower(),
];

/// Only what is stored: QUERY_SAMPLE_TEXT would bring the values of statements.
fn question(columns: &[Column]) -> String {
    let columns: Vec<_> = columns.iter().map(|column| column.source.as_ref()).collect();
    format!(
        "SELECT SCHEMA_NAME, DIGEST, {} FROM performance_schema.events_statements_summary_by_digest",
        columns.join(", ")
    )
}

fn open(_: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let server = options.mysql.ok_or_else(super::nobody_named_one)?;
    server.log_in()?;
    super::performance_schema(server, TABLE)?;
    let probe = Background::new("mysql_digests", move |rows| read(server, rows));
    Ok(Box::new(probe))
}

fn read(server: &'static Server, rows: &mut Rows) -> Result<(), ProbeError> {
    let mut link = server.link()?;
    let mut ask = |columns: &[Column]| link.query(Kind::Select, &question(columns), |cells| row(rows, cells));
    let answered = match ask(COLUMNS) {
        // 1054: no column SUM_CPU_TIME, the last one.
        Err(Failure { number: 1054, .. }) => ask(&COLUMNS[..COLUMNS.len() - 1]),
        answered => answered,
    };
    answered.map_err(|failure| ProbeError::Source(format!("{}: {failure}", server.account().describe())))
}

fn row(rows: &mut Rows, cells: &Cells<'_>) {
    rows.row(&[cells.get(0).unwrap_or_default(), cells.get(1).unwrap_or(NO_PLACE)]);
    match cells.get(2) {
        Some(text) => rows.text(text),
        None => rows.null(),
    }
    for place in 1..COLUMNS.len() {
        let cell = cells
            .get(2 + place)
            .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        rows.uint_or_null(cell);
    }
}
