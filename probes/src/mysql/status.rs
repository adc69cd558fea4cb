//! `mysql`: the server's status counters, InnoDB's metrics and what else tells of dirty pages and the redo log.
//!
//! Every source but SHOW GLOBAL STATUS may be missing: one that the server refuses is left out from then on, and told.

use loadprint_recording::rows::Rows;
use loadprint_recording::schema::Schema;

use super::client::Cells;
use super::client::Failure;
use super::engine;
use super::metrics::METRICS;
use super::monitor::Monitor;
use super::server::Kind;
use super::server::Link;
use super::server::Own;
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
    "mysql",
    "status counters of the MySQL server, and InnoDB's metrics",
    &SCHEMA,
    open,
)
.live();

static SCHEMA: Schema = Schema::metrics_or_text(METRICS);
/// Value and text.
const WIDTH: usize = 2;

/// Settings that the counters are judged by; they are read at every so many reads, because any of them may be changed.
const VARIABLES_EVERY: u32 = 60;
const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_redo_log_capacity', 'innodb_log_file_size', \
     'innodb_log_files_in_group', 'innodb_buffer_pool_size', 'innodb_page_size', 'innodb_max_dirty_pages_pct', \
     'innodb_max_dirty_pages_pct_lwm', 'innodb_adaptive_flushing_lwm', 'innodb_io_capacity', 'innodb_io_capacity_max', \
     'innodb_flush_log_at_trx_commit', 'sync_binlog', 'max_connections', 'query_cache_type', 'query_cache_size')";
const METRICS_MYSQL: &str =
    "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE STATUS = 'enabled'";
const METRICS_MARIADB: &str = "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE ENABLED = 1";
/// Any of these tells how far the last checkpoint is behind: the engine's own page need not be read.
const CHECKPOINTS: [&[u8]; 3] = [
    b"Innodb_redo_log_checkpoint_lsn",
    b"Innodb_checkpoint_age",
    b"Innodb_lsn_last_checkpoint",
];

/// Names of [`Own::by_kind`].
const OWN_KINDS: [&str; Kind::ALL.len()] = [
    "com_select",
    "com_show_status",
    "com_show_variables",
    "com_show_engine_status",
    "com_set_option",
];

#[derive(Debug)]
struct Status {
    server: &'static Server,
    /// The login that what follows was learnt on.
    login: u64,
    reads: u32,
    metrics: Source,
    engine: Source,
    variables: Source,
    monitor: Monitor,
}

/// A source beside SHOW GLOBAL STATUS.
#[derive(Debug)]
struct Source {
    name: &'static str,
    refusal: Option<Failure>,
    refused_for_good: bool,
}

impl Source {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            refusal: None,
            refused_for_good: false,
        }
    }

    /// Reads it, unless the server has refused it on this login; rows of a read that failed half way are dropped.
    ///
    /// # Errors
    /// Only the loss of the connection.
    fn read(
        &mut self,
        link: &mut Link,
        rows: &mut Rows,
        read: impl FnOnce(&mut Link, &mut Rows) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.refused_for_good {
            return Ok(());
        }
        let before = rows.len();
        self.refusal = None;
        if let Err(failure) = read(link, rows) {
            rows.truncate(before, WIDTH);
            if link.is_lost() {
                return Err(failure);
            }
            self.refused_for_good = failure.is_unsupported();
            self.refusal = Some(failure);
        }
        Ok(())
    }

    fn tell(&self, rows: &mut Rows) {
        if let Some(failure) = &self.refusal {
            tell(rows, self.name, &failure.to_string());
        }
    }
}

/// Why a source is left out, as a row.
fn tell(rows: &mut Rows, source: &str, why: &str) {
    rows.row_joined(&[b"loadprint.refused.", source.as_bytes()]);
    rows.null();
    rows.text(why.as_bytes());
}

fn open(_: &Host, options: &Options) -> Result<Box<dyn Probe>, NotRunning> {
    let server = options.mysql.ok_or_else(super::nobody_named_one)?;
    server.log_in()?;
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
            metrics: Source::new("innodb_metrics"),
            engine: Source::new("engine_innodb_status"),
            variables: Source::new("variables"),
            monitor: Monitor::default(),
        }
    }

    fn read(&mut self, rows: &mut Rows) -> Result<(), ProbeError> {
        let mut link = self.server.link()?;
        let read = self.read_all(&mut link, rows);
        let place = || self.server.account().describe();
        read.map_err(|failure| ProbeError::Source(format!("{}: {failure}", place())))
    }

    fn read_all(&mut self, link: &mut Link, rows: &mut Rows) -> Result<(), Failure> {
        if self.login != link.own.connections {
            // Another login may be another server, or another account's rights.
            *self = Self {
                monitor: self.monitor.clone(),
                login: link.own.connections,
                ..Self::new(self.server)
            };
            if self.server.account().monitor {
                self.monitor.enable(link)?;
            }
        }
        let has_checkpoint = self.read_status(link, rows)?;
        let metrics = if link.is_mariadb() {
            METRICS_MARIADB
        } else {
            METRICS_MYSQL
        };
        self.metrics.read(link, rows, |link, rows| {
            link.query(Kind::Select, metrics, |cells| {
                pair(rows, b"innodb_metrics.", cells)
            })
        })?;
        if !has_checkpoint {
            self.engine.read(link, rows, engine::read)?;
        }
        if self.reads.is_multiple_of(VARIABLES_EVERY) {
            self.variables.read(link, rows, |link, rows| {
                link.query(Kind::ShowVariables, VARIABLES, |cells| {
                    pair(rows, b"variables.", cells)
                })
            })?;
        }
        self.reads += 1;
        for source in [&self.metrics, &self.engine, &self.variables] {
            source.tell(rows);
        }
        if let Some(why) = self.monitor.refusal() {
            tell(rows, "innodb_monitor", &why);
        }
        Ok(())
    }

    /// SHOW GLOBAL STATUS, and what had been asked by then; true if it tells of checkpoints.
    fn read_status(&self, link: &mut Link, rows: &mut Rows) -> Result<bool, Failure> {
        let answered = link.own.bytes_sent;
        let mut has_checkpoint = false;
        link.query(Kind::ShowStatus, "SHOW GLOBAL STATUS", |cells| {
            let name = cells.get(0).unwrap_or_default();
            has_checkpoint |= CHECKPOINTS.contains(&name);
            pair(rows, b"", cells);
        })?;
        // The server had counted the question, and not yet its answer.
        own(
            rows,
            &Own {
                bytes_sent: answered,
                ..link.own
            },
        );
        Ok(has_checkpoint)
    }
}

/// A name and a value as the server printed it: the integer, or else the text.
fn pair(rows: &mut Rows, prefix: &[u8], cells: &Cells<'_>) {
    let (Some(name), value) = (cells.get(0), cells.get(1)) else {
        return;
    };
    rows.row_joined(&[prefix, name]);
    cell(rows, value);
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

fn own(rows: &mut Rows, own: &Own) {
    let mut count = |name: &str, count: u64| {
        rows.row_joined(&[b"loadprint.", name.as_bytes()]);
        rows.int(i64::try_from(count).unwrap_or(i64::MAX));
        rows.null();
    };
    count("connections", own.connections);
    count("queries", own.queries);
    count("bytes_received", own.bytes_received);
    count("bytes_sent", own.bytes_sent);
    for (name, number) in OWN_KINDS.iter().zip(own.by_kind) {
        count(name, number);
    }
}

#[cfg(test)]
mod tests {
    use loadprint_recording::rows::Value;

    use super::*;

    #[test]
    fn what_is_no_integer_of_64_bits_is_kept_as_text() {
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
}
