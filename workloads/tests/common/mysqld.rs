//! A server of the test's own, with TCP and certificates, that may be killed and started again.

use std::fs;
use std::io::Read;
use std::net::Ipv4Addr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use tempfile::TempDir;

use super::sql::Sql;
use super::variable;

/// The account of the server, which every test server of this repository runs as.
const UID: u32 = 64033;

/// The server; it ends with this value, and with the test's process.
pub struct Mysqld {
    dir: TempDir,
    port: u16,
    root: String,
}

impl Mysqld {
    /// Initialises a data directory, which takes some seconds, and starts on a free port of the loopback interface.
    /// The account `tester` has no password and may come from anywhere.
    pub fn start() -> Self {
        let port = free_port();
        let server = Self {
            dir: TempDir::new().unwrap(),
            port,
            root: variable("LOADPRINT_TEST_ROOT"),
        };
        let own = std::process::id().to_string();
        server.supervise("start", &["--lease", "24h", "--controller-pid", &own]);
        let home = server.path("home");
        fs::create_dir(&home).unwrap();
        chown(&home, Some(UID), Some(UID)).unwrap();
        // Others pass through to the home; nothing secret is here.
        open_directory(server.dir.path());
        let sql = "CREATE USER tester; GRANT ALL ON *.* TO tester; CREATE DATABASE sbtest;\n";
        fs::write(home.join("init.sql"), sql).unwrap();
        let root = server.root.clone();
        server.supervise("mount", &["--proc", &format!("{root}/proc")]);
        server.supervise("mount", &["--dev", &format!("{root}/dev")]);
        let media = format!("{root}/media");
        server.supervise("mount", &["--bind", &home.display().to_string(), &media]);
        server.mysqld("initialise", &["--initialize-insecure"]);
        server.supervise("wait", &["initialise", "--for", "600s"]);
        server.mysqld("server", &["--init-file=/media/init.sql"]);
        server.await_answer();
        server
    }

    /// SIGKILL; the server is gone when this returns.
    pub fn kill(&self) {
        let pid = fs::read_to_string(self.path("home/mysqld.pid")).unwrap();
        let killed = Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
        assert!(killed.success());
        self.supervise_any("wait", &["server", "--for", "600s"]);
    }

    /// Starts it on the data that the last one left.
    pub fn start_again(&self) {
        self.mysqld("server", &[]);
        self.await_answer();
    }

    /// Where it is and as whom, over TCP, as arguments of the generator.
    pub fn connection(&self) -> [String; 3] {
        [
            format!("--mysql-host={}", address()),
            format!("--mysql-port={}", self.port),
            "--mysql-user=tester".to_owned(),
        ]
    }

    /// A connection of the test's own, by the unix socket.
    pub fn sql(&self) -> Sql {
        let socket = self.path("home/mysql.sock");
        Sql::connect(socket.to_str().unwrap(), Some("tester"), None, Some("sbtest"))
    }

    /// The certificate of the authority that the server made for itself.
    pub fn authority(&self) -> PathBuf {
        self.path("home/data/ca.pem")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn mysqld(&self, name: &str, further: &[&str]) {
        let port = format!("--port={}", self.port);
        let address = format!("--bind-address={}", address());
        let fixed = [
            "--chroot",
            &self.root,
            "--user",
            &format!("{UID}:{UID}"),
            name,
            "--",
            "/usr/sbin/mysqld",
            "--no-defaults",
            "--datadir=/media/data",
            "--socket=/media/mysql.sock",
            "--pid-file=/media/mysqld.pid",
            &address,
            "--mysqlx=OFF",
            "--secure-file-priv=NULL",
            "--skip-log-bin",
            &port,
        ];
        self.supervise("run", &[&fixed, further].concat());
    }

    fn supervise(&self, verb: &str, arguments: &[&str]) {
        assert!(self.supervise_any(verb, arguments), "{verb} {arguments:?}");
    }

    fn supervise_any(&self, verb: &str, arguments: &[&str]) -> bool {
        let beside = Path::new(env!("CARGO_BIN_EXE_loadprint-load")).with_file_name("loadprint-supervise");
        let mut command = Command::new(beside);
        command.arg(verb).arg("--state").arg(self.path("state"));
        let output = command.args(arguments).output().unwrap();
        output.status.success()
    }

    fn await_answer(&self) {
        // Its port is open before it serves anybody: it speaks first, once it does.
        let greets = || {
            let stream = TcpStream::connect((address(), self.port));
            stream.is_ok_and(|mut stream| {
                // One that never greets must not keep the deadline from being looked at.
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                stream.read(&mut [0]).is_ok_and(|length| length == 1)
            })
        };
        let deadline = Instant::now() + Duration::from_secs(600);
        while !greets() {
            let log = || fs::read_to_string(self.path("state/server.stderr")).unwrap_or_default();
            assert!(Instant::now() < deadline, "the server does not answer: {}", log());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Mysqld {
    fn drop(&mut self) {
        self.supervise_any("end", &[]);
    }
}

/// An address of the loopback interface for this process alone: a port that is free on it stays free until the server has it.
fn address() -> Ipv4Addr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // Process numbers have 22 bits.
    Ipv4Addr::new(127, 64 + high, middle, low)
}

/// A free port, none of those that the kernel gives to whoever connects (ip_local_port_range of ip(7), 32768 and up), as one of
/// those may be gone by the time the server is initialised, or between its death and its next start.
fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind((address(), *port)).is_ok();
    (20_000..30_000).find(is_free).unwrap()
}

fn open_directory(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
