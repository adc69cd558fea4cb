//! Declares the options of every workload: connection, protocol, length, output.

use super::OptionSpec;

const SSL_MODES: &[&str] = &[
    "disabled",
    "preferred",
    "required",
    "verify_ca",
    "verify_identity",
    "off",
    "on",
];

const PROTOCOLS: &[&str] = &[
    "auto",
    "text",
    "emulated",
    "ps",
    "ps_cached",
    "ps_uncached",
    "sql_prepare",
];

/// Options of every workload.
pub const COMMON: &[OptionSpec] = &[
    OptionSpec::text("mysql-host", "HOST,...")
        .help("server addresses, assigned to the connections round-robin; localhost is the unix socket [default: localhost]"),
    OptionSpec::text("mysql-port", "PORT,...")
        .help("TCP ports, each combined with every host [default: 3306]"),
    OptionSpec::text("mysql-socket", "PATH,...")
        .help("unix sockets, assigned round-robin; hosts and ports are then ignored"),
    OptionSpec::text("mysql-user", "USER")
        .help("user name [default: sbtest]"),
    OptionSpec::text("mysql-password-file", "FILE")
        .help("file with the password, mode 0600 [default: the option file, then MYSQL_PWD]"),
    OptionSpec::text("defaults-file", "FILE")
        .help("MySQL option file, mode 0600; group [client]: user, password, host, port, socket, ssl-mode, ssl-ca and others"),
    OptionSpec::text("mysql-db", "NAME")
        .help("database [default: the workload's]"),
    OptionSpec::choice("mysql-ssl", SSL_MODES)
        .help("TLS mode; off means disabled, on means required [default: the option file, verify_ca with a CA, else disabled as in sysbench]"),
    OptionSpec::text("mysql-ssl-ca", "FILE")
        .help("CA certificate, for verify_ca and verify_identity"),
    OptionSpec::text("mysql-ssl-cert", "FILE")
        .help("client certificate"),
    OptionSpec::text("mysql-ssl-key", "FILE")
        .help("client key"),
    OptionSpec::text("mysql-ssl-cipher", "LIST")
        .help("permitted ciphers, as OpenSSL names them; TLS_... for TLS 1.3"),
    OptionSpec::text("mysql-server-public-key-path", "FILE")
        .help("the server's RSA public key, PEM, under which the password is sent without TLS"),
    OptionSpec::flag("mysql-get-server-public-key")
        .default("off")
        .help("send the password to any server that answers at the address, without TLS under the key that it sends; over a unix socket and loopback this is always permitted"),
    OptionSpec::flag("mysql-compression")
        .default("off")
        .help("compress the protocol (zlib)"),
    OptionSpec::text("mysql-ignore-errors", "LIST")
        .default("1213,1020,1205")
        .help("error numbers that are ignored: the event is rolled back and run again; `all`, `none` or a list; with 2006,2013,2055,2011 a lost connection is reopened"),
    OptionSpec::int("reconnect", 0, i64::MAX)
        .default("0")
        .help("reopen the connection after every N events, within the latency of the last one; 0: never"),
    OptionSpec::duration("reconnect-timeout")
        .default("30")
        .help("how long to retry a reconnect while no server answers"),
    OptionSpec::choice("db-ps-mode", &["auto", "disable"])
        .default("auto")
        .help("auto: server-side prepared statements; disable: emulated in the client"),
    OptionSpec::choice("protocol", PROTOCOLS)
        .default("auto")
        .help("how statements are sent; text: built for each call; emulated: text from a parsed template; ps: prepared at the start; ps_cached: prepared at \
         first use, in a cache; ps_uncached: prepared and closed for each call; sql_prepare: PREPARE, SET and EXECUTE as text; auto: follows \
         --db-ps-mode, else ps (lookup: text)"),
    OptionSpec::int("ps-cache-size", 0, 1_000_000)
        .default("25")
        .help("ps_cached: statements cached per connection"),
    OptionSpec::int("ps-cache-sql-limit", 0, 1_000_000_000)
        .default("256")
        .help("ps_cached: statements longer than N bytes are not cached and are sent as text"),
    OptionSpec::ints("threads", 1, 10_000)
        .default("1")
        .help("threads, each with one connection; run: a list such as 1,2,4,8 makes one run for each number"),
    OptionSpec::duration("time")
        .default("10")
        .help("length of the measurement; 0: no limit (the default with --events), it ends with SIGINT or SIGTERM"),
    OptionSpec::int("events", 0, i64::MAX)
        .default("0")
        .help("number of events, all threads together; 0: no limit"),
    OptionSpec::duration("warmup-time")
        .default("0")
        .help("length of the warm-up before the measurement, on the same connections, not counted"),
    OptionSpec::flag("paused")
        .default("off")
        .help("begin with a pause, which SIGUSR2 ends"),
    OptionSpec::duration("ramp-time")
        .default("0")
        .help("start the threads one by one over this time, before the warm-up, not counted"),
    OptionSpec::number("rate", 0.0, 1e9)
        .default("0")
        .help("open loop: operations per second, all threads together; 0: closed loop"),
    OptionSpec::choice("arrivals", &["poisson", "constant"])
        .default("poisson")
        .help("distribution of the arrivals of --rate: independent, or at equal intervals"),
    OptionSpec::choice("compat", &["none", "sysbench"])
        .default("none")
        .help("sysbench: no ROLLBACK after an ignored error; the next BEGIN then commits what a lock wait timeout left open"),
    OptionSpec::duration("thread-init-timeout")
        .default("30")
        .help("give up when no further thread became ready for this time; also the limit of each login"),
    OptionSpec::duration("mysql-read-timeout")
        .help("a statement without a complete result after this time fails with error 2013 and its connection is closed; not applied to \
         CREATE, ALTER, ANALYZE and other statements on whole tables; 0: no limit [default: 300 for run, 0 for the other verbs]"),
    OptionSpec::text("forced-shutdown", "SECONDS|off")
        .default("120")
        .help("after --time, close the connections when no thread ended its event for this time"),
    OptionSpec::int("report-interval", 0, 86_400)
        .default("1")
        .help("seconds between interval reports; 0: no reports"),
    OptionSpec::int("percentile", 0, 100)
        .default("95")
        .help("latency percentile of the printed report; 0: none"),
    OptionSpec::flag("histogram")
        .default("off")
        .help("print the latency histogram in the format of sysbench"),
    OptionSpec::int("verbosity", 0, 5)
        .default("3")
        .help("accepted for compatibility with sysbench; has no effect"),
    OptionSpec::choice("db-driver", &["mysql"])
        .default("mysql")
        .help("accepted for compatibility with sysbench; mysql is the only driver"),
    OptionSpec::int("rand-seed", 0, i64::MAX)
        .default("0")
        .help("random seed; the same seed gives the same statements; 0: chosen at random and recorded"),
    OptionSpec::text("out", "RUN")
        .help("run: run directory for the results [default: no files are written]"),
    OptionSpec::choice("format", &["text", "json"])
        .default("text")
        .help("json: result on stdout, progress on stderr"),
];
