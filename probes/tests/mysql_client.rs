//! A server whose answer does not end: the MySQL client reads a bounded part of it and closes the connection.
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

/// A client without a limit reads all of it: four times the limit.
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

/// Logs anybody in and answers the first question with rows until the connection is closed.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    // Handshake version 10: long passwords, protocol 4.1, transactions, plugins; nothing that changes the form of rows.
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
    // The client decides when this ends.
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

#[test]
fn an_answer_without_an_end_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It ends with an error when the client closes the connection.
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
