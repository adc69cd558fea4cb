//! The options that every workload has: connection, protocol, length, output.

use crate::options::Kind;
use crate::options::OptionSpec;

/// Options of every workload.
pub const COMMON: &[OptionSpec] = &[
    OptionSpec::new(
        "mysql-host",
        Kind::Text("HOST,..."),
        None,
        "servers, taken in turn by the connections; localhost means the unix socket [default: localhost]",
    ),
    OptionSpec::new(
        "mysql-port",
        Kind::Text("PORT,..."),
        None,
        "TCP ports, each with every host [default: 3306]",
    ),
    OptionSpec::new(
        "mysql-socket",
        Kind::Text("PATH,..."),
        None,
        "unix sockets, taken in turn; hosts and ports are then left aside",
    ),
    OptionSpec::new(
        "mysql-user",
        Kind::Text("USER"),
        None,
        "account [default: sbtest]",
    ),
    OptionSpec::new(
        "mysql-password-file",
        Kind::Text("FILE"),
        None,
        "file with the password, mode 0600; else the option file, else MYSQL_PWD",
    ),
    OptionSpec::new(
        "defaults-file",
        Kind::Text("FILE"),
        None,
        "option file of mode 0600, group [client]: user, password, host, port, socket",
    ),
    OptionSpec::new(
        "mysql-db",
        Kind::Text("NAME"),
        None,
        "database [default: that of the workload]",
    ),
    OptionSpec::new(
        "mysql-ssl",
        Kind::Choice(&[
            "disabled",
            "preferred",
            "required",
            "verify_ca",
            "verify_identity",
            "off",
            "on",
        ]),
        Some("disabled"),
        "TLS; off and on are disabled and required",
    ),
    OptionSpec::new(
        "mysql-ssl-ca",
        Kind::Text("FILE"),
        None,
        "certificate of the authority, for verify_ca and verify_identity",
    ),
    OptionSpec::new(
        "mysql-ssl-cert",
        Kind::Text("FILE"),
        None,
        "the client's certificate",
    ),
    OptionSpec::new("mysql-ssl-key", Kind::Text("FILE"), None, "the client's key"),
    OptionSpec::new(
        "mysql-ssl-cipher",
        Kind::Text("LIST"),
        None,
        "permitted ciphers, as OpenSSL names them; TLS_... for TLS 1.3",
    ),
    OptionSpec::new(
        "mysql-compression",
        Kind::Flag,
        Some("off"),
        "compress the protocol (zlib)",
    ),
    OptionSpec::new(
        "mysql-ignore-errors",
        Kind::Text("LIST"),
        Some("1213,1020,1205"),
        "error numbers that restart the event; `none` for no number; with 2006,2013,2055,2011 a lost connection is opened again",
    ),
    OptionSpec::new(
        "reconnect",
        Kind::Int(0, i64::MAX),
        Some("0"),
        "open the connection again after so many events, within the last one's time; 0: never",
    ),
    OptionSpec::new(
        "reconnect-timeout",
        Kind::Duration,
        Some("30"),
        "how long to try to open a connection again where no server answers",
    ),
    OptionSpec::new(
        "db-ps-mode",
        Kind::Choice(&["auto", "disable"]),
        Some("auto"),
        "auto: statements prepared on the server once per connection; disable: plain text",
    ),
    OptionSpec::new(
        "protocol",
        Kind::Choice(&[
            "auto",
            "text",
            "emulated",
            "ps",
            "ps_cached",
            "ps_uncached",
            "sql_prepare",
        ]),
        Some("auto"),
        "how statements go to the server: text built per call; text from a parsed template; prepared at the start; prepared at first use, in a cache; \
         prepared and closed for each call; PREPARE, SET and EXECUTE as text. auto: as --db-ps-mode says, without it ps, in lookup text",
    ),
    OptionSpec::new(
        "ps-cache-size",
        Kind::Int(0, 1_000_000),
        Some("25"),
        "ps_cached: statements kept per connection",
    ),
    OptionSpec::new(
        "ps-cache-sql-limit",
        Kind::Int(0, 1_000_000_000),
        Some("256"),
        "ps_cached: statements with a text longer than so many bytes go as text",
    ),
    OptionSpec::new(
        "threads",
        Kind::Ints(1, 10_000),
        Some("1"),
        "threads, each with one connection; run: of a list such as 1,2,4,8 every number is a run of its own",
    ),
    OptionSpec::new(
        "time",
        Kind::Duration,
        Some("10"),
        "length of the measurement; 0: no limit (the default with --events)",
    ),
    OptionSpec::new(
        "events",
        Kind::Int(0, i64::MAX),
        Some("0"),
        "events to run, all threads together; 0: no limit",
    ),
    OptionSpec::new(
        "warmup-time",
        Kind::Duration,
        Some("0"),
        "run so long first, on the same connections, uncounted",
    ),
    OptionSpec::new(
        "report-interval",
        Kind::Int(0, 86_400),
        Some("1"),
        "seconds between lines; 0: none",
    ),
    OptionSpec::new(
        "percentile",
        Kind::Int(1, 100),
        Some("95"),
        "latency percentile of the text",
    ),
    OptionSpec::new(
        "rand-seed",
        Kind::Int(0, i64::MAX),
        Some("0"),
        "master seed; the same one gives the same statements; 0: drawn, and recorded",
    ),
    OptionSpec::new(
        "out",
        Kind::Text("RUN"),
        None,
        "run: run directory for the results; without it nothing is written",
    ),
    OptionSpec::new(
        "format",
        Kind::Choice(&["text", "json"]),
        Some("text"),
        "json: the result on stdout, everything else on stderr",
    ),
];
