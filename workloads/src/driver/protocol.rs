//! How statements go to the server: the protocol modes, and what was sent in the one chosen.

use anyhow::Result;

use crate::options::Values;

/// The way of a statement to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// A text put together anew for each call.
    Text,
    /// A text from a template that was parsed once: prepared statements emulated by the client.
    Emulated,
    /// Prepared on the server when the thread starts, one handle per connection and statement: sysbench's way.
    Ps,
    /// Prepared at the first use and kept in a cache per connection, the least recently used one closed when it is full.
    PsCached,
    /// Prepared, executed and closed for each call.
    PsUncached,
    /// `PREPARE` as a text once, then `SET @…` and `EXECUTE … USING @…` for each call.
    SqlPrepare,
}

const NAMES: [(&str, Protocol); 6] = [
    ("text", Protocol::Text),
    ("emulated", Protocol::Emulated),
    ("ps", Protocol::Ps),
    ("ps_cached", Protocol::PsCached),
    ("ps_uncached", Protocol::PsUncached),
    ("sql_prepare", Protocol::SqlPrepare),
];

impl Protocol {
    /// As `--protocol` takes it.
    pub fn name(self) -> &'static str {
        let word = NAMES.iter().find(|(_, protocol)| *protocol == self);
        word.map_or("", |(word, _)| word)
    }
}

/// A protocol with the bounds of its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// The way of a statement.
    pub protocol: Protocol,
    /// Statements kept per connection by [`Protocol::PsCached`].
    pub cache_size: usize,
    /// Longer statements, in bytes of their text, are not kept by [`Protocol::PsCached`]: they go as text.
    pub cache_sql_limit: usize,
}

impl Mode {
    /// Reads `--protocol`, and the bounds of the cache. `auto` follows `--db-ps-mode`; where that is not given either, a
    /// workload may have a protocol that is `natural` to it.
    pub fn from_options(values: &Values, natural: Option<Protocol>) -> Result<Self> {
        let word = values.text("protocol")?;
        let chosen = NAMES.iter().find(|(name, _)| Some(*name) == word);
        let natural = if values.given("db-ps-mode")? {
            None
        } else {
            natural
        };
        let protocol = match chosen.map(|(_, protocol)| *protocol).or(natural) {
            Some(protocol) => protocol,
            None if values.text("db-ps-mode")? == Some("auto") => Protocol::Ps,
            None => Protocol::Emulated,
        };
        Ok(Self {
            protocol,
            cache_size: values.count("ps-cache-size")?,
            cache_sql_limit: values.count("ps-cache-sql-limit")?,
        })
    }

    /// How many of `statements` one connection keeps on the server at most.
    pub fn handles(&self, statements: usize) -> usize {
        match self.protocol {
            Protocol::Text | Protocol::Emulated => 0,
            Protocol::Ps | Protocol::SqlPrepare => statements,
            Protocol::PsCached => statements.min(self.cache_size),
            Protocol::PsUncached => statements.min(1),
        }
    }
}

/// What a connection sent to prepare, run and close statements, as commands of the protocol or as the texts `PREPARE` and `EXECUTE`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProtocolCalls {
    /// Statements sent to be prepared, also those that the server refused.
    pub prepares: u64,
    /// Prepared statements run.
    pub executes: u64,
    /// Prepared statements closed; the end of a connection closes what is left without a call.
    pub closes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::COMMON;

    fn mode(given: &[(&str, &str)]) -> Mode {
        Mode::from_options(&Values::defaults(&[COMMON], given), None).unwrap()
    }

    #[test]
    fn a_workload_s_own_protocol_gives_way_to_either_option() {
        for (given, protocol) in [
            (&[][..], Protocol::Text),
            (&[("protocol", "auto")], Protocol::Text),
            (&[("protocol", "ps")], Protocol::Ps),
            (&[("db-ps-mode", "auto")], Protocol::Ps),
            (&[("db-ps-mode", "disable")], Protocol::Emulated),
        ] {
            let values = Values::defaults(&[COMMON], given);
            let mode = Mode::from_options(&values, Some(Protocol::Text)).unwrap();
            assert_eq!(mode.protocol, protocol, "{given:?}");
        }
    }

    #[test]
    fn auto_follows_sysbench_s_option_and_a_word_overrides_it() {
        assert_eq!(mode(&[]).protocol, Protocol::Ps);
        assert_eq!(mode(&[("db-ps-mode", "disable")]).protocol, Protocol::Emulated);
        let both = [("db-ps-mode", "disable"), ("protocol", "ps_cached")];
        assert_eq!(mode(&both).protocol, Protocol::PsCached);
    }

    #[test]
    fn each_word_means_the_protocol_that_says_it() {
        for (word, protocol) in NAMES {
            assert_eq!(mode(&[("protocol", word)]).protocol.name(), word);
            assert_eq!(protocol.name(), word);
        }
    }

    #[test]
    fn a_connection_keeps_as_many_statements_as_its_protocol_says() {
        let kept = |word| mode(&[("protocol", word)]).handles(90);
        assert_eq!(NAMES.map(|(word, _)| kept(word)), [0, 0, 90, 25, 1, 90]);
    }
}
