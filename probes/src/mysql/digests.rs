//! Reads the statements that the server has executed, by digest, at the first and the last tick
//! (`mysql_digests`).

use super::PerformanceTable;
use super::client::Cells;
use super::client::Failure;
use super::server::Kind;
use super::server::Server;
use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "mysql_digests",
    "statements of the MySQL server by digest, at the first and the last tick",
    &SCHEMA,
    open,
)
.read_at(Cadence::Ends)
.live();

static ENTITY: &[Text] = &[text("schema"), text("digest")];
static SCHEMA: Schema = Schema::table(ENTITY, COLUMNS);
const TABLE: PerformanceTable = PerformanceTable {
    name: "events_statements_summary_by_digest",
    since: [5, 6, 5],
    in_mariadb: true,
};
/// The row of all statements without a digest row, for which the table has no room; its DIGEST is
/// NULL.
const NO_DIGEST_ROW: &[u8] = b"(no place)";

static COLUMNS: &[Column] = columns! {
    info "digest_text", "the normalised statement, with ? for values", "DIGEST_TEXT";
    counter(One) "count", "executions", "COUNT_STAR";
    counter(Picosecond) "sum_timer_wait", "execution time", "SUM_TIMER_WAIT", lower;
    counter(Picosecond) "sum_lock_time", "time waiting for table locks", "SUM_LOCK_TIME", lower;
    counter(One) "errors", "errors raised", "SUM_ERRORS", lower;
    counter(One) "warnings", "warnings raised", "SUM_WARNINGS", lower;
    counter(One) "rows_affected", "rows changed", "SUM_ROWS_AFFECTED";
    counter(One) "rows_sent", "rows sent", "SUM_ROWS_SENT";
    counter(One) "rows_examined", "rows read from storage engines", "SUM_ROWS_EXAMINED", lower;
    counter(One) "tmp_tables", "temporary tables created", "SUM_CREATED_TMP_TABLES", lower;
    counter(One) "tmp_disk_tables", "temporary tables created on disk", "SUM_CREATED_TMP_DISK_TABLES", lower;
    counter(One) "sort_rows", "rows sorted", "SUM_SORT_ROWS";
    counter(One) "no_index_used", "executions that scanned a table", "SUM_NO_INDEX_USED", lower;
    counter(One) "no_good_index_used", "executions without a good index", "SUM_NO_GOOD_INDEX_USED", lower;
    counter(Picosecond) "cpu_time",
        "CPU time, since MySQL 8.0.28; 0 unless its consumer is enabled", "SUM_CPU_TIME", lower;
};

/// Selects only these columns: QUERY_SAMPLE_TEXT would contain values of statements.
fn select_statement(columns: &[Column]) -> String {
    let columns: Vec<_> = columns.iter().map(|column| column.source.as_ref()).collect();
    format!(
        "SELECT SCHEMA_NAME, DIGEST, {} FROM performance_schema.events_statements_summary_by_digest",
        columns.join(", ")
    )
}

fn open(_: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let server = super::server_with(TABLE, options)?;
    let probe = Background::new("mysql_digests", move |rows| read(server, rows));
    Ok(Box::new(probe))
}

fn read(server: &'static Server, rows: &mut Rows) -> Result<(), ProbeError> {
    let mut link = server.link()?;
    let mut select =
        |columns: &[Column]| link.query(Kind::Select, &select_statement(columns), |cells| row(rows, cells));
    let result = match select(COLUMNS) {
        // 1054: the last column, SUM_CPU_TIME, does not exist.
        Err(Failure { number: 1054, .. }) => select(&COLUMNS[..COLUMNS.len() - 1]),
        result => result,
    };
    result.map_err(|failure| server.error(&failure))
}

fn row(rows: &mut Rows, cells: &Cells<'_>) {
    rows.row(&[
        cells.get(0).unwrap_or_default(),
        cells.get(1).unwrap_or(NO_DIGEST_ROW),
    ]);
    match cells.get(2) {
        Some(text) => rows.text(text),
        None => rows.null(),
    }
    for column in 1..COLUMNS.len() {
        rows.uint_or_null(cells.number(2 + column));
    }
}
