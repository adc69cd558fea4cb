//! Tests every parser with hostile input: its corpus, and mutations of it.
//!
//! A text that breaks a parser is stored in `tests/corpus/<parser>/` and becomes part of the
//! corpus.

use std::fs;
use std::path::PathBuf;

use crate::parsers::PARSERS;
use crate::parsers::Parser;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;
use proptest::collection::vec;
use proptest::prelude::Strategy;
use proptest::prelude::any;
use proptest::prop_oneof;
use proptest::sample::Index;
use proptest::sample::select;
use proptest::test_runner::Config;
use proptest::test_runner::TestCaseError;
use proptest::test_runner::TestError;
use proptest::test_runner::TestRunner;

fn corpus(parser: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus")).join(parser)
}

/// The texts of the corpus of a parser, sorted by name.
pub fn seeds(parser: &Parser) -> Vec<Vec<u8>> {
    let place = corpus(parser.name);
    let entries =
        fs::read_dir(&place).unwrap_or_else(|error| panic!("{}: {error}; give it a text", place.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A mutation of a text. Positions are fractions of its length, so that they stay valid when the
/// length changes.
#[derive(Clone, Debug)]
pub enum Mutation {
    /// Another text of the corpus.
    Restart(Index),
    /// Some bytes are replaced.
    Replace(Index, usize, Vec<u8>),
    RepeatLine(Index, usize),
    /// The begin up to the second place and the end from the first: a cut, or a part that is
    /// missing or doubled.
    Splice(Index, Index),
}

const NUMBERS: [&str; 8] = [
    "0",
    "123456",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "99999999999999999999999999999999999999",
    "1e9",
    "4294967296",
];
const PIECES: [&[u8]; 8] = [b"\0", b"\n\n", b":", b" ", b"\t", b"\xff\xfe", b"()", b"\\777"];

pub fn mutation() -> impl Strategy<Value = Mutation> {
    let place = any::<Index>;
    let bytes = prop_oneof![
        select(&PIECES[..]).prop_map(<[u8]>::to_vec),
        select(&NUMBERS[..]).prop_map(|number| number.as_bytes().to_vec()),
        vec(any::<u8>(), 0..4),
        (select(&b"a1 :\0\xff"[..]), 1..20_000usize).prop_map(|(byte, times)| vec![byte; times]),
    ];
    let length = prop_oneof![4 => 0..8usize, 1 => 0..10_000usize];
    prop_oneof![
        1 => place().prop_map(Mutation::Restart),
        4 => (place(), length, bytes).prop_map(|(at, length, with)| Mutation::Replace(at, length, with)),
        1 => (place(), 0..50usize).prop_map(|(at, times)| Mutation::RepeatLine(at, times)),
        1 => (place(), place()).prop_map(|(from, to)| Mutation::Splice(from, to)),
    ]
}

pub fn apply(text: &mut Vec<u8>, mutation: &Mutation, seeds: &[Vec<u8>]) {
    let length = text.len() + 1;
    match mutation {
        Mutation::Restart(seed) => text.clone_from(seed.get(seeds)),
        Mutation::Replace(at, replaced, with) => {
            let at = at.index(length);
            let end = text.len().min(at + replaced);
            text.splice(at..end, with.iter().copied());
        }
        Mutation::RepeatLine(at, times) => {
            let (before, behind) = text.split_at(at.index(length));
            let newline = |byte: &u8| *byte == b'\n';
            let start = before.iter().rposition(newline).map_or(0, |end| end + 1);
            let end = behind.iter().position(newline);
            let end = end.map_or(text.len(), |end| before.len() + end + 1);
            let lines = text[start..end].repeat(*times);
            text.splice(start..end, lines);
        }
        Mutation::Splice(from, to) => {
            let tail = text[from.index(length)..].to_vec();
            text.truncate(to.index(length));
            text.extend(tail);
        }
    }
    // Repeated doubling would grow without limit.
    text.truncate(1 << 15);
}

/// All rows, entity and cells.
fn dump(rows: &Rows, width: usize) -> Vec<String> {
    let cell = |row, column| match rows.value(row, column, width) {
        Value::Text(text) => format!("{:?}", text.to_vec()),
        other => format!("{other:?}"),
    };
    let row = |row| {
        let entity: Vec<_> = rows.entity(row).collect();
        let cells: Vec<_> = (0..width).map(|column| cell(row, column)).collect();
        format!("{entity:?} {cells:?}")
    };
    (0..rows.len()).map(row).collect()
}

/// Parses texts one after the other. Each gives complete rows, no more than it can have, or a
/// one-line error with a position; and the same as without the texts before.
fn check(parser: &Parser, texts: &[Vec<u8>]) -> Result<(), String> {
    let mut parse = (parser.make)();
    let mut rows = Rows::default();
    for text in texts {
        rows.clear();
        let result = parse(text, &mut rows);
        match &result {
            Ok(()) if !rows.has_width(parser.width) => return Err("a row is incomplete".to_owned()),
            // The shortest line has two bytes; a matrix has no more cells than words.
            Ok(()) if rows.len() > text.len() + 8 => {
                return Err(format!("{} rows of {} bytes", rows.len(), text.len()));
            }
            Ok(()) => {}
            Err(error) => {
                let line = error.split(':').next().and_then(|line| line.parse().ok());
                let lines = text.iter().filter(|byte| **byte == b'\n').count() + 2;
                let is_placed = line.is_some_and(|line| (1..=lines).contains(&line));
                if !is_placed || error.lines().count() != 1 || error.len() > 400 {
                    return Err(format!("an error without a valid position: {error}"));
                }
                // The recorder does the same.
                rows.clear();
            }
        }
        let mut alone = Rows::default();
        let expected = (parser.make)()(text, &mut alone);
        if result != expected {
            return Err(format!("{result:?} in place of {expected:?}"));
        }
        if result.is_ok() && dump(&rows, parser.width) != dump(&alone, parser.width) {
            return Err("other rows than without the texts before".to_owned());
        }
    }
    Ok(())
}

#[test]
fn texts_of_the_corpus_pass() {
    for parser in PARSERS {
        let seeds = seeds(parser);
        check(parser, &seeds).unwrap_or_else(|why| panic!("{}: {why}", parser.name));
        let is_accepted = |text: &Vec<u8>| (parser.make)()(text, &mut Rows::default()).is_ok();
        assert!(seeds.iter().any(is_accepted), "{}: none is accepted", parser.name);
    }
}

#[test]
fn mutated_texts_are_errors_or_complete_rows() {
    for parser in PARSERS {
        let seeds = seeds(parser);
        // Most texts are the previous one with few changes.
        let made = |first: &Index, steps: &[Vec<Mutation>]| {
            let mut text = first.get(&seeds).clone();
            let next = |mutations: &Vec<Mutation>| {
                mutations
                    .iter()
                    .for_each(|mutation| apply(&mut text, mutation, &seeds));
                text.clone()
            };
            steps.iter().map(next).collect::<Vec<_>>()
        };
        let config = Config {
            cases: Config::default().cases.max(250),
            failure_persistence: None,
            ..Config::default()
        };
        let steps = vec(vec(mutation(), 0..4), 2..6);
        let result = TestRunner::new(config).run(&(any::<Index>(), steps), |(first, steps)| {
            check(parser, &made(&first, &steps)).map_err(TestCaseError::fail)
        });
        if let Err(TestError::Fail(why, (first, steps))) = result {
            // Stores the texts that fail, which are more useful than a random seed.
            let texts = made(&first, &steps);
            for (number, text) in texts.iter().enumerate() {
                fs::write(corpus(parser.name).join(format!("failed-{number}")), text).unwrap();
            }
            panic!("{}: {why}; stored as failed-* in its corpus", parser.name);
        }
    }
}
