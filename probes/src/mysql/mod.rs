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

/// Finds out whether a table of performance_schema can be read. Where the server is not there yet, it may come to be.
fn performance_schema(server: &'static Server, table: &'static str) -> Result<(), NotRunning> {
    let place = server.account().describe();
    let unavailable = |text: String| Err(NotRunning::Unavailable(format!("{place}: {text}")));
    let asked = server.ask(move |link| {
        let mut on = false;
        link.query(Kind::Select, "SELECT @@GLOBAL.performance_schema", |cells| {
            on = cells.get(0) == Some(b"1");
        })?;
        let question = format!("SELECT 1 FROM performance_schema.{table} LIMIT 1");
        let readable = if on {
            link.query(Kind::Select, &question, |_| {})
        } else {
            Ok(())
        };
        Ok((on, readable))
    });
    match asked {
        Ok((true, Ok(()))) | Err(Silence::NotThere(_)) => Ok(()),
        Ok((false, _)) => unavailable(
            "performance_schema is off; performance_schema=ON in its configuration turns it on".to_owned(),
        ),
        Ok((true, Err(failure))) => match failure.number {
            1142 | 1044 => unavailable(format!(
                "{failure}; GRANT SELECT ON performance_schema.{table} TO the account"
            )),
            1146 => unavailable(format!("{failure}; MySQL has it from 8.0 on, MariaDB has not")),
            _ => unavailable(failure.to_string()),
        },
        Err(Silence::Refused(failure)) => unavailable(failure.to_string()),
    }
}
