//! Tests the MySQL client with an endless response: it reads up to a limit and closes the
//! connection.
#![cfg(feature = "mysql")]
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

use std::io;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::thread;

use loadprint_probes::mysql::account::Account;
use loadprint_probes::mysql::client::Client;

/// The size of the response, four times the limit: a client without a limit would read all of it.
const ENDLESS_BYTES: usize = 256 << 20;

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

fn receive(stream: &mut TcpStream) -> io::Result<()> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    stream.read_exact(&mut vec![0; length])
}

/// Accepts any login and answers the first statement with rows until the connection is closed.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    // Handshake version 10: long passwords, protocol 4.1, transactions, plugins; no capability that
    // changes the format of rows.
    let mut greeting = b"\x0a9.0.0\0\x01\0\0\0abcdefgh\0\x01\xa2\xff\x02\0\x08\0\x15".to_vec();
    greeting.extend_from_slice(&[0; 10]);
    greeting.extend_from_slice(b"ijklmnopqrst\0caching_sha2_password\0");
    stream.write_all(&packet(0, &greeting))?;
    receive(&mut stream)?;
    stream.write_all(&packet(2, &[0, 0, 0, 2, 0, 0, 0]))?;
    receive(&mut stream)?;
    stream.write_all(&packet(1, &[1]))?;
    let column = b"\x03def\0\0\0\x01c\0\x0c\xff\0\xff\xff\0\0\xfd\0\0\0\0\0";
    stream.write_all(&packet(2, column))?;
    stream.write_all(&packet(3, b"\xfe\0\0\x02\0"))?;
    let row = [&[0xfc, 0xff, 0xff][..], &[b'x'; 0xffff]].concat();
    let round: Vec<u8> = (0..=255_u8)
        .flat_map(|step| packet(step.wrapping_add(4), &row))
        .collect();
    for _ in 0..ENDLESS_BYTES / round.len() {
        stream.write_all(&round)?;
    }
    // The client closes the connection.
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

#[test]
fn endless_response_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The server gets an error when the client closes the connection.
    let server = thread::spawn(move || serve(listener.accept().unwrap().0).ok());
    let mut client = Client::connect(&Account {
        host: Some("127.0.0.1".to_owned()),
        port: Some(port),
        user: Some("nobody".to_owned()),
        ..Account::default()
    })
    .unwrap();
    let mut bytes = 0;
    let failure = client
        .query("SHOW GLOBAL STATUS", |cells| bytes += cells.get(0).unwrap().len())
        .unwrap_err();
    assert!(
        failure.message.contains("more than 64 MiB") && bytes <= 64 << 20,
        "{failure}, {bytes} bytes"
    );
    assert!(client.is_lost());
    drop(client);
    server.join().unwrap();
}
