//! A connection for tasks: libmysqlclient logs in, then statements go over its socket without it, so that no thread waits for a reply.
//! Takes every protocol; knows neither TLS nor compression, which live inside of the library.

use std::mem;
use std::os::fd::BorrowedFd;
use std::ptr;

use loadprint_mysqlclient::attach_thread;
use mysqlclient_sys as sys;

use super::Effect;
use super::Failure;
use super::ParamType;
use super::Row;
use super::Value;
use super::linked::Login;
use super::mysql::MysqlDriver;
use super::mysql::local_failure;
use super::open::open;
use super::protocol::Calls;
use super::socket::Socket;
use super::statements::Link;
use super::template::Template;
use super::text::escape;
use super::watchdog::Watched;
use super::wire::Dialect;
use super::wire::packet;
use super::wire::reply::Command;
use super::wire::reply::Said;
use crate::tasks;

/// Capabilities of mysql_com.h.
const CLIENT_COMPRESS: u64 = 1 << 5;
const CLIENT_DEPRECATE_EOF: u64 = 1 << 24;
const CLIENT_ZSTD_COMPRESSION_ALGORITHM: u64 = 1 << 26;
const CLIENT_QUERY_ATTRIBUTES: u64 = 1 << 27;

/// A statement that the server has prepared.
#[derive(Debug, Clone, Copy)]
pub struct Handle {
    number: u32,
    /// The server knows the types of the parameters.
    typed: bool,
}

/// A login of libmysqlclient and its socket, used by one task.
pub struct Multiplexed {
    socket: Socket,
    mysql: *mut sys::MYSQL,
}

impl Drop for Multiplexed {
    fn drop(&mut self) {
        // SAFETY: closed once, on the thread that opened it.
        tasks::on_thread_stack(|| unsafe { sys::mysql_close(self.mysql) });
    }
}

impl Login for Multiplexed {
    const CLOSES_HANDLES: bool = false;

    /// The thread waits meanwhile, with all its tasks.
    fn open(
        driver: &MysqlDriver,
        number: usize,
        with_database: bool,
        watched: &Watched,
    ) -> Result<Self, Failure> {
        let mysql = tasks::on_thread_stack(|| {
            attach_thread();
            open(driver, number, with_database, watched)
        })?;
        let mut link = Unclaimed(mysql, watched);
        // SAFETY: the handle is connected; the descriptor stays open until mysql_close, which `Multiplexed` calls last.
        let (encrypted, capabilities, version, descriptor) = unsafe {
            let capabilities = (*mysql).client_flag & (*mysql).server_capabilities;
            let version = sys::mysql_get_server_version(mysql);
            let encrypted = !sys::mysql_get_ssl_cipher(mysql).is_null();
            (
                encrypted,
                capabilities,
                version,
                BorrowedFd::borrow_raw((*mysql).net.fd),
            )
        };
        if encrypted {
            return Err(local_failure(
                "--multiplex=on has no TLS: add --mysql-ssl=disabled, or run with --multiplex=off",
            ));
        }
        if capabilities & (CLIENT_COMPRESS | CLIENT_ZSTD_COMPRESSION_ALGORITHM) != 0 {
            return Err(local_failure(
                "--multiplex=on has no compression: take `compress` and `compression-algorithms` out of the option file, or run with --multiplex=off",
            ));
        }
        let dialect = Dialect {
            deprecate_eof: capabilities & CLIENT_DEPRECATE_EOF != 0,
            attributes: capabilities & CLIENT_QUERY_ATTRIBUTES != 0,
            counts_parameters: version >= 80_026,
        };
        let socket = Socket::new(descriptor, dialect)?;
        Ok(Self {
            socket,
            mysql: mem::replace(&mut link.0, ptr::null_mut()),
        })
    }
}

impl Multiplexed {
    fn said(said: Said) -> Result<Effect, Failure> {
        match said {
            Said::Done(effect) => Ok(effect),
            Said::Failed(failure) => Err(failure),
            Said::Prepared(..) => Err(local_failure("the server prepared what it was to run")),
        }
    }
}

impl Link for Multiplexed {
    type Handle = Handle;

    fn query(&mut self, sql: &[u8], rows: Option<&mut Vec<Row>>) -> Result<Effect, Failure> {
        let mut buffer = tasks::take_buffer();
        packet::query(&mut buffer, self.socket.dialect(), sql);
        Self::said(self.socket.exchange(buffer, Command::Query, rows)?)
    }

    fn fill(
        &mut self,
        template: &Template,
        values: &[Value<'_>],
        rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, Failure> {
        let mysql = self.mysql;
        let mut text = tasks::take_buffer();
        // SAFETY: the connection is open.
        template.fill(&mut text, values, |text, bytes| unsafe {
            escape(mysql, text, bytes)
        });
        let mut buffer = tasks::take_buffer();
        packet::query(&mut buffer, self.socket.dialect(), &text);
        tasks::give_buffer(text);
        Self::said(self.socket.exchange(buffer, Command::Query, rows)?)
    }

    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Handle, Failure> {
        let mut buffer = tasks::take_buffer();
        packet::prepare(&mut buffer, sql.as_bytes());
        match self.socket.exchange(buffer, Command::Prepare, None)? {
            Said::Prepared(number, wanted) if usize::from(wanted) == params.len() => {
                Ok(Handle { number, typed: false })
            }
            Said::Prepared(_, wanted) => Err(local_failure(&format!(
                "the statement has {wanted} parameters, {} are declared: {sql}",
                params.len()
            ))),
            Said::Failed(failure) => Err(failure),
            Said::Done(_) => Err(local_failure("the server ran what it was to prepare")),
        }
    }

    fn execute(
        &mut self,
        handle: &mut Handle,
        params: &[ParamType],
        values: &[Value<'_>],
        rows: Option<&mut Vec<Row>>,
    ) -> Result<Effect, Failure> {
        let mut buffer = tasks::take_buffer();
        let statement = (handle.number, params);
        let made = packet::execute(
            &mut buffer,
            self.socket.dialect(),
            statement,
            values,
            !handle.typed,
        );
        if let Err(position) = made {
            return Err(local_failure(&format!(
                "parameter {} does not fit its type {:?}",
                position + 1,
                params[position]
            )));
        }
        let effect = Self::said(self.socket.exchange(buffer, Command::Execute, rows)?);
        // A refused call may have ended before the server kept the types.
        handle.typed = effect.is_ok();
        effect
    }

    fn close(&mut self, calls: &mut Calls, handle: Handle) -> Result<(), Failure> {
        calls.closes += 1;
        let mut buffer = tasks::take_buffer();
        packet::close(&mut buffer, handle.number);
        self.socket.send(buffer)
    }
}

/// Closes a handle that no `Multiplexed` has taken.
struct Unclaimed<'a>(*mut sys::MYSQL, &'a Watched);

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if self.0.is_null() {
            return;
        }
        self.1.set_handle(ptr::null_mut());
        // SAFETY: the handle is closed once.
        tasks::on_thread_stack(|| unsafe { sys::mysql_close(self.0) });
    }
}
