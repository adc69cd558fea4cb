//! Wraps one server-side prepared statement. Its parameters are bound once to buffers, and each
//! call changes only the buffers.

use std::cell::Cell;
use std::ffi::c_ulong;
use std::ffi::c_void;
use std::mem;
use std::ptr;

use mysqlclient_sys as sys;

use super::Effect;
use super::ParamType;
use super::Value;
use super::failure::Failure;

/// The buffers of one parameter. The library keeps pointers to them, hence cells at a fixed
/// address.
#[derive(Debug)]
struct ParameterBuffer {
    number: Cell<i64>,
    length: Cell<c_ulong>,
    is_null: Cell<sys::my_bool>,
    bytes: Box<[Cell<u8>]>,
    kind: ParamType,
}

impl ParameterBuffer {
    fn new(kind: ParamType) -> Self {
        let capacity = match kind {
            ParamType::Char(max_bytes) | ParamType::Binary(max_bytes) => max_bytes,
            ParamType::Int | ParamType::BigInt => 0,
        };
        Self {
            number: Cell::new(0),
            length: Cell::new(0),
            is_null: Cell::new(sys::FALSE),
            bytes: vec![Cell::new(0); capacity].into(),
            kind,
        }
    }

    fn bind(&self) -> sys::MYSQL_BIND {
        use sys::enum_field_types as field;
        // SAFETY: all-zero bytes are a valid MYSQL_BIND: the C documentation asks for memset(bind,
        // 0).
        let mut bind: sys::MYSQL_BIND = unsafe { mem::zeroed() };
        let (kind, buffer) = match self.kind {
            ParamType::Int => (field::MYSQL_TYPE_LONG, self.number.as_ptr().cast::<c_void>()),
            ParamType::BigInt => (field::MYSQL_TYPE_LONGLONG, self.number.as_ptr().cast()),
            ParamType::Char(_) => (field::MYSQL_TYPE_STRING, self.bytes.as_ptr().cast_mut().cast()),
            ParamType::Binary(_) => (field::MYSQL_TYPE_BLOB, self.bytes.as_ptr().cast_mut().cast()),
        };
        bind.buffer_type = kind;
        bind.buffer = buffer;
        bind.buffer_length = self.bytes.len() as c_ulong;
        bind.length = self.length.as_ptr();
        bind.is_null = self.is_null.as_ptr();
        bind
    }

    /// Stores a value in the buffers; false if it does not fit the declared type.
    fn set(&self, value: Value<'_>) -> bool {
        self.is_null.set(if value == Value::Null {
            sys::TRUE
        } else {
            sys::FALSE
        });
        match (value, self.kind) {
            (Value::Null, _) => true,
            (Value::Int(number), ParamType::Int) => match i32::try_from(number) {
                // The library reads the first four bytes, in native byte order.
                Ok(number) => {
                    // SAFETY: an i64 cell has room and alignment for an i32; no other code writes
                    // to it.
                    unsafe { self.number.as_ptr().cast::<i32>().write(number) };
                    true
                }
                Err(_) => false,
            },
            (Value::Int(number), ParamType::BigInt) => {
                self.number.set(number);
                true
            }
            (Value::Bytes(bytes), ParamType::Char(_) | ParamType::Binary(_)) => {
                if bytes.len() > self.bytes.len() {
                    return false;
                }
                let target = self.bytes.as_ptr().cast_mut().cast::<u8>();
                // SAFETY: `target` has room for `self.bytes.len()` >= `bytes.len()` cells, and
                // cells may be written through a shared reference.
                unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
                self.length.set(bytes.len() as c_ulong);
                true
            }
            _ => false,
        }
    }
}

/// A prepared statement on the server.
#[derive(Debug)]
pub struct ServerStatement {
    mysql: *mut sys::MYSQL,
    handle: *mut sys::MYSQL_STMT,
    parameters: Box<[ParameterBuffer]>,
}

impl ServerStatement {
    /// Prepares `sql` and binds its parameters.
    ///
    /// # Safety
    /// `mysql` must be an open connection that outlives the statement and belongs to this thread.
    pub unsafe fn prepare(mysql: *mut sys::MYSQL, sql: &str, params: &[ParamType]) -> Result<Self, Failure> {
        // SAFETY: `mysql` is an open connection by the contract of this function.
        let handle = unsafe { sys::mysql_stmt_init(mysql) };
        if handle.is_null() {
            return Err(super::failure::client_failure("mysql_stmt_init: out of memory"));
        }
        let parameters: Box<[ParameterBuffer]> = params.iter().copied().map(ParameterBuffer::new).collect();
        let statement = Self {
            mysql,
            handle,
            parameters,
        };
        // SAFETY: `handle` is a fresh statement, the pointer and length describe `sql`.
        if unsafe { sys::mysql_stmt_prepare(handle, sql.as_ptr().cast(), sql.len() as c_ulong) } != 0 {
            return Err(statement.failure());
        }
        // SAFETY: `handle` has been prepared.
        let wanted = unsafe { sys::mysql_stmt_param_count(handle) };
        if wanted != params.len() as c_ulong {
            return Err(super::failure::client_failure(&format!(
                "the statement has {wanted} parameters, but {} are declared: {sql}",
                params.len()
            )));
        }
        let mut binds: Vec<sys::MYSQL_BIND> =
            statement.parameters.iter().map(ParameterBuffer::bind).collect();
        // SAFETY: there are as many binds as parameters; the library copies them, and the buffers
        // they point to live as long as the handle.
        let refused = unsafe { sys::mysql_stmt_bind_param(handle, binds.as_mut_ptr()) };
        if refused != sys::FALSE {
            return Err(statement.failure());
        }
        Ok(statement)
    }

    /// Runs the statement and reads all its result sets.
    pub fn run(&self, values: &[Value<'_>]) -> Result<Effect, Failure> {
        for (position, (parameter, value)) in self.parameters.iter().zip(values).enumerate() {
            if !parameter.set(*value) {
                return Err(super::failure::client_failure(&format!(
                    "parameter {} does not fit its type {:?}",
                    position + 1,
                    parameter.kind
                )));
            }
        }
        // SAFETY: `handle` is prepared and bound to buffers of `self.parameters`, which are alive.
        unsafe {
            if sys::mysql_stmt_execute(self.handle) != 0 {
                return Err(self.failure());
            }
            let mut effect = None;
            loop {
                if sys::mysql_stmt_field_count(self.handle) > 0 {
                    self.drain()?;
                    effect = Some(Effect::Read);
                }
                // 0: another result, of a CALL; -1: no more results; else an error.
                match sys::mysql_stmt_next_result(self.handle) {
                    0 => {}
                    -1 => break,
                    _ => return Err(self.failure()),
                }
            }
            let affected = || Effect::of_rows(sys::mysql_stmt_affected_rows(self.handle));
            Ok(effect.unwrap_or_else(affected))
        }
    }

    /// Reads a result set to its end and discards it, as the library does when it frees an unread
    /// result.
    ///
    /// # Safety
    /// A result set must be pending.
    unsafe fn drain(&self) -> Result<(), Failure> {
        // SAFETY: the handle has been executed and its result set not been read; its connection is
        // open.
        unsafe {
            sys::mysql_stmt_free_result(self.handle);
            // The call returns no error among the rows; the library stores it in the connection,
            // where the statement left none.
            match sys::mysql_errno(self.mysql) {
                0 => Ok(()),
                _ => Err(super::failure::failure_of(self.mysql)),
            }
        }
    }

    /// Closes the statement; true if the server received the call.
    pub fn close(mut self) -> bool {
        let handle = mem::replace(&mut self.handle, ptr::null_mut());
        // SAFETY: closed once: `drop` ignores a null handle. The connection is still open, see
        // `MysqlConnection`.
        unsafe { sys::mysql_stmt_close(handle) == sys::FALSE }
    }

    fn failure(&self) -> Failure {
        // SAFETY: `handle` is a statement; the strings are copied before any further call.
        unsafe {
            super::failure::failure_from(
                sys::mysql_stmt_errno(self.handle),
                sys::mysql_stmt_sqlstate(self.handle),
                sys::mysql_stmt_error(self.handle),
            )
        }
    }
}

impl Drop for ServerStatement {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: `handle` came from mysql_stmt_init and is closed once; its connection is
            // still open, see `MysqlConnection`.
            unsafe { sys::mysql_stmt_close(self.handle) };
        }
    }
}
