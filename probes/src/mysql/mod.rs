//! The MySQL or MariaDB server under test, asked over one connection of libmysqlclient that no tick waits for.
//!
//! What the account needs, and which version has which counter, is in `docs/mysql-probe.md`.

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
use self::server::Server;
use self::server::Silence;
use crate::NotRunning;

fn nobody_named_one() -> NotRunning {
    NotRunning::Off(
        "no server was named: --mysql-socket, --mysql-host or --mysql-defaults-file, with --mysql-user and \
         --mysql-password-file"
            .to_owned(),
    )
}

/// A table of performance_schema, and which servers have it.
#[derive(Clone, Copy, Debug)]
struct PerformanceTable {
    name: &'static str,
    /// The first version of MySQL that has it: as the client library counts, 80003 for 8.0.3.
    since: u64,
    in_mariadb: bool,
}

impl PerformanceTable {
    /// Why this server cannot have the table, whatever the account may read; `None` where it can.
    ///
    /// Servers check the privilege before they look for the table, so that error 1142 does not mean that it exists.
    fn missing_in(&self, version: u64, is_mariadb: bool) -> Option<String> {
        let Self { name, since, .. } = self;
        let since = dotted(*since);
        if is_mariadb {
            return (!self.in_mariadb).then(|| {
                format!("MariaDB has no table performance_schema.{name}; MySQL {since} and later has it")
            });
        }
        let found = dotted(version);
        (version < self.since).then(|| {
            format!("MySQL {found} has no table performance_schema.{name}; it needs MySQL {since} or later")
        })
    }
}

/// 80012 as 8.0.12.
fn dotted(version: u64) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

/// What a server said of a table.
struct Asked {
    enabled: bool,
    readable: Result<(), Failure>,
    version: u64,
    is_mariadb: bool,
}

impl Asked {
    /// Why the table cannot be read, with the fix; `None` where it can.
    fn refusal(self, table: PerformanceTable) -> Option<String> {
        if let Some(missing) = table.missing_in(self.version, self.is_mariadb) {
            return Some(missing);
        }
        if !self.enabled {
            return Some(
                "performance_schema is off; performance_schema=ON in its configuration turns it on"
                    .to_owned(),
            );
        }
        let failure = self.readable.err()?;
        Some(match failure.number {
            1142 | 1044 => format!(
                "{failure}; GRANT SELECT ON performance_schema.{} TO the account",
                table.name
            ),
            _ => failure.to_string(),
        })
    }
}

/// Finds out whether a table of performance_schema can be read. A server that is not there yet may have it later.
///
/// # Errors
/// [`NotRunning::Unavailable`] with the reason and the fix.
fn performance_schema(server: &'static Server, table: PerformanceTable) -> Result<(), NotRunning> {
    let place = server.account().describe();
    let asked = server.ask(move |link| {
        let mut enabled = false;
        link.query(Kind::Select, "SELECT @@GLOBAL.performance_schema", |cells| {
            enabled = cells.get(0) == Some(b"1");
        })?;
        let question = format!("SELECT 1 FROM performance_schema.{} LIMIT 1", table.name);
        let readable = if enabled {
            link.query(Kind::Select, &question, |_| {})
        } else {
            Ok(())
        };
        Ok(Asked {
            enabled,
            readable,
            version: link.version(),
            is_mariadb: link.is_mariadb(),
        })
    });
    let reason = match asked {
        Ok(asked) => asked.refusal(table),
        Err(Silence::NotThere(_)) => None,
        Err(Silence::Refused(failure)) => Some(failure.to_string()),
    };
    match reason {
        Some(reason) => Err(NotRunning::Unavailable(format!("{place}: {reason}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(version: u64, is_mariadb: bool, number: u32) -> String {
        let failure = Failure {
            number,
            message: "SELECT command denied".to_owned(),
        };
        let asked = Asked {
            enabled: true,
            readable: Err(failure),
            version,
            is_mariadb,
        };
        asked.refusal(statements::TABLE).unwrap_or_default()
    }

    #[test]
    fn a_table_that_the_version_lacks_is_not_a_missing_privilege() {
        // MySQL 5.7.22 answers 1142 to an account without a grant and 1146 to root.
        for number in [1142, 1146] {
            let reason = refusal(50_722, false, number);
            assert_eq!(
                reason,
                "MySQL 5.7.22 has no table performance_schema.events_statements_histogram_global; \
                 it needs MySQL 8.0.3 or later"
            );
        }
        // MariaDB gives its version to old clients as 5.5.5.
        assert!(refusal(50_505, true, 1142).starts_with("MariaDB has no table"));
        assert!(
            refusal(80_012, false, 1142).contains("GRANT SELECT ON performance_schema.events_statements_h")
        );
    }
}
