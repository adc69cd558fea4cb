//! Declares the options of every workload: connection, protocol, length, output.

use std::path::PathBuf;

use serde::Deserialize;
use serde::Deserializer;

use super::options;
use crate::engine::Undo;
use crate::engine::schedule::Arrivals;

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

options! {
    /// Options of every workload.
    pub COMMON, Common;
    mysql_host: Option<String> = Text("HOST,...")
        .help("server addresses, assigned to the connections round-robin; localhost is the unix socket [default: localhost]"),
    mysql_port: Option<String> = Text("PORT,...")
        .help("TCP ports, each combined with every host [default: 3306]"),
    mysql_socket: Option<String> = Text("PATH,...")
        .help("unix sockets, assigned round-robin; hosts and ports are then ignored"),
    mysql_user: Option<String> = Text("USER")
        .help("user name [default: sbtest]"),
    mysql_password_file: Option<PathBuf> = Text("FILE")
        .help("file with the password, mode 0600 [default: the option file, then MYSQL_PWD]"),
    defaults_file: Option<PathBuf> = Text("FILE")
        .help("MySQL option file, mode 0600; group [client]: user, password, host, port, socket, ssl-mode, ssl-ca and others"),
    mysql_db: Option<String> = Text("NAME")
        .help("database [default: the workload's]"),
    mysql_ssl: Option<String> = Choice(SSL_MODES)
        .help("TLS mode; off means disabled, on means required [default: the option file, verify_ca with a CA, else disabled as in sysbench]"),
    mysql_ssl_ca: Option<String> = Text("FILE")
        .help("CA certificate, for verify_ca and verify_identity"),
    mysql_ssl_cert: Option<String> = Text("FILE")
        .help("client certificate"),
    mysql_ssl_key: Option<String> = Text("FILE")
        .help("client key"),
    mysql_ssl_cipher: Option<String> = Text("LIST")
        .help("permitted ciphers, as OpenSSL names them; TLS_... for TLS 1.3"),
    mysql_server_public_key_path: Option<String> = Text("FILE")
        .help("the server's RSA public key, PEM, under which the password is sent without TLS"),
    mysql_get_server_public_key: bool = Flag
        .default("off")
        .help("send the password to any server that answers at the address, without TLS under the key that it sends; over a unix socket and loopback this is always permitted"),
    mysql_compression: bool = Flag
        .default("off")
        .help("compress the protocol (zlib)"),
    mysql_ignore_errors: String = Text("LIST")
        .default("1213,1020,1205")
        .help("error numbers that are ignored: the event is rolled back and run again; `all`, `none` or a list; with 1053,2006,2011,2013,2055,4031 a lost connection is reopened"),
    reconnect: u64 = Int(0, i64::MAX)
        .default("0")
        .help("reopen the connection after every N events, within the latency of the last one; 0: never"),
    reconnect_timeout: f64 = Duration
        .default("30")
        .help("how long to retry a reconnect while no server answers"),
    db_ps_mode: String = Choice(&["auto", "disable"])
        .default("auto")
        .help("auto: server-side prepared statements; disable: emulated in the client"),
    protocol: String = Choice(PROTOCOLS)
        .default("auto")
        .help("how statements are sent; text: built for each call; emulated: text from a parsed template; ps: prepared at the start; ps_cached: prepared at \
         first use, in a cache; ps_uncached: prepared and closed for each call; sql_prepare: PREPARE, SET and EXECUTE as text; auto: follows \
         --db-ps-mode, else ps (lookup: text)"),
    ps_cache_size: usize = Int(0, 1_000_000)
        .default("25")
        .help("ps_cached: statements cached per connection"),
    ps_cache_sql_limit: usize = Int(0, 1_000_000_000)
        .default("256")
        .help("ps_cached: statements longer than N bytes are not cached and are sent as text"),
    /// At least one.
    #[serde(deserialize_with = "one_or_several")]
    threads: Vec<usize> = Ints(1, 10_000)
        .default("1")
        .help("threads, each with one connection; run: a list such as 1,2,4,8 makes one run for each number"),
    time: f64 = Duration
        .default("10")
        .help("length of the measurement; 0: no limit (the default with --events), it ends with SIGINT or SIGTERM"),
    events: u64 = Int(0, i64::MAX)
        .default("0")
        .help("number of events, all threads together; 0: no limit"),
    warmup_time: f64 = Duration
        .default("0")
        .help("length of the warm-up before the measurement, on the same connections, not counted"),
    paused: bool = Flag
        .default("off")
        .help("begin with a pause, which SIGUSR2 ends"),
    ramp_time: f64 = Duration
        .default("0")
        .help("start the threads one by one over this time, before the warm-up, not counted"),
    rate: f64 = Number(0.0, 1e9)
        .default("0")
        .help("open loop: operations per second, all threads together; 0: closed loop"),
    arrivals: Arrivals = Choice(&["poisson", "constant"])
        .default("poisson")
        .help("distribution of the arrivals of --rate: independent, or at equal intervals"),
    compat: Undo = Choice(&["none", "sysbench"])
        .default("none")
        .help("sysbench: no ROLLBACK after an ignored error; the next BEGIN then commits what a lock wait timeout left open"),
    thread_init_timeout: f64 = Duration
        .default("30")
        .help("give up when no further thread became ready for this time; also the limit of each login"),
    mysql_read_timeout: Option<f64> = Duration
        .help("a statement without a complete result after this time fails with error 2013 and its connection is closed; not applied to \
         CREATE, ALTER, ANALYZE and other statements on whole tables; 0: no limit [default: 300 for run, 0 for the other verbs]"),
    forced_shutdown: String = Text("SECONDS|off")
        .default("120")
        .help("after --time, close the connections when no thread ended its event for this time"),
    report_interval: u32 = Int(0, 86_400)
        .default("1")
        .help("seconds between interval reports; 0: no reports"),
    percentile: u8 = Int(0, 100)
        .default("95")
        .help("latency percentile of the printed report; 0: none"),
    histogram: bool = Flag
        .default("off")
        .help("print the latency histogram in the format of sysbench"),
    #[expect(dead_code, reason = "accepted for compatibility")]
    verbosity: u8 = Int(0, 5)
        .default("3")
        .help("accepted for compatibility with sysbench; has no effect"),
    #[expect(dead_code, reason = "accepted for compatibility")]
    db_driver: String = Choice(&["mysql"])
        .default("mysql")
        .help("accepted for compatibility with sysbench; mysql is the only driver"),
    rand_seed: u64 = Int(0, i64::MAX)
        .default("0")
        .help("random seed; the same seed gives the same statements; 0: chosen at random and recorded"),
    out: Option<PathBuf> = Text("RUN")
        .help("run: run directory for the results [default: no files are written]"),
    format: String = Choice(&["text", "json"])
        .default("text")
        .help("json: result on stdout, progress on stderr"),
}

/// A list of one number is a number.
fn one_or_several<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<usize>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Numbers {
        One(usize),
        Several(Vec<usize>),
    }
    Ok(match Numbers::deserialize(value)? {
        Numbers::One(number) => vec![number],
        Numbers::Several(numbers) => numbers,
    })
}
