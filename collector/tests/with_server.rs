//! Tests the MySQL probes on real servers: counters, missing privileges, and servers that hang,
//! crash and restart.
#![cfg(feature = "mysql")]
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

mod common;
#[path = "with_server/secrets.rs"]
mod secrets;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use common::Recorder;
use common::column;
use common::database::Database;
use common::database::client;
use common::database::rows;
use common::database::run;
use common::database::shared;
use common::database::variable;
use common::rows as table;
use common::wait_for;
use loadprint_probes::mysql::client::Client;
use loadprint_recording::journal::Frame;
use loadprint_recording::journal::Reader;
use loadprint_recording::table::read_meta;
use rustix::process::Signal;
use tempfile::TempDir;
use tempfile::tempdir;

const PASSWORD: &str = "not-that-secret";
/// The grants of docs/mysql-probe.md.
const GRANTS: [&str; 3] = [
    "GRANT PROCESS ON *.* TO 'USER'@'localhost'",
    "GRANT SELECT ON performance_schema.events_statements_summary_by_digest TO 'USER'@'localhost'",
    "GRANT SELECT ON performance_schema.events_statements_histogram_global TO 'USER'@'localhost'",
];

/// A run directory and the options of a server.
struct Bench {
    dir: TempDir,
    options: String,
}

impl Bench {
    fn new(socket: &Path, user: &str) -> Self {
        let dir = tempdir().unwrap();
        let secret = dir.path().join("password");
        fs::write(&secret, PASSWORD).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let options = format!(
            "--mysql-socket {} --mysql-user {user} --mysql-password-file {}",
            socket.display(),
            secret.display()
        );
        Self { dir, options }
    }

    fn run(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.run().join("server").join(name)
    }

    fn start(&self, further: &str) -> Recorder {
        Recorder::start(
            &self.run(),
            &format!("{} --interval 100ms {further}", self.options),
        )
    }

    /// The statuses of the probe's reads in the journal.
    fn statuses(&self, probe: &str) -> Vec<String> {
        let mut reader = Reader::open(&self.run().join("server/journal")).unwrap();
        let header = reader
            .header()
            .probes
            .iter()
            .position(|header| header.name == probe)
            .unwrap();
        let mut statuses = vec![];
        while let Some(frame) = reader.next_frame().unwrap() {
            let Frame::Tick(tick) = frame else { continue };
            let of_probe = tick.sections.iter().filter(|section| section.probe == header);
            statuses.extend(of_probe.map(|section| format!("{:?}", section.status)));
        }
        statuses
    }

    /// Waits for two more reads with this status: the first one may have begun before the call.
    fn wait_for_two(&self, probe: &str, status: &str) {
        let seen = self.statuses(probe).len();
        wait_for(status, || {
            let later = &self.statuses(probe)[seen..];
            later.iter().filter(|later| *later == status).count() >= 2
        });
    }

    /// Requests a tick of all probes and waits for it.
    fn edge(&self, recorder: &Recorder) {
        let reads = || ["mysql_digests", "mysql_statements"].map(|probe| self.statuses(probe));
        let answered = |reads: &[Vec<String>; 2]| {
            reads
                .each_ref()
                .map(|read| read.iter().filter(|status| *status == "Ok").count())
        };
        let before = answered(&reads());
        recorder.signal(Signal::USR1);
        wait_for("the reads of an edge", || {
            let now = answered(&reads());
            now.iter().zip(before).all(|(now, before)| *now > before)
        });
    }

    fn end(&self, recorder: Recorder) {
        assert!(!recorder.stop().contains(PASSWORD));
    }

    /// The values of a metric in one column, in the order of ticks.
    fn values(&self, metric: &str, column: &str) -> Vec<String> {
        let rows = table(self.file("mysql.parquet"), ["metric", column]);
        let of_metric = rows.into_iter().filter(|[name, _]| name == metric);
        of_metric.map(|[_, value]| value).collect()
    }

    fn series(&self, metric: &str) -> Vec<i64> {
        let values = self.values(metric, "value");
        values.iter().filter_map(|value| value.parse().ok()).collect()
    }

    fn texts(&self, metric: &str) -> Vec<String> {
        self.values(metric, "text")
    }

    fn growth(&self, metric: &str) -> i64 {
        let series = self.series(metric);
        series.last().unwrap() - series.first().unwrap()
    }

    /// Status and reason of a probe at the start.
    fn probe(&self, name: &str) -> (String, String) {
        let meta = read_meta(&self.file("ticks.parquet")).unwrap();
        let mut probes = meta["probes"].as_array().unwrap().iter();
        let probe = probes.find(|probe| probe["name"] == name).unwrap();
        let word = |key: &str| probe[key].as_str().unwrap_or_default().to_owned();
        (word("status"), word("reason"))
    }

    /// Asserts that the probe was unavailable for a reason of one line with all of these words.
    fn assert_unavailable(&self, probe: &str, words: &[&str]) {
        let (status, reason) = self.probe(probe);
        assert_eq!(status, "unavailable");
        assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
        assert_eq!(reason.lines().count(), 1, "{reason}");
    }

    /// Status and reason of each tick of the probe.
    fn ticks(&self, probe: &str) -> Vec<(String, String)> {
        let rows = table(self.file("ticks.parquet"), ["probe", "status", "reason"]);
        let of_probe = rows.into_iter().filter(|[name, ..]| name == probe);
        of_probe.map(|[_, status, reason]| (status, reason)).collect()
    }
}

fn make_account(root: &mut Client, user: &str, grants: &[&str]) {
    run(
        root,
        &[
            &format!("DROP USER IF EXISTS '{user}'@'localhost'"),
            &format!("CREATE USER '{user}'@'localhost' IDENTIFIED BY '{PASSWORD}'"),
        ],
    );
    for grant in grants {
        run(root, &[&grant.replace("USER", user)]);
    }
}

/// Waits until this is the server's only client. The server does not reply to COM_QUIT, so it may
/// count one after its client has exited.
fn wait_for_other_clients(root: &mut Client) {
    let clients = "SELECT COUNT(*) FROM performance_schema.threads WHERE name = 'thread/sql/one_connection'";
    wait_for("the other clients to disconnect", || rows(root, clients) == ["1"]);
}

fn socket() -> PathBuf {
    variable("LOADPRINT_TEST_SOCKET").into()
}

/// One test after the other on one server, whose counters are compared exactly.
#[test]
fn mysql_counters_without_the_probes_own_statements() {
    let mut root = shared();
    wait_for_other_clients(&mut root);
    twenty_three_statements_are_twenty_three(&mut root);
    missing_privileges_are_named(&mut root);
    counters_that_were_enabled_are_disabled_again(&mut root);
    a_refused_login_is_unavailable();
}

fn twenty_three_statements_are_twenty_three(root: &mut Client) {
    make_account(root, "loadprint_probe", &GRANTS);
    // Earlier tests may have used the server.
    run(
        root,
        &["TRUNCATE performance_schema.events_statements_summary_by_digest"],
    );
    let bench = Bench::new(&socket(), "loadprint_probe");
    let recorder = bench.start("--probes mysql");
    bench.wait_for_two("mysql", "Ok");
    let (mut sent, mut received) = (0, root.received_bytes());
    for number in 0..23 {
        let sql = format!("SELECT {number}, REPEAT('x', {})", 40 * number);
        sent += root.sizes().query(&sql);
        run(root, &[&sql]);
        // A request also reads the probes that are otherwise read at the ends only.
        if number == 9 {
            bench.edge(&recorder);
        }
    }
    received = root.received_bytes() - received;
    bench.wait_for_two("mysql", "Ok");
    // The last tick waits at most two seconds for a busy server.
    bench.edge(&recorder);
    bench.end(recorder);

    for (theirs, own, expected) in [
        ("Questions", "queries", 23),
        ("Queries", "queries", 23),
        ("Com_select", "com_select", 23),
        ("Com_show_status", "com_show_status", 0),
        ("Com_show_variables", "com_show_variables", 0),
        ("Bytes_received", "bytes_received", sent as i64),
        ("Bytes_sent", "bytes_sent", received as i64),
    ] {
        let own = bench.growth(&format!("loadprint.{own}"));
        assert_eq!(bench.growth(theirs) - own, expected, "{theirs}");
    }
    assert_eq!(bench.growth("loadprint.connections"), 0);
    // This version has status variables of the redo log; a decimal is recorded as printed.
    assert!(
        bench.series("Innodb_redo_log_current_lsn")[0] >= bench.series("Innodb_redo_log_checkpoint_lsn")[0]
    );
    assert!(bench.series("innodb_status.last_checkpoint_at").is_empty());
    assert!(!bench.series("innodb_metrics.trx_rseg_history_len").is_empty());
    assert_eq!(
        bench.texts("variables.innodb_max_dirty_pages_pct")[0],
        "90.000000"
    );

    let digests = table(bench.file("mysql_digests.parquet"), ["digest_text", "count"]);
    let is_ours = |text: &str| text.starts_with("SELECT ?") && text.contains("REPEAT");
    let of_ours = digests.iter().filter(|[text, _]| is_ours(text));
    let mut counts: Vec<_> = of_ours.map(|[_, count]| count).collect();
    counts.dedup();
    assert_eq!(counts, ["10", "23"], "{digests:?}");

    let path = bench.file("mysql_statements.parquet");
    let meta = read_meta(&path).unwrap();
    let bounds = meta["columns"]["buckets"]["bounds"].as_array().unwrap();
    assert_eq!(
        (bounds.len(), bounds[0].as_f64(), bounds[450].as_f64()),
        (451, Some(0.0), None)
    );
    let lists = column(path, "buckets");
    let sum = |list: &str| -> u64 {
        let numbers = list.trim_matches(['[', ']']).split(", ");
        numbers.map(|number| number.parse::<u64>().unwrap()).sum()
    };
    assert!(sum(lists.last().unwrap()) - sum(&lists[0]) >= 23);
}

fn missing_privileges_are_named(root: &mut Client) {
    wait_for_other_clients(root);
    make_account(root, "loadprint_nobody", &[]);
    let bench = Bench::new(&socket(), "loadprint_nobody");
    let recorder = bench.start("--probes mysql");
    bench.wait_for_two("mysql", "Ok");
    bench.end(recorder);
    assert!(bench.series("Questions").len() >= 3);
    let refusals = bench.texts("loadprint.refused.innodb_metrics");
    assert_eq!(
        refusals.len(),
        bench.series("Questions").len(),
        "the refusal is recorded at every tick"
    );
    assert!(refusals[0].contains("PROCESS"), "{refusals:?}");
    // The probe queried the table once, after the first SHOW GLOBAL STATUS; the server counts a
    // refused query.
    assert_eq!(bench.growth("loadprint.com_select"), 1);
    for (theirs, own) in [
        ("Questions", "loadprint.queries"),
        ("Bytes_received", "loadprint.bytes_received"),
        ("Bytes_sent", "loadprint.bytes_sent"),
    ] {
        assert_eq!(bench.growth(theirs), bench.growth(own), "{theirs}");
    }
    for probe in ["mysql_digests", "mysql_statements"] {
        bench.assert_unavailable(probe, &["GRANT SELECT ON performance_schema."]);
    }
}

fn counters_that_were_enabled_are_disabled_again(root: &mut Client) {
    let monitor = "GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO 'USER'@'localhost'";
    make_account(root, "loadprint_probe", &[GRANTS[0], monitor]);
    // One of them is on before the recording and must stay on.
    run(
        root,
        &["SET GLOBAL innodb_monitor_enable = 'buffer_flush_avg_page_rate'"],
    );
    let question = "SELECT NAME, STATUS FROM information_schema.INNODB_METRICS ORDER BY NAME";
    let before = rows(root, question);
    let bench = Bench::new(&socket(), "loadprint_probe");
    let recorder = bench.start("--probes mysql --mysql-monitor");
    bench.wait_for_two("mysql", "Ok");
    let during = rows(root, question);
    bench.end(recorder);
    assert!(during.contains(&"log_lsn_checkpoint_age\tenabled".to_owned()));
    assert!(before.contains(&"log_lsn_checkpoint_age\tdisabled".to_owned()));
    assert_eq!(rows(root, question), before);
    run(
        root,
        &["SET GLOBAL innodb_monitor_disable = 'buffer_flush_avg_page_rate'"],
    );
    assert!(!bench.series("innodb_metrics.log_lsn_checkpoint_age").is_empty());
    assert!(
        !bench
            .series("innodb_metrics.buffer_flush_adaptive_total_pages")
            .is_empty()
    );
    assert!(bench.texts("loadprint.refused.innodb_monitor").is_empty());
}

fn a_refused_login_is_unavailable() {
    let bench = Bench::new(&socket(), "loadprint_probe");
    fs::write(bench.dir.path().join("password"), "wrong").unwrap();
    let recorder = bench.start("--probes cpu,mysql");
    bench.end(recorder);
    bench.assert_unavailable("mysql", &["Access denied", "--mysql-password-file"]);
    assert_eq!(bench.probe("cpu").0, "running");
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn the_probe_survives_a_server_that_starts_late_crashes_and_hangs() {
    let mut server = Database::mysql();
    server.start(&[]);
    make_account(&mut server.root(), "loadprint_probe", &GRANTS);
    server.kill();

    let bench = Bench::new(&server.socket(), "loadprint_probe");
    let recorder = bench.start("--probes cpu,mysql");
    bench.wait_for_two("mysql", "Failed");
    server.start(&[]);
    bench.wait_for_two("mysql", "Ok");
    server.kill();
    bench.wait_for_two("mysql", "Failed");
    server.start(&[]);
    bench.wait_for_two("mysql", "Ok");
    server.signal(Signal::STOP);
    // The other probes continue, and the recorder ends while the server hangs.
    bench.wait_for_two("mysql", "Skipped");
    bench.wait_for_two("cpu", "Ok");
    bench.end(recorder);
    server.signal(Signal::CONT);

    let ticks = bench.ticks("mysql");
    assert_eq!(ticks.last().unwrap().0, "skipped", "the read is in progress");
    let failed = ticks.iter().find(|(status, _)| status == "failed").unwrap();
    assert!(
        failed.1.contains("sock") && failed.1.contains("Can't connect"),
        "{failed:?}"
    );
    assert!(ticks.iter().any(|(_, reason)| reason.contains("next attempt in")));
    assert!(bench.ticks("cpu").iter().all(|(status, _)| status == "ok"));
    // Rows exist only for the ticks at which the server replied.
    let answered = ticks.iter().filter(|(status, _)| status == "ok").count();
    assert_eq!(bench.series("Questions").len(), answered);
    assert_eq!(bench.series("loadprint.connections").last(), Some(&2));
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn mariadb_has_a_query_cache_and_no_histogram() {
    let mut server = Database::mariadb();
    server.start(&["--query-cache-type=ON"]);
    let mut root = server.root();
    make_account(&mut root, "loadprint_probe", &GRANTS[..1]);
    run(&mut root, &["CREATE DATABASE t", "CREATE TABLE t.t (a INT)"]);
    let bench = Bench::new(&server.socket(), "loadprint_probe");
    let recorder = bench.start("--probes mysql");
    bench.wait_for_two("mysql", "Ok");
    let mut other = client(&server.socket(), "root", "");
    for _ in 0..23 {
        run(&mut other, &["SELECT a FROM t.t"]);
    }
    bench.wait_for_two("mysql", "Ok");
    bench.end(recorder);
    // The first query fills the cache, the others read it.
    assert_eq!(
        (bench.growth("Qcache_inserts"), bench.growth("Qcache_hits")),
        (1, 22)
    );
    assert_eq!(bench.growth("Questions") - bench.growth("loadprint.queries"), 23);
    assert!(
        !bench.series("Innodb_checkpoint_age").is_empty()
            && !bench.series("Innodb_checkpoint_max_age").is_empty()
    );
    assert!(bench.series("Innodb_redo_log_current_lsn").is_empty());
    assert!(bench.series("innodb_status.last_checkpoint_at").is_empty());
    assert!(
        !bench.series("innodb_metrics.trx_rseg_history_len").is_empty(),
        "by its column ENABLED"
    );
    bench.assert_unavailable("mysql_digests", &["performance_schema is off"]);
    // The reason must not suggest a grant for a table that this server does not have.
    let missing = "has no table performance_schema.events_statements_histogram_global; MySQL 8.0.3";
    bench.assert_unavailable("mysql_statements", &[missing]);
    assert!(!bench.probe("mysql_statements").1.contains("GRANT"));
}
