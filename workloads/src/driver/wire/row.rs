//! Rows as text: those of COM_QUERY are text already, those of COM_STMT_EXECUTE are written as the server would write them.

use std::fmt::Write;

use super::Malformed;
use super::decode::Decoder;
use crate::driver::Row;

const UNSIGNED: u16 = 32;
const ZEROFILL: u16 = 64;
/// DECIMAL_NOT_SPECIFIED of mysql_com.h: a floating-point column without a fixed number of decimals.
const NOT_FIXED: u8 = 31;

/// What of a column's description is needed to read its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    kind: u8,
    flags: u16,
    decimals: u8,
    length: u32,
}

impl Column {
    /// Reads a description: catalogue, schema, table, its real name, column, its real name, then numbers.
    pub fn read(payload: &[u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder(payload);
        for _ in 0..6 {
            decoder.text()?;
        }
        let _fixed_length = decoder.length()?;
        let _character_set = decoder.u16()?;
        Ok(Self {
            length: decoder.u32()?,
            kind: decoder.u8()?,
            flags: decoder.u16()?,
            decimals: decoder.u8()?,
        })
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A row of COM_QUERY.
pub fn text_row(payload: &[u8], columns: usize) -> Result<Row, Malformed> {
    let mut decoder = Decoder(payload);
    (0..columns).map(|_| Ok(decoder.text()?.map(lossy))).collect()
}

/// A row of COM_STMT_EXECUTE.
pub fn binary_row(payload: &[u8], columns: &[Column]) -> Result<Row, Malformed> {
    let mut decoder = Decoder(payload);
    if decoder.u8()? != 0 {
        return Err(Malformed("a row of the server does not begin like one"));
    }
    // The first two bits are not used.
    let nulls = decoder.bytes((columns.len() + 9) / 8)?;
    let value = |(position, column): (usize, &Column)| {
        let bit = position + 2;
        if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
            return Ok(None);
        }
        value(&mut decoder, *column).map(Some)
    };
    columns.iter().enumerate().map(value).collect()
}

fn value(decoder: &mut Decoder<'_>, column: Column) -> Result<String, Malformed> {
    let unsigned = column.flags & UNSIGNED != 0;
    // The numbers are `enum enum_field_types` of field_types.h.
    Ok(match column.kind {
        1 if unsigned => filled(decoder.u8()?, column),
        1 => (decoder.u8()? as i8).to_string(),
        2 if unsigned => filled(decoder.u16()?, column),
        2 => (decoder.u16()? as i16).to_string(),
        3 | 9 if unsigned => filled(decoder.u32()?, column),
        3 | 9 => (decoder.u32()? as i32).to_string(),
        8 if unsigned => filled(decoder.u64()?, column),
        8 => (decoder.u64()? as i64).to_string(),
        13 => format!("{:04}", decoder.u16()?),
        4 => real(f32::from_bits(decoder.u32()?), column.decimals),
        5 => real(f64::from_bits(decoder.u64()?), column.decimals),
        7 | 10 | 12 => date(decoder, column)?,
        11 => time(decoder, column)?,
        6 => String::new(),
        _ => lossy(decoder.text()?.unwrap_or_default()),
    })
}

/// An unsigned number, filled with zeros where the column says so.
fn filled(number: impl Into<u64>, column: Column) -> String {
    let width = if column.flags & ZEROFILL != 0 {
        column.length.min(20) as usize
    } else {
        0
    };
    format!("{:0width$}", number.into())
}

/// A floating-point number: fixed decimals where the column has them, else the shortest text that gives it back.
fn real<T: std::fmt::Display + std::fmt::LowerExp + Into<f64> + Copy>(number: T, decimals: u8) -> String {
    if decimals < NOT_FIXED {
        return format!("{number:.*}", usize::from(decimals));
    }
    let size = number.into().abs();
    // The server writes an exponent where that is shorter.
    if size != 0.0 && !(1e-5..1e15).contains(&size) {
        return format!("{number:e}");
    }
    number.to_string()
}

fn fraction(text: &mut String, micros: u32, decimals: u8) {
    if decimals > 0 && decimals <= 6 {
        let digits = format!("{micros:06}");
        text.push('.');
        text.push_str(&digits[..usize::from(decimals)]);
    }
}

/// DATE (10), DATETIME (12) and TIMESTAMP (7).
fn date(decoder: &mut Decoder<'_>, column: Column) -> Result<String, Malformed> {
    let length = decoder.u8()?;
    let mut part = Decoder(decoder.bytes(usize::from(length))?);
    let (mut year, mut month, mut day) = (0, 0, 0);
    let (mut hour, mut minute, mut second, mut micros) = (0, 0, 0, 0);
    if length >= 4 {
        (year, month, day) = (part.u16()?, part.u8()?, part.u8()?);
    }
    if length >= 7 {
        (hour, minute, second) = (part.u8()?, part.u8()?, part.u8()?);
    }
    if length >= 11 {
        micros = part.u32()?.min(999_999);
    }
    let mut text = format!("{year:04}-{month:02}-{day:02}");
    if column.kind != 10 {
        // Writing to a String cannot fail.
        write!(text, " {hour:02}:{minute:02}:{second:02}").ok();
        fraction(&mut text, micros, column.decimals);
    }
    Ok(text)
}

fn time(decoder: &mut Decoder<'_>, column: Column) -> Result<String, Malformed> {
    let length = decoder.u8()?;
    let mut part = Decoder(decoder.bytes(usize::from(length))?);
    let (mut sign, mut hours, mut minute, mut second, mut micros) = ("", 0_u64, 0, 0, 0);
    if length >= 8 {
        sign = if part.u8()? == 0 { "" } else { "-" };
        let days = u64::from(part.u32()?);
        hours = days * 24 + u64::from(part.u8()?);
        (minute, second) = (part.u8()?, part.u8()?);
    }
    if length >= 12 {
        micros = part.u32()?.min(999_999);
    }
    let mut text = format!("{sign}{hours:02}:{minute:02}:{second:02}");
    fraction(&mut text, micros, column.decimals);
    Ok(text)
}
