//! Replies as the server writes them, in pieces of any size, and bytes that no server writes.

use proptest::prelude::*;

use super::Dialect;
use super::MOST;
use super::reply::Command;
use super::reply::Reply;
use super::reply::Said;
use crate::driver::Effect;
use crate::driver::Row;

const NEW: Dialect = Dialect {
    deprecate_eof: true,
    attributes: true,
    counts_parameters: true,
};
const OLD: Dialect = Dialect {
    deprecate_eof: false,
    attributes: false,
    counts_parameters: false,
};

/// Packets with their headers, numbered from 1.
fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut sequence = 1_u8;
    for payload in payloads {
        for piece in payload.chunks(MOST) {
            bytes.extend(&(piece.len() as u32).to_le_bytes()[..3]);
            bytes.push(sequence);
            bytes.extend(piece);
            sequence = sequence.wrapping_add(1);
        }
    }
    bytes
}

/// A column of this type: names, 12, character set, length, type, flags, decimals, two empty bytes.
fn column(kind: u8, flags: u8, decimals: u8) -> Vec<u8> {
    let mut payload = b"\x03def\x02db\x01t\x01t\x01c\x01c\x0c".to_vec();
    payload.extend([0xff, 0, 20, 0, 0, 0, kind, flags, 0, decimals, 0, 0]);
    payload
}

const OK: &[u8] = &[0, 3, 0, 2, 0, 0, 0];
const OK_MORE: &[u8] = &[0, 1, 0, 10, 0, 0, 0];
const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
const EOF_MORE: &[u8] = &[0xfe, 0, 0, 10, 0];
const END: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];

/// Reads a reply that comes in pieces of this size; gives what it said and its rows.
fn read(dialect: Dialect, command: Command, bytes: &[u8], piece: usize, wanted: bool) -> (Said, Vec<Row>) {
    let mut reply = Reply::new(dialect, command, 0);
    let (mut rows, mut left) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        assert!(!reply.is_whole(), "bytes are left");
        left.extend_from_slice(piece);
        let used = reply.feed(&left, wanted.then_some(&mut rows)).unwrap();
        left.drain(..used);
    }
    assert!(left.is_empty(), "bytes are left");
    (reply.said().unwrap(), rows)
}

fn texts(row: &[Option<&str>]) -> Row {
    row.iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn the_last_result_without_rows_gives_the_rows_affected() {
    let bytes = packets(&[OK]);
    let (said, _) = read(NEW, Command::Query, &bytes, 1, false);
    assert_eq!(said, Said::Done(Effect::Write(3)));
}

#[test]
fn an_error_has_number_state_and_words_on_one_line() {
    let bytes = packets(&[b"\xff\xbd\x04#40001Deadlock\nfound"]);
    let (Said::Failed(failure), _) = read(NEW, Command::Execute, &bytes, 3, false) else {
        panic!("no failure")
    };
    assert_eq!(failure.to_string(), "Deadlock found (error 1213, SQLSTATE 40001)");
}

#[test]
fn text_rows_of_several_results_in_both_dialects() {
    let (one, two) = (column(253, 0, 0), column(3, 0, 0));
    let old: &[&[u8]] = &[
        &[2],
        &one,
        &two,
        EOF,
        b"\x02ab\xfb",
        EOF_MORE,
        &[1],
        &one,
        EOF,
        b"\x00",
        EOF,
    ];
    let new: &[&[u8]] = &[&[2], &one, &two, b"\x02ab\xfb", END];
    for piece in [1, 5, 1000] {
        let (said, rows) = read(OLD, Command::Query, &packets(old), piece, true);
        assert_eq!(said, Said::Done(Effect::Read));
        assert_eq!(rows, [texts(&[Some("ab"), None]), texts(&[Some("")])]);
        let (said, rows) = read(NEW, Command::Query, &packets(new), piece, true);
        assert_eq!(
            (said, rows),
            (Said::Done(Effect::Read), vec![texts(&[Some("ab"), None])])
        );
        let (said, _) = read(OLD, Command::Query, &packets(old), piece, false);
        assert_eq!(said, Said::Done(Effect::Read));
    }
    let both = packets(&[OK_MORE, &[1], &one, b"\x01x", END]);
    let (said, rows) = read(NEW, Command::Query, &both, 7, true);
    assert_eq!((said, rows.len()), (Said::Done(Effect::Read), 1));
}

#[test]
fn binary_values_become_the_text_that_the_server_would_write() {
    let columns = [
        column(8, 0, 0),
        column(1, 32, 0),
        column(5, 0, 31),
        column(5, 0, 2),
        column(12, 0, 3),
        column(11, 0, 0),
        column(253, 0, 0),
        column(3, 0, 0),
    ];
    let mut row = vec![0, 0b0000_0000, 0b10];
    row.extend((-5_i64).to_le_bytes());
    row.push(255);
    row.extend(0.1_f64.to_le_bytes());
    row.extend(1.005_f64.to_le_bytes());
    row.extend([11, 0xea, 7, 11, 21, 9, 5, 7, 0x40, 0xe2, 1, 0]);
    row.extend([8, 1, 1, 0, 0, 0, 2, 3, 4]);
    row.extend(b"\x04text");
    let payloads: Vec<&[u8]> = [&[8][..]]
        .into_iter()
        .chain(columns.iter().map(Vec::as_slice))
        .chain([row.as_slice(), END])
        .collect();
    let (_, rows) = read(NEW, Command::Execute, &packets(&payloads), 9, true);
    let expected = [
        "-5",
        "255",
        "0.1",
        "1.00",
        "2026-11-21 09:05:07.123",
        "-26:03:04",
        "text",
    ];
    let mut expected: Row = expected.iter().map(|text| Some((*text).to_owned())).collect();
    expected.push(None);
    assert_eq!(rows, [expected]);
}

#[test]
fn a_prepared_statement_with_its_descriptions() {
    let any = column(3, 0, 0);
    let head = [0, 7, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0];
    let new = packets(&[&head, &any, &any, &any]);
    let old = packets(&[&head, &any, &any, EOF, &any, EOF]);
    for (dialect, bytes) in [(NEW, new), (OLD, old)] {
        let (said, _) = read(dialect, Command::Prepare, &bytes, 4, false);
        assert_eq!(said, Said::Prepared(7, 2));
    }
}

#[test]
fn rows_of_sixteen_megabytes_and_more_are_read_and_stepped_over() {
    let one = column(252, 0, 0);
    for length in [MOST - 4, MOST - 3, 20_000_000] {
        let mut row = vec![0xfd];
        if length > 0xff_ffff {
            row = vec![0xfe];
            row.extend((length as u64).to_le_bytes());
        } else {
            row.extend(&(length as u32).to_le_bytes()[..3]);
        }
        row.resize(row.len() + length, b'x');
        let mut payloads: Vec<&[u8]> = vec![&[1], &one, &row];
        // A payload that fills its packets ends with an empty one.
        let mut bytes = packets(&payloads);
        if row.len() % MOST == 0 {
            let sequence = bytes.len() / MOST;
            bytes.extend([0, 0, 0, sequence as u8 + 3]);
        }
        payloads.clear();
        let next = (3 + row.len().div_ceil(MOST) + usize::from(row.len() % MOST == 0)) as u8;
        bytes.extend([END.len() as u8, 0, 0, next]);
        bytes.extend(END);
        for wanted in [false, true] {
            let (said, rows) = read(NEW, Command::Query, &bytes, 1 << 20, wanted);
            assert_eq!(said, Said::Done(Effect::Read), "{length}");
            let lengths: Vec<usize> = rows.iter().map(|row| row[0].as_ref().unwrap().len()).collect();
            assert_eq!(lengths, if wanted { vec![length] } else { vec![] });
        }
    }
}

#[test]
fn what_is_no_reply_is_refused() {
    for bytes in [
        packets(&[&[0xfb, b'/', b'f']]),
        packets(&[&[0xfe, 0, 0]]),
        packets(&[&[0]]),
        packets(&[&[1], &[0xff]]),
        vec![1, 0, 0, 9, 0],
        vec![0, 0, 0, 1],
    ] {
        assert!(
            Reply::new(NEW, Command::Query, 0).feed(&bytes, None).is_err(),
            "{bytes:?}"
        );
    }
}

/// A reply with some of everything.
fn rich() -> Vec<u8> {
    let (one, two) = (column(253, 0, 0), column(12, 0, 6));
    let mut row = vec![0, 0, 2, b'a', b'b'];
    row.extend([11, 0xea, 7, 11, 21, 9, 5, 7, 0x40, 0xe2, 1, 0]);
    packets(&[OK_MORE, &[2], &one, &two, &row, &row, END])
}

proptest! {
    #[test]
    fn hostile_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200), command in 0..3, dialect in any::<bool>(), wanted in any::<bool>()) {
        harmless(&bytes, command, dialect, wanted);
    }

    #[test]
    fn spoilt_replies_do_no_harm(at in 0..160_usize, byte in any::<u8>(), cut in 0..160_usize, command in 0..3, dialect in any::<bool>(), wanted in any::<bool>()) {
        let mut bytes = rich();
        let length = bytes.len();
        bytes[at % length] = byte;
        bytes.truncate(length - cut % length);
        harmless(&bytes, command, dialect, wanted);
    }
}

/// Feeds the bytes until they are used up, the reply is whole or it is refused.
fn harmless(bytes: &[u8], command: i32, dialect: bool, wanted: bool) {
    let command = [Command::Query, Command::Execute, Command::Prepare][command as usize];
    let mut reply = Reply::new(if dialect { NEW } else { OLD }, command, 0);
    let mut rows = Vec::new();
    if let Ok(used) = reply.feed(bytes, wanted.then_some(&mut rows)) {
        assert!(used <= bytes.len());
    }
}
