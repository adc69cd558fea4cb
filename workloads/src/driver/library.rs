//! Wraps one open connection of libmysqlclient: runs texts and filled templates, prepares
//! statements.

use loadprint_mysqlclient::attach_thread;
use mysqlclient_sys as sys;

use super::Effect;
use super::ParamType;
use super::Row;
use super::Value;
use super::failure::Failure;
use super::mysql::MysqlDriver;
use super::open::open;
use super::protocol::ProtocolCalls;
use super::statement::ServerStatement;
use super::template::Template;
use super::text::escape;
use super::text::run_text;
use super::watchdog::WatchedConnection;

/// A connection of the library; only the thread that opened it may use it.
pub struct LibraryConnection {
    /// Reused buffer for filled templates.
    text: Vec<u8>,
    mysql: *mut sys::MYSQL,
}

impl LibraryConnection {
    /// Logs in to address `number`. `watched` gets the handle as soon as it exists.
    pub fn open(
        driver: &MysqlDriver,
        number: usize,
        with_database: bool,
        watched: &WatchedConnection,
    ) -> Result<Self, Failure> {
        attach_thread();
        Ok(Self {
            text: Vec::new(),
            mysql: open(driver, number, with_database, watched)?,
        })
    }

    /// Runs a text and reads all its result sets, into `rows` if it is given.
    pub fn query(&mut self, sql: &[u8], rows: Option<&mut Vec<Row>>) -> Result<Effect, Failure> {
        // SAFETY: the connection is open and belongs to this thread.
        unsafe { run_text(self.mysql, sql, rows) }
    }

    /// Runs the text of a template.
    pub fn fill(&mut self, template: &Template, values: &[Value<'_>]) -> Result<Effect, Failure> {
        let mysql = self.mysql;
        // SAFETY: as above.
        unsafe {
            template.fill(&mut self.text, values, |text, bytes| escape(mysql, text, bytes));
            run_text(mysql, &self.text, None)
        }
    }

    /// Prepares a statement on the server.
    pub fn prepare(
        &mut self,
        calls: &mut ProtocolCalls,
        sql: &str,
        params: &[ParamType],
    ) -> Result<ServerStatement, Failure> {
        calls.prepares += 1;
        // SAFETY: as above; the connection is closed after its statements.
        unsafe { ServerStatement::prepare(self.mysql, sql, params) }
    }
}

impl Drop for LibraryConnection {
    fn drop(&mut self) {
        // SAFETY: closed once, after its statements.
        unsafe { sys::mysql_close(self.mysql) };
    }
}
