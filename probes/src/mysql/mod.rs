//! Reads the MySQL or MariaDB server under test over one connection of libmysqlclient, for which no
//! tick waits.
//!
//! `docs/mysql-probe.md` lists the privileges of the account and the counters of each version.

pub mod account;
pub mod client;
pub mod digests;
mod engine;
mod metrics;
mod monitor;
pub mod server;
pub mod statements;
pub mod status;
mod wire;

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
    /// The first version of MySQL that has it, as the client library numbers it: 80003 for 8.0.3.
    since: u64,
    in_mariadb: bool,
}

impl PerformanceTable {
    /// Why a server does not return the table, with the fix; `None` if it was read. `read` is `None`
    /// where performance_schema is off.
    ///
    /// Servers check the privilege before the existence of a table, so error 1142 does not mean
    /// that it exists.
    fn refusal(&self, version: u64, is_mariadb: bool, read: Option<Result<(), Failure>>) -> Option<String> {
        let name = self.name;
        let since = dotted(self.since);
        if is_mariadb && !self.in_mariadb {
            return Some(format!(
                "MariaDB has no table performance_schema.{name}; MySQL {since} and later has it"
            ));
        }
        if !is_mariadb && version < self.since {
            let version = dotted(version);
            return Some(format!(
                "MySQL {version} has no table performance_schema.{name}; it needs MySQL {since} or later"
            ));
        }
        let Some(read) = read else {
            return Some(
                "performance_schema is off; set performance_schema=ON in the configuration of the server"
                    .to_owned(),
            );
        };
        let failure = read.err()?;
        Some(match failure.number {
            1142 | 1044 => format!("{failure}; run GRANT SELECT ON performance_schema.{name} TO the account"),
            _ => failure.to_string(),
        })
    }
}

/// Formats 80012 as 8.0.12.
fn dotted(version: u64) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

/// The server under test, if the table of performance_schema can be read. A server that does not
/// answer may start later.
///
/// # Errors
/// Those of [`server`]; [`NotRunning::Unavailable`] with the reason and the fix.
fn server_with(table: PerformanceTable, options: &Options) -> Result<&'static Server, NotRunning> {
    let server = server(options)?;
    let check = server.query_once(move |link| {
        let mut enabled = false;
        link.query(Kind::Select, "SELECT @@GLOBAL.performance_schema", |cells| {
            enabled = cells.get(0) == Some(b"1");
        })?;
        let select = format!("SELECT 1 FROM performance_schema.{} LIMIT 1", table.name);
        let read = enabled.then(|| link.query(Kind::Select, &select, |_| {}));
        Ok(table.refusal(link.version(), link.is_mariadb(), read))
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

    fn refusal(version: u64, is_mariadb: bool, number: u32) -> String {
        let failure = Failure {
            number,
            message: "SELECT command denied".to_owned(),
        };
        let refusal = statements::TABLE.refusal(version, is_mariadb, Some(Err(failure)));
        refusal.unwrap_or_default()
    }

    #[test]
    fn missing_table_is_not_a_missing_privilege() {
        // MySQL 5.7.22 answers 1142 to an account without a grant and 1146 to root.
        for number in [1142, 1146] {
            let reason = refusal(50_722, false, number);
            assert_eq!(
                reason,
                "MySQL 5.7.22 has no table performance_schema.events_statements_histogram_global; \
                 it needs MySQL 8.0.3 or later"
            );
        }
        // MariaDB reports version 5.5.5 to old clients.
        assert!(refusal(50_505, true, 1142).starts_with("MariaDB has no table"));
        assert!(
            refusal(80_012, false, 1142).contains("GRANT SELECT ON performance_schema.events_statements_h")
        );
    }
}
