//! Declares the options of every workload: connection, protocol, length, output.

use super::Kind;
use super::OptionSpec;

/// Options of every workload.
pub const COMMON: &[OptionSpec] = &[
    OptionSpec::new(
        "mysql-host",
        Kind::Text("HOST,..."),
        None,
        "server addresses, assigned to the connections round-robin; localhost is the unix socket [default: localhost]",
    ),
    OptionSpec::new(
        "mysql-port",
        Kind::Text("PORT,..."),
        None,
        "TCP ports, each combined with every host [default: 3306]",
    ),
    OptionSpec::new(
        "mysql-socket",
        Kind::Text("PATH,..."),
        None,
        "unix sockets, assigned round-robin; hosts and ports are then ignored",
    ),
    OptionSpec::new(
        "mysql-user",
        Kind::Text("USER"),
        None,
        "user name [default: sbtest]",
    ),
    OptionSpec::new(
        "mysql-password-file",
        Kind::Text("FILE"),
        None,
        "file with the password, mode 0600 [default: the option file, then MYSQL_PWD]",
    ),
    OptionSpec::new(
        "defaults-file",
        Kind::Text("FILE"),
        None,
        "MySQL option file, mode 0600; group [client]: user, password, host, port, socket, ssl-mode, ssl-ca and others",
    ),
    OptionSpec::new(
        "mysql-db",
        Kind::Text("NAME"),
        None,
        "database [default: the workload's]",
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
        None,
        "TLS mode; off means disabled, on means required [default: the option file, verify_ca with a CA, else disabled as in sysbench]",
    ),
    OptionSpec::new(
        "mysql-ssl-ca",
        Kind::Text("FILE"),
        None,
        "CA certificate, for verify_ca and verify_identity",
    ),
    OptionSpec::new("mysql-ssl-cert", Kind::Text("FILE"), None, "client certificate"),
    OptionSpec::new("mysql-ssl-key", Kind::Text("FILE"), None, "client key"),
    OptionSpec::new(
        "mysql-ssl-cipher",
        Kind::Text("LIST"),
        None,
        "permitted ciphers, as OpenSSL names them; TLS_... for TLS 1.3",
    ),
    OptionSpec::new(
        "mysql-server-public-key-path",
        Kind::Text("FILE"),
        None,
        "the server's RSA public key, PEM; without TLS the password is sent only under this key",
    ),
    OptionSpec::new(
        "mysql-get-server-public-key",
        Kind::Flag,
        Some("off"),
        "without TLS, send the password under the key that the server sends; over a unix socket and loopback this is always permitted",
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
        "error numbers that are ignored: the event is rolled back and run again; `all`, `none` or a list; with 2006,2013,2055,2011 a lost connection is reopened",
    ),
    OptionSpec::new(
        "reconnect",
        Kind::Int(0, i64::MAX),
        Some("0"),
        "reopen the connection after every N events, within the latency of the last one; 0: never",
    ),
    OptionSpec::new(
        "reconnect-timeout",
        Kind::Duration,
        Some("30"),
        "how long to retry a reconnect while no server answers",
    ),
    OptionSpec::new(
        "db-ps-mode",
        Kind::Choice(&["auto", "disable"]),
        Some("auto"),
        "auto: server-side prepared statements; disable: emulated in the client",
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
        "how statements are sent; text: built for each call; emulated: text from a parsed template; ps: prepared at the start; ps_cached: prepared at \
         first use, in a cache; ps_uncached: prepared and closed for each call; sql_prepare: PREPARE, SET and EXECUTE as text; auto: follows \
         --db-ps-mode, else ps (lookup: text)",
    ),
    OptionSpec::new(
        "ps-cache-size",
        Kind::Int(0, 1_000_000),
        Some("25"),
        "ps_cached: statements cached per connection",
    ),
    OptionSpec::new(
        "ps-cache-sql-limit",
        Kind::Int(0, 1_000_000_000),
        Some("256"),
        "ps_cached: statements longer than N bytes are not cached and are sent as text",
    ),
    OptionSpec::new(
        "threads",
        Kind::Ints(1, 10_000),
        Some("1"),
        "threads, each with one connection; run: a list such as 1,2,4,8 makes one run for each number",
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
        "number of events, all threads together; 0: no limit",
    ),
    OptionSpec::new(
        "warmup-time",
        Kind::Duration,
        Some("0"),
        "length of the warm-up before the measurement, on the same connections, not counted",
    ),
    OptionSpec::new(
        "ramp-time",
        Kind::Duration,
        Some("0"),
        "start the threads one by one over this time, before the warm-up, not counted",
    ),
    OptionSpec::new(
        "rate",
        Kind::Number(0.0, 1e9),
        Some("0"),
        "open loop: operations per second, all threads together; 0: closed loop",
    ),
    OptionSpec::new(
        "arrivals",
        Kind::Choice(&["poisson", "constant"]),
        Some("poisson"),
        "distribution of the arrivals of --rate: independent, or at equal intervals",
    ),
    OptionSpec::new(
        "compat",
        Kind::Choice(&["none", "sysbench"]),
        Some("none"),
        "sysbench: no ROLLBACK after an ignored error; the next BEGIN then commits what a lock wait timeout left open",
    ),
    OptionSpec::new(
        "thread-init-timeout",
        Kind::Duration,
        Some("30"),
        "give up when no further thread became ready for this time; also the limit of each login",
    ),
    OptionSpec::new(
        "mysql-read-timeout",
        Kind::Duration,
        None,
        "a statement without a complete result after this time fails with error 2013 and its connection is closed; not applied to \
         CREATE, ALTER, ANALYZE and other statements on whole tables; 0: no limit [default: 300 for run, 0 for the other verbs]",
    ),
    OptionSpec::new(
        "forced-shutdown",
        Kind::Text("SECONDS|off"),
        Some("120"),
        "after --time, close the connections when no thread ended its event for this time",
    ),
    OptionSpec::new(
        "report-interval",
        Kind::Int(0, 86_400),
        Some("1"),
        "seconds between interval reports; 0: no reports",
    ),
    OptionSpec::new(
        "percentile",
        Kind::Int(0, 100),
        Some("95"),
        "latency percentile of the printed report; 0: none",
    ),
    OptionSpec::new(
        "histogram",
        Kind::Flag,
        Some("off"),
        "print the latency histogram in the format of sysbench",
    ),
    OptionSpec::new(
        "verbosity",
        Kind::Int(0, 5),
        Some("3"),
        "accepted for compatibility with sysbench; has no effect",
    ),
    OptionSpec::new(
        "db-driver",
        Kind::Choice(&["mysql"]),
        Some("mysql"),
        "accepted for compatibility with sysbench; mysql is the only driver",
    ),
    OptionSpec::new(
        "rand-seed",
        Kind::Int(0, i64::MAX),
        Some("0"),
        "random seed; the same seed gives the same statements; 0: chosen at random and recorded",
    ),
    OptionSpec::new(
        "out",
        Kind::Text("RUN"),
        None,
        "run: run directory for the results [default: no files are written]",
    ),
    OptionSpec::new(
        "format",
        Kind::Choice(&["text", "json"]),
        Some("text"),
        "json: result on stdout, progress on stderr",
    ),
];
