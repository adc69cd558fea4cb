//! Reads the MySQL or MariaDB server under test over one connection of libmysqlclient, for which no
//! tick waits.
//!
//! `docs/mysql-probe.md` lists the privileges of the account and the counters of each version.

pub mod client;
pub mod digests;
mod metrics;
mod monitor;
pub mod server;
pub mod statements;
pub mod status;
mod wire;

/// The address and the account of the server.
pub use loadprint_mysqlclient as account;

use self::client::Failure;
use self::server::Kind;
use self::server::QueryError;
use self::server::Server;
use crate::NotRunning;
use crate::Options;

/// The server under test, after a login.
///
/// # Errors
/// [`NotRunning`] if none is named, or it refuses the login.
fn server(options: &Options) -> Result<&'static Server, NotRunning> {
    let server = options.mysql.ok_or_else(|| {
        NotRunning::Off(
            "no server is named; name one with --mysql-socket, --mysql-host or --mysql-defaults-file, and --mysql-user and \
             --mysql-password-file"
                .to_owned(),
        )
    })?;
    server.log_in()?;
    Ok(server)
}

/// A table of performance_schema and the versions that have it.
#[derive(Clone, Copy, Debug)]
struct PerformanceTable {
    name: &'static str,
    /// The first version of MySQL that has it.
    since: [u32; 3],
    in_mariadb: bool,
}

impl PerformanceTable {
    /// Why a server does not return the table, with the fix; `None` if it was read.
    ///
    /// The version only explains an error: a proxy greets with another one than the server behind it has.
    /// Servers check the privilege before the existence of a table, so error 1142 does not mean
    /// that it exists.
    fn refusal(&self, version: &str, is_off: bool, read: Result<(), Failure>) -> Option<String> {
        let name = self.name;
        let since = self.since.map(|part| part.to_string()).join(".");
        let is_mariadb = version.contains("MariaDB");
        let failure = match read {
            Err(failure) if failure.is_unsupported() => {
                if is_mariadb && !self.in_mariadb {
                    return Some(format!(
                        "MariaDB has no table performance_schema.{name}; MySQL {since} and later has it"
                    ));
                }
                if !is_mariadb && is_older(version, &self.since) {
                    return Some(format!(
                        "MySQL {version} has no table performance_schema.{name}; it needs MySQL {since} or later"
                    ));
                }
                Some(failure)
            }
            read => read.err(),
        };
        if is_off {
            return Some(
                "performance_schema is off; set performance_schema=ON in the configuration of the server"
                    .to_owned(),
            );
        }
        let failure = failure?;
        Some(match failure.number {
            1142 | 1044 => format!("{failure}; run GRANT SELECT ON performance_schema.{name} TO the account"),
            _ => failure.to_string(),
        })
    }
}

/// Whether a version is before `since`, by the parts that it has: `8.0.mysql_aurora.3.05.2` has no patch number.
fn is_older(version: &str, since: &[u32]) -> bool {
    let parts: Vec<u32> = version
        .split(['.', '-'])
        .map_while(|part| part.parse().ok())
        .take(since.len())
        .collect();
    parts.as_slice() < &since[..parts.len()]
}

/// The server under test, if the table of performance_schema can be read. A server that does not
/// answer may start later.
///
/// # Errors
/// Those of [`server`]; [`NotRunning::Unavailable`] with the reason and the fix.
fn server_with(table: PerformanceTable, options: &Options) -> Result<&'static Server, NotRunning> {
    let server = server(options)?;
    let check = server.query_once(move |link| {
        let mut is_off = false;
        link.query(Kind::Select, "SELECT @@GLOBAL.performance_schema", |cells| {
            is_off = cells.get(0) == Some(b"0");
        })?;
        let select = format!("SELECT 1 FROM performance_schema.{} LIMIT 1", table.name);
        let read = link.query(Kind::Select, &select, |_| {});
        Ok(table.refusal(&link.version(), is_off, read))
    });
    let reason = match check {
        Ok(reason) => reason,
        Err(QueryError::NoAnswer(_)) => None,
        Err(QueryError::Refused(failure)) => Some(failure.to_string()),
    };
    reason.map_or(Ok(server), |reason| {
        let description = server.account().describe();
        Err(NotRunning::Unavailable(format!("{description}: {reason}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(version: &str, number: u32) -> String {
        let failure = Failure {
            number,
            message: "SELECT command denied".to_owned(),
        };
        let refusal = statements::TABLE.refusal(version, false, Err(failure));
        refusal.unwrap_or_default()
    }

    #[test]
    fn missing_table_is_not_a_missing_privilege() {
        // MySQL 5.7.22 answers 1142 to an account without a grant and 1146 to root.
        for number in [1142, 1146] {
            let reason = refusal("5.7.22", number);
            assert_eq!(
                reason,
                "MySQL 5.7.22 has no table performance_schema.events_statements_histogram_global; \
                 it needs MySQL 8.0.3 or later"
            );
        }
        // MariaDB reports version 5.5.5 to old clients.
        assert!(refusal("5.5.5-10.11.19-MariaDB", 1142).starts_with("MariaDB has no table"));
        // Without a patch number the table may exist.
        for version in ["8.0.12", "8.0.mysql_aurora.3.05.2", "8.4.0-log", "unknown"] {
            let reason = refusal(version, 1142);
            assert!(
                reason.contains("GRANT SELECT ON performance_schema.events_statements_h"),
                "{reason}"
            );
        }
        let reason = refusal("5.7.mysql_aurora.2.11.3", 1146);
        assert!(
            reason.starts_with("MySQL 5.7.mysql_aurora.2.11.3 has no table"),
            "{reason}"
        );
        assert!(
            refusal("5.7.22", 2013).starts_with("SELECT command denied"),
            "not the answer of a server"
        );
    }

    #[test]
    fn an_answer_decides_against_the_version() {
        let table = statements::TABLE;
        for version in ["5.5.30", "5.5.5-10.6.0-MariaDB", "8.0.28"] {
            assert_eq!(table.refusal(version, false, Ok(())), None, "{version}");
            let off = table.refusal(version, true, Ok(()));
            assert!(off.is_some_and(|reason| reason.starts_with("performance_schema is off")));
        }
    }
}
