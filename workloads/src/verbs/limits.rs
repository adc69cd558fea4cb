//! Checks before a run that limits allow it: connections, prepared statements, open files.

use anyhow::Result;
use anyhow::bail;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;

use crate::driver::Connection;

/// Files of this process other than load connections: recordings, standard streams, the connection
/// that reads counters.
const OTHER_FILES: u64 = 64;

/// A limit of the server with the need of a run for it.
struct Limit {
    variable: &'static str,
    /// Its current use.
    status: &'static str,
    needed: u64,
    need: String,
    alternatives: &'static str,
}

/// The limits for this number of connections and of statements that each keeps prepared.
fn limits(connections: usize, handles: usize) -> [Limit; 2] {
    let kept = connections as u64 * handles as u64;
    [
        Limit {
            variable: "max_connections",
            status: "Threads_connected",
            needed: connections as u64,
            need: format!("the run needs {connections} connections"),
            alternatives: " or lower --threads",
        },
        Limit {
            variable: "max_prepared_stmt_count",
            status: "Prepared_stmt_count",
            needed: kept,
            need: format!("{connections} threads × {handles} statements = {kept} prepared statements"),
            alternatives: ", lower --threads or --tables, or use --protocol=emulated",
        },
    ]
}

impl Limit {
    /// Without one of the numbers there is no limit.
    fn check(&self, max: Option<u64>, used: Option<u64>) -> Result<()> {
        let Some((max, used)) = max.zip(used) else {
            return Ok(());
        };
        let (variable, free) = (self.variable, max.saturating_sub(used));
        if self.needed > free {
            bail!(
                "{}, but {free} are available ({variable} {max}, {} {used}): raise {variable} on the server{}",
                self.need,
                self.status,
                self.alternatives
            );
        }
        Ok(())
    }
}

/// Refuses a run that exceeds the server's limits. A variable that the server does not have is no
/// limit.
///
/// # Errors
/// The numbers and how to fix it, or a database error.
pub fn check_server(connections: usize, handles: usize, connection: &mut dyn Connection) -> Result<()> {
    for limit in limits(connections, handles) {
        let mut number = |scope: &str, name: &str| -> Result<Option<u64>> {
            let name = name.replace('_', "\\_");
            let rows = connection.rows(&format!("SHOW GLOBAL {scope} LIKE '{name}'"))?;
            let cell = rows.first().and_then(|row| row.get(1)?.as_deref());
            Ok(cell.and_then(|text| text.parse().ok()))
        };
        let max = number("VARIABLES", limit.variable)?;
        limit.check(max, number("STATUS", limit.status)?)?;
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
        let [first, second] = limits(connections, handles);
        let used = used.map(Some);
        let checked = first
            .check(Some(151), used[0])
            .and(second.check(Some(16_382), used[1]));
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn used_connections_are_not_available() {
        assert_eq!(refusal(148, 0, [3, 0]), None);
        assert_eq!(
            refusal(149, 0, [3, 0]).unwrap(),
            "the run needs 149 connections, but 148 are available (max_connections 151, Threads_connected 3): \
             raise max_connections on the server or lower --threads"
        );
    }

    #[test]
    fn a_server_without_a_limit_is_not_checked() {
        let [connections, statements] = limits(1000, 1000);
        assert!(connections.check(None, Some(3)).is_ok() && statements.check(Some(1), None).is_ok());
    }

    #[test]
    fn statements_of_all_threads_are_summed() {
        // 64 tables with nine statements each, BEGIN and COMMIT.
        assert_eq!(
            refusal(64, 64 * 9 + 2, [1, 0]).unwrap(),
            "64 threads × 578 statements = 36992 prepared statements, but 16382 are available \
             (max_prepared_stmt_count 16382, Prepared_stmt_count 0): raise max_prepared_stmt_count on the server, \
             lower --threads or --tables, or use --protocol=emulated"
        );
        assert_eq!(refusal(64, 0, [1, 16_382]), None);
        assert_eq!(refusal(1, 100, [1, 16_282]), None);
        assert!(refusal(1, 101, [1, 16_282]).is_some());
    }
}
