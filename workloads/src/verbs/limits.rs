//! Checks before a run that limits allow it: connections, prepared statements, open files.

use anyhow::Result;
use anyhow::bail;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;

use crate::driver::Connection;
use crate::driver::DbError;

/// Files of this process other than load connections: recordings, standard streams, the connection
/// that reads counters.
const OTHER_FILES: u64 = 64;

/// Requirements of a run on one server.
#[derive(Debug, Clone, Copy)]
pub struct Requirements {
    /// Connections of the load.
    pub connections: usize,
    /// Statements that each connection keeps prepared on the server.
    pub handles: usize,
}

/// A limit of the server and its current use.
#[derive(Debug, Clone, Copy)]
struct Limit {
    max: u64,
    used: u64,
}

impl Limit {
    fn free(self) -> u64 {
        self.max.saturating_sub(self.used)
    }

    /// `None` if the server has no such variable.
    fn read(connection: &mut dyn Connection, variable: &str, status: &str) -> Result<Option<Self>, DbError> {
        let max = number(connection, &format!("SHOW GLOBAL VARIABLES LIKE '{variable}'"))?;
        let used = number(connection, &format!("SHOW GLOBAL STATUS LIKE '{status}'"))?;
        Ok(max.zip(used).map(|(max, used)| Self { max, used }))
    }
}

fn number(connection: &mut dyn Connection, sql: &str) -> Result<Option<u64>, DbError> {
    let rows = connection.rows(sql)?;
    let cell = rows.first().and_then(|row| row.get(1)?.as_deref());
    Ok(cell.and_then(|text| text.parse().ok()))
}

/// Refuses a run that exceeds the server's limits.
///
/// # Errors
/// The numbers and how to fix it, or a database error.
pub fn check_server(requirements: Requirements, connection: &mut dyn Connection) -> Result<()> {
    let connections = Limit::read(connection, "max\\_connections", "Threads\\_connected")?;
    let statements = Limit::read(
        connection,
        "max\\_prepared\\_stmt\\_count",
        "Prepared\\_stmt\\_count",
    )?;
    check(requirements, connections, statements)
}

fn check(requirements: Requirements, connections: Option<Limit>, statements: Option<Limit>) -> Result<()> {
    let wanted = requirements.connections as u64;
    if let Some(limit) = connections.filter(|limit| wanted > limit.free()) {
        bail!(
            "the run needs {wanted} connections, but {} are available (max_connections {}, Threads_connected {}): \
             raise max_connections on the server or lower --threads",
            limit.free(),
            limit.max,
            limit.used
        );
    }
    let kept = wanted * requirements.handles as u64;
    if let Some(limit) = statements.filter(|limit| kept > limit.free()) {
        bail!(
            "{wanted} threads × {} statements = {kept} prepared statements, but {} are available \
             (max_prepared_stmt_count {}, Prepared_stmt_count {}): raise max_prepared_stmt_count on the server, \
             lower --threads or --tables, or use --protocol=emulated",
            requirements.handles,
            limit.free(),
            limit.max,
            limit.used
        );
    }
    Ok(())
}

/// Raises the limit of open files as required.
///
/// # Errors
/// If the hard limit is too low.
pub fn raise_file_limit(connections: usize) -> Result<()> {
    let wanted = connections as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if let Some(max) = limit.maximum.filter(|max| *max < wanted) {
        bail!(
            "{connections} connections need {wanted} open files, but the hard limit of this process is {max}: \
             raise it (ulimit -Hn, LimitNOFILE= of the service) or lower --threads"
        );
    }
    let raised = Rlimit {
        current: limit.maximum.or(Some(wanted)),
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        bail!("{connections} connections need {wanted} open files, and raising the limit failed: {error}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(connections: usize, handles: usize, used: [u64; 2]) -> Option<String> {
        let requirements = Requirements { connections, handles };
        let limit = |max, used| Some(Limit { max, used });
        let judged = check(requirements, limit(151, used[0]), limit(16_382, used[1]));
        judged.err().map(|error| error.to_string())
    }

    #[test]
    fn used_connections_are_not_available() {
        assert_eq!(refusal(148, 0, [3, 0]), None);
        let line = refusal(149, 0, [3, 0]).unwrap();
        let numbers =
            "the run needs 149 connections, but 148 are available (max_connections 151, Threads_connected 3)";
        assert!(line.starts_with(numbers), "{line}");
    }

    #[test]
    fn statements_of_all_threads_are_summed() {
        // 64 tables with nine statements each, BEGIN and COMMIT.
        let line = refusal(64, 64 * 9 + 2, [1, 0]).unwrap();
        assert!(
            line.contains("64 threads × 578 statements = 36992") && line.contains("16382 are available"),
            "{line}"
        );
        assert_eq!(refusal(64, 0, [1, 16_382]), None);
        assert_eq!(refusal(1, 100, [1, 16_282]), None);
        assert!(refusal(1, 101, [1, 16_282]).is_some());
    }

    #[test]
    fn a_server_without_a_limit_is_not_checked() {
        let requirements = Requirements {
            connections: 1000,
            handles: 1000,
        };
        assert!(check(requirements, None, None).is_ok());
    }
}
