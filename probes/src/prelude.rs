//! The names that a probe needs to declare its table and to read its source.

pub(crate) use loadprint_recording::rows::Rows;
pub(crate) use loadprint_recording::schema::Column;
pub(crate) use loadprint_recording::schema::Schema;
pub(crate) use loadprint_recording::schema::Text;
pub(crate) use loadprint_recording::schema::Type;
pub(crate) use loadprint_recording::schema::Unit;
pub(crate) use loadprint_recording::schema::text;

pub(crate) use crate::Cadence;
pub(crate) use crate::Host;
pub(crate) use crate::NotRunning;
pub(crate) use crate::Options;
pub(crate) use crate::Probe;
pub(crate) use crate::ProbeEntry;
pub(crate) use crate::ProbeError;
pub(crate) use crate::background::Background;
pub(crate) use crate::procfs::fields::Cursor;
pub(crate) use crate::procfs::fields::each_line;
pub(crate) use crate::procfs::fields::empty;
pub(crate) use crate::procfs::fields::not_empty;
pub(crate) use crate::source::Files;
pub(crate) use crate::source::MOUNT_PROC;
pub(crate) use crate::source::ParseError;
pub(crate) use crate::source::Source;

/// A table of columns or metrics: kind and unit, name, help, source, then other properties of the
/// [`Column`].
macro_rules! columns {
    ($($kind:ident $(($unit:ident))? $name:literal, $help:literal, $source:expr $(, $property:ident $(($value:expr))?)*;)*) => {
        &[$(Column::$kind($name, $(Unit::$unit,)? $help, $source)$(.$property($($value)?))*),*]
    };
}
pub(crate) use columns;
