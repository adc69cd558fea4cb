//! A server that misbehaves at a chosen moment: a proxy on TCP in front of the real server that
//! parses packets.

use std::io;
use std::io::Read;
use std::io::Write;
use std::net::Shutdown;
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use crate::packets::framed;
use crate::packets::receive;

/// COM_STMT_PREPARE and COM_STMT_EXECUTE.
pub const PREPARE: u8 = 0x16;
pub const EXECUTE: u8 = 0x17;
const COM_QUERY: u8 = 0x03;
/// Bytes of an endless reply: several times the client's memory limit, so that a client with a
/// limit never reads all of them.
const ENDLESS_BYTES: usize = 6 << 30;
/// Mebibytes of an endless reply that are sent per second. The client checks its memory four times
/// a second.
const ENDLESS_RATE: usize = 512;

/// When the server misbehaves.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// A client has connected.
    Connected,
    /// The server's greeting has been forwarded.
    Greeted,
    /// A command of this number (any for None) that contains this text.
    Command(Option<u8>, &'static str),
    /// When the act itself says so.
    Later,
}

/// A text command.
pub fn query(text: &'static str) -> Moment {
    Moment::Command(Some(COM_QUERY), text)
}

/// What the server does then.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Sends nothing more and keeps the connection open.
    Silence,
    /// Forwards this number of bytes of the server's reply, then nothing.
    Cut(usize),
    /// Sends one column and rows without end.
    Rows,
    /// Announces a packet of 16 MB and sends ten bytes per second of it.
    Drip,
    /// Announces 65,535 columns with descriptions of 64 KiB each.
    Columns,
    /// Announces this number of columns.
    ManyColumns(u64),
    /// Sends a packet of this content.
    Packet(&'static [u8]),
    /// Closes the first connection with more than this number of bytes of replies, in the middle of one. The same
    /// amount of work leads to it on every machine, unlike a time.
    CloseAfter(usize),
}

impl Act {
    fn bytes_of_replies(self) -> usize {
        match self {
            Self::CloseAfter(bytes) => bytes,
            _ => usize::MAX,
        }
    }
}

/// The proxy; its threads end with their connections.
pub struct Hostile {
    port: u16,
    acted: Arc<AtomicBool>,
    accepted: Arc<AtomicUsize>,
}

impl Hostile {
    /// Starts in front of the server at a unix socket. Connections before number `first` (from 0)
    /// work normally.
    pub fn start(back: &str, first: usize, moment: Moment, act: Act) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (back, acted) = (back.to_owned(), Arc::new(AtomicBool::new(false)));
        let (flag, accepted) = (Arc::clone(&acted), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&accepted);
        thread::spawn(move || {
            for (number, client) in listener.incoming().map_while(Result::ok).enumerate() {
                let server = UnixStream::connect(&back).unwrap();
                let moment = (number >= first).then_some(moment);
                let flag = Arc::clone(&flag);
                // Before the first byte is forwarded: a client that has a reply is counted.
                count.fetch_add(1, SeqCst);
                // An error means that the client or the server has ended.
                thread::spawn(move || serve(client, server, moment, act, &flag).ok());
            }
        });
        Self {
            port,
            acted,
            accepted,
        }
    }

    /// The address as arguments of the generator; they override earlier ones.
    pub fn address(&self) -> [String; 3] {
        [
            "--mysql-host=127.0.0.1".to_owned(),
            format!("--mysql-port={}", self.port),
            // The test server's account is valid on the unix socket only, which the proxy uses.
            "--mysql-ssl=disabled".to_owned(),
        ]
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connections so far, including closed ones.
    pub fn accepted(&self) -> usize {
        self.accepted.load(SeqCst)
    }

    /// True once the server has misbehaved.
    pub fn has_acted(&self) -> bool {
        self.acted.load(SeqCst)
    }
}

fn is(sequence: u8, payload: &[u8], moment: Moment) -> bool {
    let Moment::Command(number, text) = moment else {
        return false;
    };
    // A command starts a sequence; packets of the login do not.
    sequence == 0
        && number.is_none_or(|number| payload.first() == Some(&number))
        && (text.is_empty() || payload.windows(text.len()).any(|part| part == text.as_bytes()))
}

fn serve(
    mut client: TcpStream,
    mut server: UnixStream,
    moment: Option<Moment>,
    act: Act,
    acted: &Arc<AtomicBool>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    if matches!(moment, Some(Moment::Connected)) {
        acted.store(true, SeqCst);
        return misbehave(&mut client, act, 0);
    }
    let (sequence, greeting) = receive(&mut server)?;
    client.write_all(&framed(sequence, &greeting))?;
    if matches!(moment, Some(Moment::Greeted)) {
        acted.store(true, SeqCst);
        // The client's answer to the greeting has number 1.
        return misbehave(&mut client, act, 2);
    }
    let allowed = Arc::new(AtomicUsize::new(usize::MAX));
    let (mut answers, mut to, passed) = (server.try_clone()?, client.try_clone()?, Arc::clone(&allowed));
    let (limit, closed) = (act.bytes_of_replies(), Arc::clone(acted));
    thread::spawn(move || pass(&mut answers, &mut to, &passed, limit, &closed).ok());
    loop {
        let Ok((sequence, payload)) = receive(&mut client) else {
            return server.shutdown(Shutdown::Both);
        };
        let command = framed(sequence, &payload);
        if moment.is_some_and(|moment| is(sequence, &payload, moment)) {
            if let Act::Cut(bytes) = act {
                allowed.store(bytes, SeqCst);
                server.write_all(&command)?;
            }
            acted.store(true, SeqCst);
            let ended = misbehave(&mut client, act, 1);
            server.shutdown(Shutdown::Both)?;
            return ended;
        }
        server.write_all(&command)?;
    }
}

/// Forwards the allowed number of bytes of the server's replies; reads the others too, so that the
/// server does not block.
fn pass(
    from: &mut UnixStream,
    to: &mut TcpStream,
    allowed: &AtomicUsize,
    limit: usize,
    closed: &AtomicBool,
) -> io::Result<()> {
    let (mut buffer, mut all) = ([0; 8192], 0);
    loop {
        let length = from.read(&mut buffer)?;
        all += length;
        if all > limit && !closed.swap(true, SeqCst) {
            // These bytes are not forwarded: the client waits for them.
            to.shutdown(Shutdown::Both)?;
            return from.shutdown(Shutdown::Both);
        }
        let left = allowed.load(SeqCst);
        if length == 0 {
            // After Act::Cut the client must see silence, not the end of the connection.
            return if left == usize::MAX {
                to.shutdown(Shutdown::Write)
            } else {
                Ok(())
            };
        }
        let passed = length.min(left);
        if left != usize::MAX {
            allowed.store(left - passed, SeqCst);
        }
        to.write_all(&buffer[..passed])?;
    }
}

/// A column of text called c.
fn column(sequence: u8, name: &[u8]) -> Vec<u8> {
    let mut payload = b"\x03def\x00\x00\x00".to_vec();
    payload.push(0xfc);
    payload.extend_from_slice(&(name.len() as u16).to_le_bytes());
    payload.extend_from_slice(name);
    payload.extend_from_slice(b"\x00\x0c\xff\x00\xff\xff\x00\x00\xfd\x00\x00\x00\x00\x00");
    framed(sequence, &payload)
}

/// `sequence` is the number of the packet that the client expects.
fn misbehave(client: &mut TcpStream, act: Act, sequence: u8) -> io::Result<()> {
    match act {
        Act::Silence | Act::Cut(_) | Act::CloseAfter(_) => {}
        Act::Rows => {
            client.write_all(&framed(sequence, &[1]))?;
            client.write_all(&column(2, b"c"))?;
            let row = [&[0xfc, 0xff, 0xff][..], &[b'x'; 0xffff]].concat();
            endless(client, |sequence| framed(sequence, &row), 3)?;
        }
        Act::Drip => {
            client.write_all(&[0xff, 0xff, 0xff, sequence])?;
            loop {
                client.write_all(&[1])?;
                thread::sleep(Duration::from_millis(100));
            }
        }
        Act::Columns => {
            client.write_all(&framed(sequence, &[0xfc, 0xff, 0xff]))?;
            let name = vec![b'x'; 0xffff];
            endless(client, |sequence| column(sequence, &name), 2)?;
        }
        Act::ManyColumns(count) => {
            let announced = [&[0xfe][..], &count.to_le_bytes()].concat();
            client.write_all(&framed(sequence, &announced))?;
        }
        Act::Packet(payload) => client.write_all(&framed(sequence, payload))?,
    }
    // The connection stays open until the client closes it.
    io::copy(client, &mut io::sink()).map(drop)
}

/// Sends packets from this sequence number on.
fn endless(client: &mut TcpStream, packet: impl Fn(u8) -> Vec<u8>, first: u8) -> io::Result<()> {
    // All 256 numbers in one buffer, which is sent again and again.
    let mut round = Vec::new();
    (0..=255_u8).for_each(|step| round.extend(packet(first.wrapping_add(step))));
    for _ in 0..ENDLESS_BYTES / round.len() {
        client.write_all(&round)?;
        thread::sleep(Duration::from_micros(
            (round.len() as u64).saturating_mul(1_000_000) / ((ENDLESS_RATE as u64) << 20),
        ));
    }
    Ok(())
}
