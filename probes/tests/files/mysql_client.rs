//! Tests the MySQL client with an endless response, of which it reads up to a limit, and with damaged
//! ones.
#![cfg(feature = "mysql")]

use std::cell::Cell;
use std::io;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::fuzz::apply;
use crate::fuzz::mutation;
use crate::packets::framed;
use crate::packets::greeting;
use crate::packets::receive;
use loadprint_probes::mysql::account::Account;
use loadprint_probes::mysql::client::Client;
use proptest::collection::vec;
use proptest::test_runner::Config;
use proptest::test_runner::TestRunner;

/// The size of the response, four times the limit: a client without a limit would read all of it.
const ENDLESS_BYTES: usize = 256 << 20;

fn accepted() -> Vec<u8> {
    framed(2, &[0, 0, 0, 2, 0, 0, 0])
}

/// The description of a result with one column.
fn columns() -> Vec<u8> {
    let column = b"\x03def\0\0\0\x01c\0\x0c\xff\0\xff\xff\0\0\xfd\0\0\0\0\0";
    [framed(1, &[1]), framed(2, column), framed(3, b"\xfe\0\0\x02\0")].concat()
}

/// Accepts any login and answers the first statement with rows until the connection is closed.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(&greeting(false))?;
    receive(&mut stream)?;
    stream.write_all(&accepted())?;
    receive(&mut stream)?;
    stream.write_all(&columns())?;
    let row = [&[0xfc, 0xff, 0xff][..], &[b'x'; 0xffff]].concat();
    let round: Vec<u8> = (0..=255_u8)
        .flat_map(|step| framed(step.wrapping_add(4), &row))
        .collect();
    for _ in 0..ENDLESS_BYTES / round.len() {
        stream.write_all(&round)?;
    }
    // The client closes the connection.
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

fn account(port: u16) -> Account {
    Account {
        host: Some("127.0.0.1".to_owned()),
        port: Some(port),
        user: Some("nobody".to_owned()),
        ..Account::default()
    }
}

/// Sends three answers and closes the connection. A client that waits for the rest of a damaged packet
/// sends nothing: it gets the next answer after some milliseconds.
fn serve_damaged(mut stream: TcpStream, answers: &[Vec<u8>; 3]) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(5)))?;
    for answer in answers {
        stream.write_all(answer)?;
        receive(&mut stream).ok();
    }
    Ok(())
}

/// A login and a statement end, with rows or an error, with any bytes that a server sends.
#[test]
fn damaged_answers_are_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let rows: Vec<u8> = (4..10).flat_map(|step| framed(step, b"\x03abc")).collect();
    let whole = [columns(), rows, framed(10, b"\xfe\0\0\x02\0")].concat();
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let with_rows = Cell::new(0);
    let mut runner = TestRunner::new(config);
    let result = runner.run(&vec((0..3usize, mutation()), 0..4), |damages| {
        let mut answers = [greeting(false), accepted(), whole.clone()];
        let seeds = answers.to_vec();
        for (answer, mutation) in &damages {
            apply(&mut answers[*answer], mutation, &seeds);
        }
        let seen = thread::scope(|scope| {
            scope.spawn(|| serve_damaged(listener.accept()?.0, &answers));
            let mut seen = 0;
            if let Ok(mut client) = Client::connect(&account(port)) {
                // The content of rows is arbitrary.
                drop(client.query("SHOW GLOBAL STATUS", |cells| {
                    seen += usize::from(cells.get(0).is_some())
                }));
            }
            seen
        });
        with_rows.set(with_rows.get() + usize::from(seen > 0));
        Ok(())
    });
    result.unwrap();
    assert!(with_rows.get() > 0, "undamaged answers have rows");
}

#[test]
fn endless_response_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The server gets an error when the client closes the connection.
    let server = thread::spawn(move || serve(listener.accept().unwrap().0).ok());
    let mut client = Client::connect(&account(port)).unwrap();
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
