//! Runs statements as text, reads all their result sets, and escapes values.

use std::ffi::c_char;
use std::ffi::c_ulong;
use std::slice;

use mysqlclient_sys as sys;

use super::Effect;
use super::Row;
use super::failure::Failure;
use super::failure::failure_of;

/// Appends `bytes` in the form required between single quotes.
///
/// # Safety
/// `mysql` must be an open connection.
pub unsafe fn escape(mysql: *mut sys::MYSQL, text: &mut Vec<u8>, bytes: &[u8]) {
    text.reserve(bytes.len() * 2 + 1);
    // SAFETY: the library writes at most 2 n + 1 bytes behind the current end, where this many are
    // reserved, and returns their number.
    unsafe {
        let end = text.as_mut_ptr().add(text.len()).cast::<c_char>();
        let written = sys::mysql_real_escape_string_quote(
            mysql,
            end,
            bytes.as_ptr().cast(),
            bytes.len() as c_ulong,
            b'\'' as c_char,
        );
        text.set_len(text.len() + written as usize);
    }
}

/// Runs a text and reads all its result sets, into `rows` if it is given. The effect is `Read` with
/// a result set, else it depends on the affected rows.
///
/// # Safety
/// `mysql` must be an open connection of this thread.
pub unsafe fn run_text(
    mysql: *mut sys::MYSQL,
    sql: &[u8],
    mut rows: Option<&mut Vec<Row>>,
) -> Result<Effect, Failure> {
    // SAFETY: pointer and length describe `sql`; each result is freed before the next one is
    // requested.
    unsafe {
        if sys::mysql_real_query(mysql, sql.as_ptr().cast(), sql.len() as c_ulong) != 0 {
            return Err(failure_of(mysql));
        }
        let mut effect = None;
        let mut affected = 0;
        loop {
            // An unwanted result is not stored: the library reads it to its end when it is freed.
            let result = match &rows {
                Some(_) => sys::mysql_store_result(mysql),
                None => sys::mysql_use_result(mysql),
            };
            if !result.is_null() {
                if let Some(rows) = rows.as_deref_mut() {
                    read_rows(result, rows);
                }
                sys::mysql_free_result(result);
                // The library stores an error among the rows in the connection.
                if sys::mysql_errno(mysql) != 0 {
                    return Err(failure_of(mysql));
                }
                effect = Some(Effect::Read);
            } else if sys::mysql_errno(mysql) != 0 {
                // Not by the number of fields, which is zero if the connection is lost within a
                // stored result.
                return Err(failure_of(mysql));
            } else {
                affected += sys::mysql_affected_rows(mysql);
            }
            // Checked first, because mysql_next_result clears the number of rows.
            if sys::mysql_more_results(mysql) == sys::FALSE {
                return Ok(effect.unwrap_or_else(|| Effect::of_rows(affected)));
            }
            if sys::mysql_next_result(mysql) != 0 {
                return Err(failure_of(mysql));
            }
        }
    }
}

/// # Safety
/// `result` must be a stored result of a connection of this thread.
unsafe fn read_rows(result: *mut sys::MYSQL_RES, rows: &mut Vec<Row>) {
    // SAFETY: a row is an array of as many pointers and lengths as there are fields; it is copied
    // before the next fetch.
    unsafe {
        let fields = sys::mysql_num_fields(result) as usize;
        loop {
            let row = sys::mysql_fetch_row(result);
            if row.is_null() {
                return;
            }
            let values = slice::from_raw_parts(row, fields);
            let lengths = slice::from_raw_parts(sys::mysql_fetch_lengths(result), fields);
            let cell = |(value, length): (&*mut c_char, &c_ulong)| {
                (!value.is_null()).then(|| {
                    let bytes = slice::from_raw_parts(value.cast::<u8>(), *length as usize);
                    String::from_utf8_lossy(bytes).into_owned()
                })
            };
            rows.push(values.iter().zip(lengths).map(cell).collect());
        }
    }
}
