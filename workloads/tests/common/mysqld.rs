//! A separate server of one test, with TCP and certificates, that the test may kill and start
//! again.

use std::fs;
use std::io::Read;
use std::net::Ipv4Addr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::assert_succeeded;
use super::generator;
use super::sql::Sql;
use super::variable;
use super::wait_until;

/// The account of the server, which every test server of this repository runs as.
const UID: u32 = 64033;

/// The server; it ends when this value is dropped or the test's process ends.
pub struct Mysqld {
    dir: TempDir,
    port: u16,
    root: String,
}

impl Mysqld {
    /// Starts on a new data directory and a free port of the loopback interface.
    /// The account `tester` has no password and may log in from any host.
    pub fn start() -> Self {
        let port = free_port();
        let server = Self {
            dir: TempDir::new().unwrap(),
            port,
            root: variable("LOADPRINT_TEST_ROOT"),
        };
        let id = std::process::id().to_string();
        server.supervise("start", &["--lease", "24h", "--controller-pid", &id]);
        let home = server.path("home");
        fs::create_dir(&home).unwrap();
        chown(&home, Some(UID), Some(UID)).unwrap();
        // The server's account must reach its home; nothing here is secret.
        open_directory(server.dir.path());
        let sql = "CREATE USER tester; GRANT ALL ON *.* TO tester; CREATE DATABASE sbtest;\n";
        fs::write(home.join("init.sql"), sql).unwrap();
        let root = server.root.clone();
        server.supervise("mount", &["--proc", &format!("{root}/proc")]);
        server.supervise("mount", &["--dev", &format!("{root}/dev")]);
        let media = format!("{root}/media");
        server.supervise("mount", &["--bind", &home.display().to_string(), &media]);
        server.initialise();
        server.mysqld("server", &["--init-file=/media/init.sql"]);
        server.wait_for_greeting();
        server
    }

    /// Copies the data directory that an earlier test initialised with this program, or initialises
    /// one, which takes seconds.
    fn initialise(&self) {
        let program = fs::metadata(format!("{}/usr/sbin/mysqld", self.root)).unwrap();
        let template =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mysqld-data-{}", program.mtime()));
        let data = self.path("home/data");
        if template.exists() {
            copy(&template, &data);
            return;
        }
        self.mysqld("initialise", &["--initialize-insecure"]);
        self.supervise("wait", &["initialise", "--for", "600s"]);
        let unfinished = template.with_extension(std::process::id().to_string());
        copy(&data, &unfinished);
        // Another process may have been first; its copy is as good.
        if fs::rename(&unfinished, &template).is_err() {
            fs::remove_dir_all(&unfinished).unwrap();
        }
    }

    /// Sends SIGKILL and waits for the end of the server.
    pub fn kill(&self) {
        let pid = fs::read_to_string(self.path("home/mysqld.pid")).unwrap();
        let killed = Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
        assert!(killed.success());
        self.supervise_any("wait", &["server", "--for", "600s"]);
    }

    /// Starts it again on its data.
    pub fn start_again(&self) {
        self.mysqld("server", &[]);
        self.wait_for_greeting();
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
        let socket = self.path("home/mysql.sock");
        Sql::connect(socket.to_str().unwrap(), "tester", None, Some("sbtest"))
    }

    /// The certificate of the authority that the server generated.
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
        let generator = Path::new(env!("CARGO_BIN_EXE_loadprint-load"));
        let mut command = Command::new(generator.with_file_name("loadprint-supervise"));
        command.arg(verb).arg("--state").arg(self.path("state"));
        let output = command.args(arguments).output().unwrap();
        output.status.success()
    }

    fn wait_for_greeting(&self) {
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
}

impl Drop for Mysqld {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = fs::read_to_string(self.path("state/server.stderr"));
            eprintln!("the server's log: {}", log.unwrap_or_default());
        }
        self.supervise_any("end", &[]);
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

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

fn open_directory(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
