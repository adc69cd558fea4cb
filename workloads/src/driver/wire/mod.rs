//! The client/server protocol of MySQL as bytes: packets to send and replies to read, without any input or output.
//! For connections that do not wait in libmysqlclient; that library still logs in.
//! Source: "MySQL Internals: Client/Server Protocol" in the server's own source documentation.

pub mod decode;
pub mod packet;
pub mod reply;
pub mod row;
#[cfg(test)]
mod tests;

/// A payload of this length goes on in the next packet.
pub const MOST: usize = 0xff_ffff;

/// What both ends agreed on at login.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dialect {
    /// CLIENT_DEPRECATE_EOF: no EOF after the columns, an OK packet after the rows.
    pub deprecate_eof: bool,
    /// CLIENT_QUERY_ATTRIBUTES: COM_QUERY begins with attributes, types of parameters carry names.
    pub attributes: bool,
    /// The server (8.0.26 and later) knows PARAMETER_COUNT_AVAILABLE.
    pub counts_parameters: bool,
}

/// Bytes that are no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);
