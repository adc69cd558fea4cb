//! Reads version, variables and status counters of the server, before and after `measure`.
//! Uses a separate connection while no thread runs statements; secrets in variables are redacted.

use std::time::Instant;

use anyhow::Result;
use serde_json::Map;
use serde_json::Value as Json;
use serde_json::json;

use crate::driver::Connection;
use crate::driver::DbError;
use crate::driver::Row;
use crate::redaction::redacted;
use crate::traffic;
use crate::traffic::ReaderBytes;

/// Seconds by which a difference of two uptimes, which are whole seconds, can be too small.
const UPTIME_ERROR: f64 = 1.2;

/// The server's part of the recording.
pub struct Server {
    connection: Box<dyn Connection>,
    cipher: Json,
    variables: Map<String, Json>,
    status_warmup: Option<Map<String, Json>>,
    reader_bytes: Option<ReaderBytes>,
    began: Instant,
    /// Whether it restarted during `measure`.
    pub restarted: bool,
    status_begin: Option<Map<String, Json>>,
    status_end: Option<Map<String, Json>>,
}

impl Server {
    /// Reads version, variables and the cipher in use.
    ///
    /// # Errors
    /// If the server does not answer.
    pub fn read(mut connection: Box<dyn Connection>) -> Result<Self, DbError> {
        let mut variables = pairs(connection.rows("SHOW GLOBAL VARIABLES")?);
        for (name, value) in &mut variables {
            if let Json::String(text) = value {
                *text = redacted(name, text);
            }
        }
        let session = pairs(connection.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")?);
        let cipher = session.get("Ssl_cipher").and_then(Json::as_str);
        Ok(Self {
            cipher: json!(cipher.filter(|name| !name.is_empty())),
            connection,
            variables,
            status_warmup: None,
            reader_bytes: None,
            began: Instant::now(),
            restarted: false,
            status_begin: None,
            status_end: None,
        })
    }

    /// The connection, for other queries at rest.
    pub fn connection(&mut self) -> &mut dyn Connection {
        self.connection.as_mut()
    }

    /// The version, for `run.json`.
    pub fn version(&self) -> &Json {
        self.variables.get("version").unwrap_or(&Json::Null)
    }

    /// The cipher of the connection; null without TLS.
    pub fn cipher(&self) -> &Json {
        &self.cipher
    }

    /// Reads the counters before the first phase, which is not measured: their growth shows how
    /// warm the server is.
    pub fn read_before_warmup(&mut self) -> Result<(), DbError> {
        if self.status_warmup.is_none() {
            self.status_warmup = Some(self.status()?);
        }
        Ok(())
    }

    /// Reads the counters before `measure`; twice, to measure the cost of the reading itself.
    pub fn read_before_measure(&mut self) -> Result<(), DbError> {
        let first = self.status()?;
        let second = self.status()?;
        self.reader_bytes = ReaderBytes::between(&first, &second);
        self.began = Instant::now();
        self.status_begin = Some(second);
        Ok(())
    }

    /// Reads the counters after `measure`. If the server is gone, `status_end` stays empty, and the run reports
    /// the error; counters of a server that has restarted are discarded.
    pub fn read_after_measure(&mut self) {
        let Ok(status) = self.status() else { return };
        self.restarted = self.has_restarted(&status);
        self.status_end = Some(status).filter(|_| !self.restarted);
    }

    /// True if the uptime is shorter than expected.
    fn has_restarted(&self, status: &Map<String, Json>) -> bool {
        let uptime = |status: &Map<String, Json>| status.get("Uptime")?.as_str()?.parse::<f64>().ok();
        let before = self.status_begin.as_ref().and_then(uptime);
        let expected = before.map(|before| before + self.began.elapsed().as_secs_f64());
        matches!((expected, uptime(status)), (Some(expected), Some(uptime)) if uptime + UPTIME_ERROR < expected)
    }

    /// The lines about the traffic of `measure`.
    pub fn traffic(&self, protocol: &str, events: u64) -> Option<String> {
        let (begin, end) = (self.status_begin.as_ref()?, self.status_end.as_ref()?);
        traffic::block(protocol, begin, end, self.reader_bytes?, events)
    }

    /// Growth of a counter in `measure`.
    pub fn growth(&self, name: &str) -> Option<u64> {
        let (begin, end) = (self.status_begin.as_ref()?, self.status_end.as_ref()?);
        traffic::growth(begin, end, name)?.try_into().ok()
    }

    /// The connection is idle during a phase, and opened again if it is lost.
    fn status(&mut self) -> Result<Map<String, Json>, DbError> {
        let read = |connection: &mut dyn Connection| connection.rows("SHOW GLOBAL STATUS");
        let mut rows = read(self.connection.as_mut());
        if rows.as_ref().is_err_and(DbError::connection_lost) {
            rows = self
                .connection
                .reconnect()
                .and_then(|()| read(self.connection.as_mut()));
        }
        Ok(pairs(rows?))
    }

    /// Content of `server.json`; null where a value was not read.
    pub fn to_json(&self) -> Json {
        json!({
            "format_version": loadprint_recording::FORMAT_VERSION,
            "version": self.version(),
            "version_comment": self.variables.get("version_comment"),
            "variables": self.variables,
            "status_warmup": self.status_warmup,
            "reader_bytes": self.reader_bytes.map(|own| json!({"received": own.received, "sent": own.sent})),
            "restarted": self.restarted,
            "status_begin": self.status_begin,
            "status_end": self.status_end,
        })
    }
}

fn pairs(rows: Vec<Row>) -> Map<String, Json> {
    rows.into_iter()
        .filter_map(|row| {
            let mut cells = row.into_iter();
            Some((cells.next()??, cells.next()?.map_or(Json::Null, Json::from)))
        })
        .collect()
}
