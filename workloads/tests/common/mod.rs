//! A database of its own per test on the server that `./test` starts, and the generator's binary.

pub mod hostile;
pub mod mysqld;
pub mod proxy;
pub mod sql;

use std::env;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread;

use serde_json::Value;
use sql::Sql;
use tempfile::TempDir;

/// The server counts for all its clients: one test at a time, so that counters can be compared exactly.
static SERVER: Mutex<()> = Mutex::new(());

/// A scratch directory and a database, both gone at the end of the test.
pub struct Bench {
    watch: Sql,
    _turn: MutexGuard<'static, ()>,
    dir: TempDir,
    database: String,
}

/// The variable's value; a test without a server is a failure, not a pass.
pub fn variable(name: &str) -> String {
    env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run ./test, which starts a server for these tests"))
}

impl Bench {
    /// `name` must be unique among the tests.
    pub fn new(name: &str) -> Self {
        variable("LOADPRINT_TEST_SOCKET");
        let turn = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
        let watch = Sql::shared(None);
        // What it asks between two loads is not theirs.
        watch.rows("SET SESSION sql_log_off = ON");
        Self {
            watch,
            _turn: turn,
            dir: TempDir::new().unwrap(),
            database: format!("loadprint_{name}"),
        }
    }

    /// A path in the scratch directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The name of the database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Where the server is and as whom, as arguments of the generator.
    pub fn connection(&self) -> Vec<String> {
        let mut arguments = vec![format!("--mysql-socket={}", variable("LOADPRINT_TEST_SOCKET"))];
        match env::var("LOADPRINT_TEST_DEFAULTS") {
            Ok(file) => arguments.push(format!("--defaults-file={file}")),
            Err(_) => arguments.push("--mysql-user=root".to_owned()),
        }
        arguments
    }

    /// Runs the generator on this test's database.
    pub fn load(&self, words: &str) -> Output {
        self.command(words).output().unwrap()
    }

    /// As [`Bench::load`], to be started and left to run. What came before it is over on the server's side too.
    pub fn command(&self, words: &str) -> Command {
        // After a failure a load may be running still, and the failure is what is to be told.
        if !thread::panicking() {
            self.watch.wait_until_let_go();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadprint-load"));
        command.args(words.split_whitespace());
        command
            .args(self.connection())
            .arg(format!("--mysql-db={}", self.database));
        command.stdin(Stdio::null());
        command
    }

    /// Runs the generator and expects success; gives its standard output.
    pub fn succeed(&self, words: &str) -> String {
        let output = self.load(words);
        assert!(
            output.status.success(),
            "{words}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// As [`Bench::succeed`] with a run directory of this name; gives its `result.json` and `server.json`.
    pub fn recorded(&self, words: &str, name: &str) -> (Value, Value) {
        let run = self.path(name);
        self.succeed(&format!("{words} --out={}", run.display()));
        (
            json(&run.join("load/result.json")),
            json(&run.join("load/server.json")),
        )
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Tables of all workloads; the empty database is left to the server's end.
        for words in [
            "cleanup oltp_read_write --tables=8",
            "cleanup arm_insert",
            "cleanup insert_benchmark",
            "cleanup tproc_c",
        ] {
            self.load(words);
        }
    }
}

/// The one line on standard error.
pub fn only_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "one line is wanted: {text}");
    assert!(text.starts_with("loadprint-load: "), "{text}");
    text.trim_end().to_owned()
}

/// A JSON file.
pub fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// By how much a status counter grew over `measure`.
pub fn growth(server: &Value, name: &str) -> u64 {
    let at = |when: &str| -> u64 { server[when][name].as_str().unwrap().parse().unwrap() };
    at("status_end") - at("status_begin")
}
