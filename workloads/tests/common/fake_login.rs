//! A server that only wants the password: it speaks the handshake of MySQL, requests an
//! authentication plugin, offers its own RSA key and records what a client sends.

use std::fs;
use std::io;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use tempfile::TempDir;

use crate::packets::SCRAMBLE;
use crate::packets::framed;
use crate::packets::greeting;
use crate::packets::receive;

/// A file that only root can read, which the server requests in [`Trap::LocalFile`].
const WANTED: &[u8] = b"/etc/shadow";

/// How the server goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// Requests full authentication by caching_sha2_password.
    CachingSha2,
    /// Switches to sha256_password, with which the client library always requests the key.
    Sha256,
    /// Switches to mysql_clear_password.
    Clear,
    /// Has TLS with a certificate that it signed itself, and then does as `CachingSha2`.
    Tls,
    /// Accepts any login, and answers the first statement with a request for a local file.
    LocalFile,
}

/// The server; its threads end with their connections.
pub struct FakeLogin {
    dir: TempDir,
    port: u16,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl FakeLogin {
    /// Listens at a free port of this address, in the network namespace of the calling thread.
    pub fn start(address: &str, trap: Trap) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (private, public) = (dir.path().join("private.pem"), dir.path().join("public.pem"));
        openssl(&["genrsa", "-out", private.to_str().unwrap(), "2048"], b"");
        let key = ["rsa", "-pubout", "-in", private.to_str().unwrap(), "-out"];
        openssl(&[&key[..], &[public.to_str().unwrap()]].concat(), b"");
        let listener = TcpListener::bind((address, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (received, of_server) = (Arc::new(Mutex::new(Vec::new())), dir.path().to_owned());
        let all = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (all, dir) = (Arc::clone(&all), of_server.clone());
                // An error means that the client has ended.
                thread::spawn(move || serve(stream, trap, &dir, &all).ok());
            }
        });
        Self { dir, port, received }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's own public key, PEM.
    pub fn public_key(&self) -> PathBuf {
        self.dir.path().join("public.pem")
    }

    /// What clients have sent after the first packet of a login, decrypted where the server can.
    pub fn received(&self) -> Vec<String> {
        let private = self.dir.path().join("private.pem");
        let packets = self.received.lock().unwrap().clone();
        let text = |packet: Vec<u8>| {
            let plain = match packet.len() {
                256 => decrypted(&private, &packet).unwrap_or(packet),
                _ => packet,
            };
            String::from_utf8_lossy(&plain).trim_end_matches('\0').to_owned()
        };
        packets.into_iter().map(text).collect()
    }
}

/// The password under the server's key; `None` for bytes under another key.
fn decrypted(private: &Path, packet: &[u8]) -> Option<Vec<u8>> {
    let private = private.to_str()?;
    let oaep = ["-pkeyopt", "rsa_padding_mode:oaep"];
    let bytes = openssl(
        &[&["pkeyutl", "-decrypt", "-inkey", private], &oaep[..]].concat(),
        packet,
    )?;
    let scramble = SCRAMBLE.iter().cycle();
    let mut plain: Vec<u8> = bytes
        .iter()
        .zip(scramble)
        .map(|(byte, mask)| byte ^ mask)
        .collect();
    // The zero at the end is not scrambled.
    plain.pop();
    Some(plain)
}

/// The output; `None` if it fails.
fn openssl(arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new("openssl");
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    output.status.success().then_some(output.stdout)
}

/// A connection after its upgrade to TLS, by `openssl s_server`, which serves one client.
struct Encrypted(Child);

impl Encrypted {
    /// Encrypts what follows on `stream` with a certificate in `dir` for the key there.
    fn new(stream: &TcpStream, dir: &Path) -> io::Result<Self> {
        let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
        let (key, certificate) = (path("private.pem"), path("certificate.pem"));
        let words = [
            "req",
            "-x509",
            "-subj",
            "/CN=db",
            "-key",
            &key,
            "-out",
            &certificate,
        ];
        openssl(&words, b"").unwrap();
        let end = tempfile::tempdir()?;
        let socket = end.path().join("socket");
        let mut server = Command::new("openssl");
        server
            .args([
                "s_server",
                "-quiet",
                "-naccept",
                "1",
                "-key",
                &key,
                "-cert",
                &certificate,
                "-unix",
            ])
            .arg(&socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let server = server.spawn()?;
        let deadline = Instant::now() + Duration::from_secs(60);
        let connected = loop {
            match UnixStream::connect(&socket) {
                Err(_) if Instant::now() < deadline => thread::yield_now(),
                connected => break connected?,
            }
        };
        let (mut from_client, mut to_server) = (stream.try_clone()?, connected.try_clone()?);
        let (mut from_server, mut to_client) = (connected, stream.try_clone()?);
        thread::spawn(move || io::copy(&mut from_client, &mut to_server));
        thread::spawn(move || io::copy(&mut from_server, &mut to_client));
        Ok(Self(server))
    }
}

impl Read for Encrypted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.stdout.as_mut().unwrap().read(buffer)
    }
}

impl Write for Encrypted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.stdin.as_mut().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn serve(mut stream: TcpStream, trap: Trap, dir: &Path, received: &Mutex<Vec<Vec<u8>>>) -> io::Result<()> {
    stream.write_all(&greeting(trap == Trap::Tls))?;
    // A request for TLS is the first part of a login, without the user.
    let (_, first) = receive(&mut stream)?;
    if trap == Trap::Tls && first.len() == 32 {
        let mut encrypted = Encrypted::new(&stream, dir)?;
        receive(&mut encrypted)?;
        return ask(&mut encrypted, 3, trap, dir, received);
    }
    ask(&mut stream, 2, trap, dir, received)
}

/// Requests the password, and records all packets.
fn ask(
    stream: &mut (impl Read + Write),
    sequence: u8,
    trap: Trap,
    dir: &Path,
    received: &Mutex<Vec<Vec<u8>>>,
) -> io::Result<()> {
    let switch = |name: &[u8]| [b"\xfe", name, b"\0", &SCRAMBLE[..], b"\0"].concat();
    match trap {
        Trap::CachingSha2 | Trap::Tls => stream.write_all(&framed(sequence, b"\x01\x04"))?,
        Trap::Sha256 => stream.write_all(&framed(sequence, &switch(b"sha256_password")))?,
        Trap::Clear => stream.write_all(&framed(sequence, &switch(b"mysql_clear_password")))?,
        Trap::LocalFile => stream.write_all(&framed(sequence, b"\0\0\0\x02\0\0\0"))?,
    }
    loop {
        let (sequence, packet) = receive(stream)?;
        received.lock().unwrap().push(packet.clone());
        let answer = match (trap, packet.as_slice()) {
            (Trap::CachingSha2, b"\x02") | (Trap::Sha256, b"\x01") => {
                [&b"\x01"[..], &fs::read(dir.join("public.pem"))?].concat()
            }
            (Trap::LocalFile, _) if sequence == 0 => [b"\xfb", WANTED].concat(),
            _ => b"\xff\x15\x04#28000that is all".to_vec(),
        };
        stream.write_all(&framed(sequence.wrapping_add(1), &answer))?;
    }
}

/// Runs `test` on a thread whose network namespace has this address, which is not one of loopback.
pub fn away_from_loopback(test: impl FnOnce(&str) + Send) {
    const ADDRESS: &str = "198.51.100.1";
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: no memory is involved; the namespace is that of this thread and its children.
            let status = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            assert_eq!(status, 0, "a network namespace needs root");
            let address = format!("address add {ADDRESS} dev lo");
            for words in [address.as_str(), "link set lo up"] {
                let status = Command::new("ip").args(words.split(' ')).status();
                assert!(status.unwrap().success(), "{words}");
            }
            test(ADDRESS);
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}
