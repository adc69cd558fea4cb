//! Starts private database servers for tests: MySQL from the root directory of `tests/with-server`,
//! MariaDB from the distribution's package. Each is a child process that a test can stop, kill and
//! restart.

use std::env;
use std::fs;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use loadprint_probes::mysql::account::Account;
use loadprint_probes::mysql::account::OptionFile;
use loadprint_probes::mysql::client::Cells;
use loadprint_probes::mysql::client::Client;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;
use tempfile::TempDir;

use super::mysql_program::mysql_program;
use super::wait_for;

/// The variable's value; without it the test fails, because it needs a server.
pub fn variable(name: &str) -> String {
    env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run ./test, which starts a server for these tests"))
}

fn account(socket: &Path, user: &str, password: &str) -> Account {
    Account {
        host: Some("localhost".to_owned()),
        socket: Some(socket.display().to_string()),
        user: Some(user.to_owned()),
        password: Some(password.to_owned()),
        ..Account::default()
    }
}

/// A client of the server at `socket`.
pub fn client(socket: &Path, user: &str, password: &str) -> Client {
    Client::connect(&account(socket, user, password)).unwrap()
}

/// A client with all privileges on the server that `tests/with-server` started.
pub fn shared() -> Client {
    let path = variable("LOADPRINT_TEST_DEFAULTS");
    let file = OptionFile::read(Path::new(&path), "LOADPRINT_TEST_DEFAULTS", &["client"]).unwrap();
    let value = |name| file.get(name).unwrap_or_default();
    client(Path::new(value("socket")), value("user"), value("password"))
}

/// Runs statements that must succeed.
pub fn run(client: &mut Client, statements: &[&str]) {
    for sql in statements {
        client
            .query(sql, |_| {})
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// All rows, cells joined by a tab.
pub fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    let mut rows = vec![];
    let row = |cells: &Cells<'_>| {
        let cells: Vec<_> = (0..)
            .map_while(|place| cells.get(place))
            .map(String::from_utf8_lossy)
            .collect();
        rows.push(cells.join("\t"));
    };
    client
        .query(sql, row)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows
}

/// A server, which ends when this value is dropped.
pub struct Database {
    dir: TempDir,
    /// Program and arguments up to the options.
    command: Vec<String>,
    child: Option<Child>,
}

impl Database {
    /// MySQL, with an empty data directory; `root` has no password.
    pub fn mysql() -> Self {
        let server = Self::new(mysql_program(&variable("LOADPRINT_TEST_ROOT")));
        let mut command = server.mysqld();
        let initialised = command.arg("--initialize-insecure").status().unwrap();
        assert!(initialised.success(), "{}", server.log());
        server
    }

    /// MariaDB, with an empty data directory; `root` has no password.
    pub fn mariadb() -> Self {
        let program = "/usr/sbin/mariadbd";
        assert!(
            Path::new(program).exists(),
            "{program} is missing: ./setup --with-test-tools installs it"
        );
        let options = "--no-defaults --user=root --skip-log-bin --innodb-buffer-pool-size=32M";
        let words = [program].into_iter().chain(options.split(' '));
        let server = Self::new(words.map(str::to_owned).collect());
        fs::create_dir(server.path("data")).unwrap();
        // What mariadb-install-db does, without the client tools that it needs.
        let mut tables = "CREATE DATABASE mysql;\nUSE mysql;\n".to_owned();
        for name in [
            "mysql_system_tables",
            "mysql_performance_tables",
            "mysql_system_tables_data",
        ] {
            tables += &fs::read_to_string(format!("/usr/share/mysql/{name}.sql")).unwrap();
        }
        let mut command = server.mysqld();
        command
            .args(["--bootstrap", "--max-allowed-packet=8M"])
            .stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(tables.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{}", server.log());
        server
    }

    fn new(command: Vec<String>) -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            command,
            child: None,
        }
    }

    fn mysqld(&self) -> Command {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .unwrap();
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .arg(format!("--datadir={}", self.path("data").display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    /// Starts the server on its existing data, and waits until it accepts connections.
    pub fn start(&mut self, options: &[&str]) {
        let mut command = self.mysqld();
        command.arg(format!("--socket={}", self.socket().display()));
        command.arg(format!("--pid-file={}", self.path("pid").display()));
        self.child = Some(command.arg("--skip-networking").args(options).spawn().unwrap());
        let account = account(&self.socket(), "root", "");
        wait_for("the server", || {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the server ended: {}", self.log());
            Client::connect(&account).is_ok()
        });
    }

    /// Sends a signal to it.
    pub fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().unwrap().id().cast_signed();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Kills the server and waits for its exit.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Its unix socket.
    pub fn socket(&self) -> PathBuf {
        self.path("sock")
    }

    /// A client with all privileges.
    pub fn root(&self) -> Client {
        client(&self.socket(), "root", "")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.kill();
    }
}
