//! Tests that no file of a run contains a secret of the server's variables: those that this server
//! has are set, the server shows them, and recorder and generator write a run directory.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::common::database::Database;
use crate::common::database::rows;
use crate::common::database::run;
use crate::common::succeed;
use crate::common::succeeded;
use tempfile::tempdir;

/// Part of every secret.
const SECRET: &str = "quite-secret";

/// Options of both servers, then those of MariaDB.
const OPTIONS: [&str; 2] = [
    "--report-password=quite-secret",
    "--init-connect=SET @a = 1; ALTER USER CURRENT_USER() IDENTIFIED BY 'quite-secret'",
];
const MARIADB: [&str; 7] = [
    "--wsrep-sst-auth=root:quite-secret",
    "--wsrep-cluster-address=gcomm://user:quite-secret@127.0.0.1",
    "--wsrep-notify-cmd=/bin/true --password quite-secret --token=quite-secret -pquite-secret",
    "--wsrep-provider-options=gcs.fc_limit=16; socket.password=quite-secret",
    "--feedback=ON",
    "--feedback-http-proxy=http://user:quite-secret@127.0.0.1:1/",
    "--feedback-url=http://user:quite-secret@127.0.0.1:1/post",
];
fn load(words: &str, socket: &Path) {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_loadprint-collect")).with_file_name("loadprint-load");
    let output = Command::new(program)
        .args(words.split(' '))
        .arg(format!("--mysql-socket={}", socket.display()))
        .args(["--mysql-user=root", "--table-size=10"])
        .env_remove("MYSQL_PWD")
        .output()
        .unwrap();
    succeeded(&output);
}

/// The files below a directory that contain the secret.
fn files_with_secret(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with_secret(&path));
        } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(SECRET) {
            found.push(path);
        }
    }
    found
}

/// `shown` of the options are variables that the server shows.
fn check(mut server: Database, options: &[&str], shown: usize) {
    server.start(options);
    let mut root = server.root();
    let select = "SHOW GLOBAL VARIABLES WHERE Value LIKE '%quite-secret%'";
    let secrets = rows(&mut root, select);
    assert!(secrets.len() >= shown, "the server shows only {secrets:?}");
    run(&mut root, &["CREATE DATABASE sbtest"]);
    let dir = tempdir().unwrap();
    let run = dir.path().join("run");
    let out = run.display().to_string();
    load("prepare oltp_point_select", &server.socket());
    load(
        &format!("run oltp_point_select --events=10 --out={out}"),
        &server.socket(),
    );
    let server = format!("--mysql-socket {} --mysql-user root", server.socket().display());
    succeed(&format!(
        "record --out {out} --duration 300ms --interval 100ms {server}"
    ));
    assert!(run.join("load/server.json").exists() && run.join("server/mysql.parquet").exists());
    let variables = fs::read_to_string(run.join("load/server.json")).unwrap();
    assert!(variables.matches("<redacted>").count() >= shown, "{secrets:?}");
    assert_eq!(
        files_with_secret(dir.path()),
        Vec::<PathBuf>::new(),
        "{secrets:?}"
    );
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn secrets_of_mysql_are_in_no_file() {
    check(Database::mysql(), &OPTIONS, OPTIONS.len());
}

#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn secrets_of_mariadb_are_in_no_file() {
    // All but the switch of the plugin.
    let shown = OPTIONS.len() + MARIADB.len() - 1;
    let options = [&OPTIONS[..], &MARIADB].concat();
    check(Database::mariadb(), &options, shown);
}
