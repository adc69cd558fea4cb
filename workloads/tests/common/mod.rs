//! A separate database per test on the server that `./test` starts, the generator's binary, and
//! waits with a deadline.

pub mod hostile;
pub mod latencies;
mod mysql_program;
pub mod mysqld;
pub mod running;
pub mod sql;

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use sql::Sql;
use tempfile::TempDir;

/// The server counts for all its clients: one test at a time, so that counters can be compared
/// exactly.
static SERVER: Mutex<()> = Mutex::new(());
/// Limit of every wait: what a test waits for comes within seconds, except on a machine that
/// stalls.
const TIMEOUT: Duration = Duration::from_secs(300);

/// A scratch directory and a database, both removed at the end of the test.
pub struct Bench {
    sql: Sql,
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
        let sql = Sql::shared(None);
        // The statements that it sends between two loads do not belong to them.
        sql.rows("SET SESSION sql_log_off = ON");
        // of a test that failed
        sql.rows(&format!("DROP DATABASE IF EXISTS loadprint_{name}"));
        Self {
            sql,
            _turn: turn,
            dir: TempDir::new().unwrap(),
            database: format!("loadprint_{name}"),
        }
    }

    /// As [`Bench::new`], with the tables of `prepare` and these words.
    pub fn prepared(name: &str, words: &str) -> Self {
        let bench = Self::new(name);
        bench.succeed(&format!("prepare {words}"));
        bench
    }

    /// As [`private_file`], in the scratch directory.
    pub fn private_file(&self, name: &str, text: &str) -> String {
        private_file(self.dir.path(), name, text)
    }

    /// A path in the scratch directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The name of the database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Address and account of the server, as arguments of the generator.
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

    /// As [`Bench::load`], for the caller to start. Waits first until the server has closed all
    /// earlier connections.
    pub fn command(&self, words: &str) -> Command {
        // After a failure a load may still run; the failure must be reported without a wait for its
        // end.
        if !thread::panicking() {
            self.sql.wait_until_disconnected();
        }
        let mut command = generator(words);
        command
            .args(self.connection())
            .arg(format!("--mysql-db={}", self.database));
        command
    }

    /// Runs the generator and expects success; gives its standard output.
    pub fn succeed(&self, words: &str) -> String {
        let output = self.load(words);
        assert_succeeded(&output, words);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the generator and expects the message of [`assert_refused`].
    pub fn refused(&self, words: &str, parts: &[&str]) {
        assert_refused(&self.load(words), parts);
    }

    /// As [`Bench::succeed`] with a run directory of this name; gives its `result.json` and
    /// `server.json`.
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
        // After a failure a load may still run.
        if !thread::panicking() {
            self.sql.wait_until_disconnected();
            self.sql
                .rows(&format!("DROP DATABASE IF EXISTS {}", self.database));
        }
    }
}

/// Writes a file that its owner alone can read.
pub fn private_file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

/// The generator with these arguments.
pub fn generator(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadprint-load"));
    command
        .args(words.split_whitespace())
        .env_remove("MYSQL_PWD")
        .stdin(Stdio::null());
    command
}

/// Builds the Go client; false, with a line, without Go.
pub fn has_go_client(program: &Path) -> bool {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/go");
    let mut go = Command::new("go");
    go.args(["build", "-C", source, "-o"]).arg(program).arg(".");
    match go.status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            eprintln!("go: {error}: the Go client is not tested");
            return false;
        }
    }
    true
}

/// Expects exit status 0.
pub fn assert_succeeded(output: &Output, words: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {error}");
}

/// Expects exit status 2 and one line on standard error that contains these parts.
pub fn assert_refused(output: &Output, parts: &[&str]) {
    let line = only_line(output);
    assert_eq!(output.status.code(), Some(2), "{line}");
    for part in parts {
        assert!(line.contains(part), "`{part}` is not in: {line}");
    }
}

/// The one line on standard error.
pub fn only_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "not one line: {text}");
    assert!(text.starts_with("loadprint-load: "), "{text}");
    text.trim_end().to_owned()
}

/// Standard output as JSON, of a run that succeeded.
pub fn printed_json(output: &Output) -> Value {
    assert_succeeded(output, "--format=json");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A JSON file.
pub fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The objects of a file with one on each line.
pub fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A whole number of a JSON object.
pub fn number(object: &Value, key: &str) -> u64 {
    object[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key}: {}", object[key]))
}

/// Growth of a status counter over `measure`.
pub fn growth(server: &Value, name: &str) -> u64 {
    let at = |when: &str| -> u64 { server[when][name].as_str().unwrap().parse().unwrap() };
    at("status_end") - at("status_begin")
}

/// Polls until the condition is true.
pub fn wait_until(awaited: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {TIMEOUT:?}: {awaited}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for the end of a process that writes little.
pub fn wait_for_end(mut child: Child, name: &str) -> Output {
    wait_until(name, || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap()
}

/// Sends a signal, by its name without SIG.
pub fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
    assert!(sent.unwrap().success());
}
