//! Defines how statements are sent to the server: the protocol modes, and the counters of their
//! calls.

use anyhow::Result;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value as Json;

use crate::options::Common;
use crate::options::Values;

/// How a statement is sent, by its name in `--protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// As text that is built for each call.
    Text,
    /// As text from a template that is parsed once: prepared statements emulated by the client.
    Emulated,
    /// Prepared on the server when the thread starts, one handle per connection and statement, as
    /// in sysbench.
    Ps,
    /// Prepared at first use and cached per connection; a full cache closes the least recently used
    /// statement.
    PsCached,
    /// Prepared, executed and closed for each call.
    PsUncached,
    /// `PREPARE` as text once, then `SET @…` and `EXECUTE … USING @…` for each call.
    SqlPrepare,
}

/// A protocol with the limits of its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// How a statement is sent.
    pub protocol: Protocol,
    /// Statements cached per connection by [`Protocol::PsCached`].
    pub cache_size: usize,
    /// Longer statements, in bytes of text, are not cached by [`Protocol::PsCached`] and are sent
    /// as text.
    pub cache_sql_limit: usize,
}

impl Mode {
    /// Reads `--protocol` and the limits of the cache. `auto` follows `--db-ps-mode`. If that is
    /// not given either, the `natural` protocol of the workload applies.
    pub fn from_options(values: &Values, natural: Option<Protocol>) -> Result<Self> {
        let options: Common = values.read()?;
        // `auto` is none.
        let chosen = serde_json::from_value(Json::from(options.protocol)).ok();
        let natural = if values.given("db-ps-mode")? {
            None
        } else {
            natural
        };
        let protocol = match chosen.or(natural) {
            Some(protocol) => protocol,
            None if options.db_ps_mode == "auto" => Protocol::Ps,
            None => Protocol::Emulated,
        };
        Ok(Self {
            protocol,
            cache_size: options.ps_cache_size,
            cache_sql_limit: options.ps_cache_sql_limit,
        })
    }

    /// Number of `statements` that a connection keeps open on the server, at most.
    pub fn handles(&self, statements: usize) -> usize {
        match self.protocol {
            Protocol::Text | Protocol::Emulated => 0,
            Protocol::Ps | Protocol::SqlPrepare => statements,
            Protocol::PsCached => statements.min(self.cache_size),
            Protocol::PsUncached => statements.min(1),
        }
    }
}

/// Number of calls that prepared, ran and closed statements, as protocol commands or as the texts
/// `PREPARE` and `EXECUTE`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProtocolCalls {
    /// Prepare calls, including those that the server refused.
    pub prepares: u64,
    /// Execute calls.
    pub executes: u64,
    /// Close calls. The end of a connection closes statements without a call.
    pub closes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::COMMON;

    #[test]
    fn either_option_overrides_the_protocol_of_the_workload() {
        let disabled = ("db-ps-mode", "disable");
        for (given, natural, protocol) in [
            (&[][..], Some(Protocol::Text), Protocol::Text),
            (&[("protocol", "auto")], Some(Protocol::Text), Protocol::Text),
            (&[("protocol", "ps")], Some(Protocol::Text), Protocol::Ps),
            (&[("db-ps-mode", "auto")], Some(Protocol::Text), Protocol::Ps),
            (&[disabled], Some(Protocol::Text), Protocol::Emulated),
            (&[], None, Protocol::Ps),
            (&[disabled], None, Protocol::Emulated),
            (&[disabled, ("protocol", "ps_cached")], None, Protocol::PsCached),
        ] {
            let values = Values::defaults(&[COMMON], given);
            let mode = Mode::from_options(&values, natural).unwrap();
            assert_eq!(mode.protocol, protocol, "{given:?}");
        }
    }

    #[test]
    fn the_protocol_limits_the_open_statements() {
        let kept = |word| {
            let values = Values::defaults(&[COMMON], &[("protocol", word)]);
            let mode = Mode::from_options(&values, None).unwrap();
            assert_eq!(Json::from(word), serde_json::json!(mode.protocol));
            mode.handles(90)
        };
        let words = "text emulated ps ps_cached ps_uncached sql_prepare".split(' ');
        assert_eq!(words.map(kept).collect::<Vec<_>>(), [0, 0, 90, 25, 1, 90]);
    }
}
