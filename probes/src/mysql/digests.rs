//! Reads the statements that the server has executed, by digest, at the first and the last tick
//! (`mysql_digests`).

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
    "statements of the MySQL server by digest, at the first and the last tick",
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
/// The row of all statements without a digest row, for which the table has no room; its DIGEST is
/// NULL.
const NO_DIGEST_ROW: &[u8] = b"(no place)";

const fn count(name: &'static str, help: &'static str, source: &'static str) -> Column {
    Column::counter(name, Unit::One, help, source)
}

static COLUMNS: &[Column] = &[
    Column::info(
        "digest_text",
        "the normalised statement, with ? for values",
        "DIGEST_TEXT",
    ),
    count("count", "executions", "COUNT_STAR"),
    Column::counter(
        "sum_timer_wait",
        Unit::Picosecond,
        "execution time",
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
    count("tmp_tables", "temporary tables created", "SUM_CREATED_TMP_TABLES").lower(),
    count(
        "tmp_disk_tables",
        "temporary tables created on disk",
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
        "executions without a good index",
        "SUM_NO_GOOD_INDEX_USED",
    )
    .lower(),
    Column::counter(
        "cpu_time",
        Unit::Picosecond,
        "CPU time, since MySQL 8.0.28; 0 unless its consumer is enabled",
        "SUM_CPU_TIME",
    )
    .lower(),
];

/// Selects only these columns: QUERY_SAMPLE_TEXT would contain values of statements.
fn select_statement(columns: &[Column]) -> String {
    let columns: Vec<_> = columns.iter().map(|column| column.source.as_ref()).collect();
    format!(
        "SELECT SCHEMA_NAME, DIGEST, {} FROM performance_schema.events_statements_summary_by_digest",
        columns.join(", ")
    )
}

fn open(_: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let server = options.mysql.ok_or_else(super::no_server_named)?;
    server.log_in()?;
    super::performance_schema(server, TABLE)?;
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
    result.map_err(|failure| ProbeError::Source(format!("{}: {failure}", server.account().describe())))
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
        let cell = cells
            .get(2 + column)
            .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        rows.uint_or_null(cell);
    }
}
