//! Reads the status counters of the server, InnoDB's metrics, and settings of dirty pages and the
//! redo log (`mysql`).
//!
//! Every source except SHOW GLOBAL STATUS is optional: a source that the server refuses is not read
//! again, and a row has the reason.

use super::client::Failure;
use super::metrics::METRICS;
use super::monitor::Monitor;
use super::server::Kind;
use super::server::Link;
use super::server::RecorderCounts;
use super::server::Server;
use crate::prelude::*;

/// The probe's line in the registry.
pub const ENTRY: ProbeEntry = ProbeEntry::new(
    "mysql",
    "status counters of the MySQL server, and InnoDB's metrics",
    &SCHEMA,
    open,
)
.live();

static SCHEMA: Schema = Schema::metrics_or_text(METRICS);
/// Value and text.
const WIDTH: usize = 2;

/// Reads between two reads of the settings, which can change while the server runs.
const VARIABLES_EVERY: u32 = 60;
const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_redo_log_capacity', 'innodb_log_file_size', \
     'innodb_log_files_in_group', 'innodb_buffer_pool_size', 'innodb_page_size', 'innodb_max_dirty_pages_pct', \
     'innodb_max_dirty_pages_pct_lwm', 'innodb_adaptive_flushing_lwm', 'innodb_io_capacity', 'innodb_io_capacity_max', \
     'innodb_flush_log_at_trx_commit', 'sync_binlog', 'max_connections', 'query_cache_type', 'query_cache_size')";
const ENABLED_METRICS: &str =
    "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE STATUS = 'enabled'";
/// For servers without the column STATUS: MariaDB 10.5 and later.
const ENABLED_METRICS_MARIADB: &str =
    "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE ENABLED = 1";
/// Counters that show the checkpoint age: with any of these, SHOW ENGINE INNODB STATUS is not read.
const CHECKPOINTS: [&[u8]; 3] = [
    b"Innodb_redo_log_checkpoint_lsn",
    b"Innodb_checkpoint_age",
    b"Innodb_lsn_last_checkpoint",
];

#[derive(Debug)]
struct Status {
    server: &'static Server,
    /// The login for which the following values are valid.
    login: u64,
    reads: u32,
    /// The statement on INNODB_METRICS that the server understands.
    select_metrics: &'static str,
    metrics: Source,
    engine: Source,
    variables: Source,
    monitor: Monitor,
    enabling: Source,
}

/// A source in addition to SHOW GLOBAL STATUS.
#[derive(Debug)]
struct Source {
    name: &'static str,
    refusal: Option<Failure>,
}

impl Source {
    fn new(name: &'static str) -> Self {
        Self { name, refusal: None }
    }

    /// Reads it, unless the server does not support it; drops the rows of a read that fails.
    ///
    /// # Errors
    /// Only the loss of the connection.
    fn read(
        &mut self,
        link: &mut Link,
        rows: &mut Rows,
        read: impl FnOnce(&mut Link, &mut Rows) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.refusal.as_ref().is_some_and(Failure::is_unsupported) {
            return Ok(());
        }
        let before = rows.len();
        self.refusal = read(link, rows).err();
        if let Some(failure) = &self.refusal {
            rows.truncate(before, WIDTH);
            if link.is_lost() {
                return Err(failure.clone());
            }
        }
        Ok(())
    }

    /// Appends a row with the reason why it is left out, if it is.
    fn report(&self, rows: &mut Rows) {
        if let Some(failure) = &self.refusal {
            rows.row_joined(&[b"loadprint.refused.", self.name.as_bytes()]);
            rows.null();
            rows.text(failure.to_string().as_bytes());
        }
    }
}

fn open(_: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let server = super::server(options)?;
    let mut status = Status::new(server);
    let monitor = status.monitor.clone();
    let probe = Background::new("mysql", move |rows| status.read(rows));
    Ok(Box::new(probe.with_cleanup(move || {
        monitor.restore(server);
        server.close();
    })))
}

impl Status {
    fn new(server: &'static Server) -> Self {
        Self {
            server,
            login: 0,
            reads: 0,
            select_metrics: ENABLED_METRICS,
            metrics: Source::new("innodb_metrics"),
            engine: Source::new("engine_innodb_status"),
            variables: Source::new("variables"),
            monitor: Monitor::default(),
            enabling: Source::new("innodb_monitor"),
        }
    }

    fn read(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let mut link = self.server.link()?;
        let read = self.read_all(&mut link, rows);
        read.map_err(|failure| self.server.error(&failure))
    }

    fn read_all(&mut self, link: &mut Link, rows: &mut Rows) -> Result<(), Failure> {
        if self.login != link.recorder_counts.connections {
            // After a new login the server or the privileges can be different.
            *self = Self {
                monitor: self.monitor.clone(),
                login: link.recorder_counts.connections,
                ..Self::new(self.server)
            };
            if self.server.monitor {
                let Self {
                    monitor, enabling, ..
                } = self;
                enabling.read(link, rows, |link, _| monitor.enable(link))?;
            }
        }
        let has_checkpoint = self.read_status(link, rows)?;
        let select = &mut self.select_metrics;
        self.metrics.read(link, rows, |link, rows| {
            let mut read = |select: &str| pairs(link, Kind::Select, select, b"innodb_metrics.", rows);
            match read(select) {
                Err(failure) if failure.is_unknown_column() => {
                    *select = ENABLED_METRICS_MARIADB;
                    read(select)
                }
                read => read,
            }
        })?;
        if !has_checkpoint {
            self.engine.read(link, rows, read_engine)?;
        }
        if self.reads.is_multiple_of(VARIABLES_EVERY) {
            self.variables.read(link, rows, |link, rows| {
                pairs(link, Kind::ShowVariables, VARIABLES, b"variables.", rows)
            })?;
        }
        self.reads += 1;
        for source in [&self.metrics, &self.engine, &self.variables, &self.enabling] {
            source.report(rows);
        }
        Ok(())
    }

    /// Reads SHOW GLOBAL STATUS, and appends the counts of the recorder; true if the status has the
    /// checkpoint age.
    fn read_status(&self, link: &mut Link, rows: &mut Rows) -> Result<bool, Failure> {
        let bytes_sent = link.recorder_counts.bytes_sent;
        let before = rows.len();
        pairs(link, Kind::ShowStatus, "SHOW GLOBAL STATUS", b"", rows)?;
        let mut names = (before..rows.len()).filter_map(|row| rows.entity(row).next());
        let has_checkpoint = names.any(|name| CHECKPOINTS.contains(&name));
        // The server has counted the statement, but not its response.
        recorder_rows(
            rows,
            &RecorderCounts {
                bytes_sent,
                ..link.recorder_counts
            },
        );
        Ok(has_checkpoint)
    }
}

/// Appends names and values: an integer, or otherwise the text.
fn pairs(link: &mut Link, kind: Kind, sql: &str, prefix: &[u8], rows: &mut Rows) -> Result<(), Failure> {
    link.query(kind, sql, |cells| {
        if let Some(name) = cells.get(0) {
            rows.row_joined(&[prefix, name]);
            cell(rows, cells.get(1));
        }
    })
}

fn cell(rows: &mut Rows, value: Option<&[u8]>) {
    let integer = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i64>().ok();
    match value.map(|text| (text, integer(text))) {
        Some((_, Some(number))) => {
            rows.int(number);
            rows.null();
        }
        Some((text, None)) => {
            rows.null();
            rows.text(text);
        }
        None => rows.nulls(WIDTH),
    }
}

fn recorder_rows(rows: &mut Rows, counts: &RecorderCounts) {
    let mut count = |name: &str, count: u64| {
        rows.row_joined(&[b"loadprint.", name.as_bytes()]);
        rows.int(i64::try_from(count).unwrap_or(i64::MAX));
        rows.null();
    };
    count("connections", counts.connections);
    count("queries", counts.queries);
    count("bytes_received", counts.bytes_received);
    count("bytes_sent", counts.bytes_sent);
    for (name, number) in Kind::NAMES.iter().zip(counts.by_kind) {
        count(name, number);
    }
}

/// The lines of the section LOG, and their metrics (`log_print` in storage/innobase/log).
const LINES: [(&str, &str); 3] = [
    ("Log sequence number", "innodb_status.log_sequence_number"),
    ("Log flushed up to", "innodb_status.log_flushed_up_to"),
    ("Last checkpoint at", "innodb_status.last_checkpoint_at"),
];

/// Appends the redo log positions, for servers without status counters of checkpoints (MySQL before 8.0.30).
///
/// # Errors
/// The error of the server.
fn read_engine(link: &mut Link, rows: &mut Rows) -> Result<(), Failure> {
    link.query(Kind::ShowEngineStatus, "SHOW ENGINE INNODB STATUS", |cells| {
        parse(cells.get(2).unwrap_or_default(), rows);
    })
}

/// Parses the lines; a missing line has no row.
///
/// ```text
/// Log sequence number          34256431
/// Last checkpoint at           34256431
/// ```
fn parse(page: &[u8], rows: &mut Rows) {
    for line in String::from_utf8_lossy(page).lines() {
        for (start, metric) in LINES {
            let Some(number) = line.strip_prefix(start) else {
                continue;
            };
            // Other lines of MySQL 8.0 start in the same way: the rest must be a number.
            if let Ok(number) = number.trim().parse() {
                rows.row(&[metric.as_bytes()]);
                rows.int(number);
                rows.null();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use loadprint_recording::rows::Value;

    use super::*;

    #[test]
    fn values_that_are_not_64_bit_integers_are_stored_as_text() {
        let mut rows = Rows::default();
        let values = ["42", "-1", "18446744073709551615", "0.000000", "ON", ""];
        for value in values {
            rows.row(&[value.as_bytes()]);
            cell(&mut rows, Some(value.as_bytes()));
        }
        let bits = |row| rows.value(row, 0, WIDTH);
        assert_eq!(bits(0), Value::Bits(42));
        assert_eq!(bits(1), Value::Bits((-1_i64).cast_unsigned()));
        for (row, text) in values.iter().enumerate().skip(2) {
            assert_eq!(
                (bits(row), rows.value(row, 1, WIDTH)),
                (Value::Null, Value::Text(text.as_bytes()))
            );
        }
    }

    #[test]
    fn lines_of_the_section_log_are_parsed() {
        // The section of MariaDB 10.11 and MySQL 5.7, then that of MySQL 8.0 and later.
        let old = "LOG\n---\nLog sequence number 45118\nLog flushed up to   45118\nPages flushed up to 45118\n\
                   Last checkpoint at  45102\n0 pending log flushes";
        let new = "LOG\n---\nLog sequence number          19671542\nLog buffer assigned up to    19671542\n\
                   Log flushed up to            19671540\nLast checkpoint at           19671532\n";
        for (page, values) in [
            (old, [45118, 45118, 45102]),
            (new, [19671542, 19671540, 19671532]),
        ] {
            let mut rows = Rows::default();
            parse(page.as_bytes(), &mut rows);
            let positions: Vec<_> = (0..rows.len()).map(|row| rows.value(row, 0, 2)).collect();
            assert_eq!(positions, values.map(Value::Bits));
        }
    }
}
