//! A server of the test's own, with TCP and certificates, that may be killed and started again.

use std::fs;
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
        Self::start_with(&[])
    }

    /// As [`Mysqld::start`], with further options of the first server.
    pub fn start_with(options: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
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
        server.supervise("wait", &["initialise", "--for", "120s"]);
        server.mysqld("server", &[&["--init-file=/media/init.sql"], options].concat());
        server.await_answer();
        server
    }

    /// SIGKILL; the server is gone when this returns.
    pub fn kill(&self) {
        let pid = fs::read_to_string(self.path("home/mysqld.pid")).unwrap();
        let killed = Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
        assert!(killed.success());
        self.supervise_any("wait", &["server", "--for", "60s"]);
    }

    /// Starts it on the data that the last one left.
    pub fn start_again(&self) {
        self.mysqld("server", &[]);
        self.await_answer();
    }

    /// Where it is and as whom, over TCP, as arguments of the generator.
    pub fn connection(&self) -> [String; 3] {
        [
            "--mysql-host=127.0.0.1".to_owned(),
            format!("--mysql-port={}", self.port),
            "--mysql-user=tester".to_owned(),
        ]
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
            "--bind-address=127.0.0.1",
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
        let deadline = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
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

fn open_directory(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
