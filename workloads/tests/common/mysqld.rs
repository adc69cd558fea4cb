//! A separate server of one test, with TCP and certificates, that the test may kill and start
//! again.

use std::cell::RefCell;
use std::fs;
use std::fs::File;
use std::io::Read;
use std::net::Ipv4Addr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::assert_succeeded;
use super::generator;
use super::mysql_program::mysql_program;
use super::sql::Sql;
use super::variable;
use super::wait_until;

/// The server; it ends when this value is dropped or the test's thread ends.
pub struct Mysqld {
    dir: TempDir,
    port: u16,
    child: RefCell<Option<Child>>,
}

impl Mysqld {
    /// Starts on a new data directory and a free port of the loopback interface.
    /// The account `tester` has no password and may log in from any host.
    pub fn start() -> Self {
        let server = Self {
            dir: TempDir::new().unwrap(),
            port: free_port(),
            child: RefCell::default(),
        };
        let initialised = server.mysqld(&["--initialize-insecure"]).status().unwrap();
        assert!(initialised.success(), "{}", server.log());
        let sql = "CREATE USER IF NOT EXISTS tester; GRANT ALL ON *.* TO tester; CREATE DATABASE IF NOT EXISTS sbtest;\n";
        fs::write(server.path("init.sql"), sql).unwrap();
        server.start_again();
        server
    }

    /// Sends SIGKILL and waits for the end of the server.
    pub fn kill(&self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends SIGTERM and waits for the end of the server.
    pub fn shut_down(&self) {
        if let Some(mut child) = self.child.take() {
            // SAFETY: the process is a child that was not waited for.
            unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
            child.wait().unwrap();
        }
    }

    /// Starts it again on its data.
    pub fn start_again(&self) {
        let init = format!("--init-file={}", self.path("init.sql").display());
        let child = self.mysqld(&[&init]).spawn().unwrap();
        self.child.replace(Some(child));
        // Its port is open before it serves clients; then it sends a greeting.
        wait_until("the server's greeting", || {
            let stream = TcpStream::connect((address(), self.port));
            stream.is_ok_and(|mut stream| {
                // Without a greeting, the wait must still reach its deadline.
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                stream.read(&mut [0]).is_ok_and(|length| length == 1)
            })
        });
    }

    fn mysqld(&self, further: &[&str]) -> Command {
        let words = mysql_program(&variable("LOADPRINT_TEST_ROOT"));
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .unwrap();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(further);
        let file = |option: &str, name: &str| format!("--{option}={}", self.path(name).display());
        command
            .arg(file("datadir", "data"))
            .arg(file("socket", "mysql.sock"))
            .arg(file("pid-file", "mysqld.pid"))
            .arg(format!("--port={}", self.port))
            .arg(format!("--bind-address={}", address()))
            .stderr(log);
        command
    }

    /// The generator with these arguments on this server, over TCP.
    pub fn command(&self, words: &str) -> Command {
        let mut command = generator(words);
        command.args([
            format!("--mysql-host={}", address()),
            format!("--mysql-port={}", self.port),
            "--mysql-user=tester".to_owned(),
        ]);
        command
    }

    /// Runs the generator and expects success.
    pub fn succeed(&self, words: &str) {
        assert_succeeded(&self.command(words).output().unwrap(), words);
    }

    /// A connection of the test by the unix socket.
    pub fn sql(&self) -> Sql {
        let socket = self.path("mysql.sock");
        Sql::connect(socket.to_str().unwrap(), "tester", None, Some("sbtest"))
    }

    /// The certificate of the authority that the server generated.
    pub fn authority(&self) -> PathBuf {
        self.path("data/ca.pem")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Mysqld {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the server's log: {}", self.log());
        }
        self.kill();
    }
}

/// A loopback address that only this process uses: a port that is free on it stays free until the
/// server binds it.
fn address() -> Ipv4Addr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // Process numbers have 22 bits.
    Ipv4Addr::new(127, 64 + high, middle, low)
}

/// A free port below those that the kernel gives to clients (ip_local_port_range of ip(7), 32768
/// and up): a client could take one of those before the server is initialised, or between its death
/// and its next start.
fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind((address(), *port)).is_ok();
    (20_000..30_000).find(is_free).unwrap()
}
