//! Tests every parser with hostile input: its corpus, and mutations of it.
//!
//! A text that breaks a parser is stored in `tests/corpus/<parser>/` and becomes part of the
//! corpus.

use std::fs;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::path::PathBuf;

use crate::parsers::PARSERS;
use crate::parsers::Parser;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;
use proptest::collection::vec;
use proptest::prelude::Strategy;
use proptest::prelude::any;
use proptest::sample::Index;
use proptest::sample::select;
use proptest::strategy::Union;
use proptest::test_runner::Config;
use proptest::test_runner::RngAlgorithm;
use proptest::test_runner::TestCaseError;
use proptest::test_runner::TestError;
use proptest::test_runner::TestRng;
use proptest::test_runner::TestRunner;

fn corpus(parser: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus")).join(parser)
}

/// The texts of the corpus of a parser, sorted by name.
fn seeds(parser: &Parser) -> Vec<Vec<u8>> {
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
enum Mutation {
    Cut(Index),
    Behead(Index),
    Replace(Index, u8),
    Digits(Index, &'static [u8]),
    RepeatLine(Index, usize),
    DropLine(Index),
    Insert(Index, &'static [u8]),
    LongLine(Index, u8, usize),
    Splice(Index, Index),
}

const NUMBERS: [&[u8]; 12] = [
    b"0",
    b"7",
    b"123456",
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"99999999999999999999999999999999999999",
    b"-1",
    b"1e9",
    b"0x10",
    b"4294967296",
];
const PIECES: [&[u8]; 10] = [
    b"\0",
    b"\n",
    b"\n\n\n",
    b":",
    b" ",
    b"\t",
    b"\xff\xfe",
    b"(",
    b")",
    b"\\777",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = any::<Index>;
    Union::new([
        place().prop_map(Mutation::Cut).boxed(),
        place().prop_map(Mutation::Behead).boxed(),
        (place(), any::<u8>())
            .prop_map(|(at, byte)| Mutation::Replace(at, byte))
            .boxed(),
        (place(), select(&NUMBERS[..]))
            .prop_map(|(at, number)| Mutation::Digits(at, number))
            .boxed(),
        (place(), 1..50usize)
            .prop_map(|(at, times)| Mutation::RepeatLine(at, times))
            .boxed(),
        place().prop_map(Mutation::DropLine).boxed(),
        (place(), select(&PIECES[..]))
            .prop_map(|(at, piece)| Mutation::Insert(at, piece))
            .boxed(),
        (place(), select(&b"a1 :\0\xff"[..]), 1..20_000usize)
            .prop_map(|(at, byte, times)| Mutation::LongLine(at, byte, times))
            .boxed(),
        (place(), place())
            .prop_map(|(from, to)| Mutation::Splice(from, to))
            .boxed(),
    ])
}

fn line_around(text: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = text[..at]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let end = text[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |end| at + end + 1);
    start..end
}

fn apply(text: &mut Vec<u8>, mutation: &Mutation) {
    let length = text.len() + 1;
    let inside = |at: &Index| at.index(length);
    match mutation {
        Mutation::Cut(at) => text.truncate(inside(at)),
        Mutation::Behead(at) => drop(text.drain(..inside(at))),
        Mutation::Replace(at, byte) => {
            if let Some(place) = text.get_mut(inside(at)) {
                *place = *byte;
            }
        }
        Mutation::Digits(at, number) => {
            let from = inside(at);
            let Some(start) = text[from..]
                .iter()
                .position(u8::is_ascii_digit)
                .map(|start| from + start)
            else {
                return;
            };
            let end = text[start..]
                .iter()
                .position(|byte| !byte.is_ascii_digit())
                .map_or(text.len(), |end| start + end);
            text.splice(start..end, number.iter().copied());
        }
        Mutation::RepeatLine(at, times) => {
            let range = line_around(text, inside(at));
            let lines = text[range.clone()].repeat(*times);
            text.splice(range.start..range.start, lines);
        }
        Mutation::DropLine(at) => drop(text.drain(line_around(text, inside(at)))),
        Mutation::Insert(at, piece) => drop(text.splice(inside(at)..inside(at), piece.iter().copied())),
        Mutation::LongLine(at, byte, times) => {
            drop(text.splice(inside(at)..inside(at), std::iter::repeat_n(*byte, *times)));
        }
        Mutation::Splice(from, to) => {
            let tail = text[inside(from)..].to_vec();
            text.truncate(inside(to));
            text.extend(tail);
        }
    }
}

/// All rows, entity and cells.
fn dump(rows: &Rows, width: usize) -> Vec<String> {
    let cell = |row, column| match rows.value(row, column, width) {
        Value::Text(text) => format!("{:?}", text.to_vec()),
        other => format!("{other:?}"),
    };
    (0..rows.len())
        .map(|row| {
            format!(
                "{:?} {:?}",
                rows.entity(row).collect::<Vec<_>>(),
                (0..width).map(|column| cell(row, column)).collect::<Vec<_>>()
            )
        })
        .collect()
}

/// Checks a parser with a text: no panic; complete rows, or a one-line error with a position; no
/// more rows than the text can have; and a valid text after it gives its usual rows.
fn check(parser: &Parser, good: &[u8], text: &[u8]) -> Result<(), String> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut parse = (parser.make)();
        let mut rows = Rows::default();
        parse(good, &mut rows).map_err(|error| format!("a text of the corpus is refused: {error}"))?;
        let first = dump(&rows, parser.width);
        rows.clear();
        match parse(text, &mut rows) {
            Ok(()) if !rows.has_width(parser.width) => return Err("a row is incomplete".to_owned()),
            // The shortest line has two bytes; a matrix has no more cells than words.
            Ok(()) if rows.len() > text.len() + 8 => {
                return Err(format!("{} rows of {} bytes", rows.len(), text.len()));
            }
            Ok(()) => {}
            Err(error) => {
                let line = error
                    .split(':')
                    .next()
                    .and_then(|line| line.parse::<usize>().ok());
                let lines = text.iter().filter(|byte| **byte == b'\n').count() + 2;
                if line.is_none_or(|line| line == 0 || line > lines)
                    || error.lines().count() != 1
                    || error.len() > 400
                {
                    return Err(format!("an error without a valid position: {error}"));
                }
            }
        }
        rows.clear();
        parse(good, &mut rows)
            .map_err(|error| format!("a valid text is refused after a malformed one: {error}"))?;
        if dump(&rows, parser.width) == first {
            Ok(())
        } else {
            Err("a valid text gives other rows after a malformed one".to_owned())
        }
    }));
    result.unwrap_or_else(|_| Err("it panicked".to_owned()))
}

#[test]
fn texts_of_the_corpus_pass() {
    for parser in PARSERS {
        let seeds = seeds(parser);
        let good = seeds.iter().find(|text| accepted(parser, text));
        let good = good.unwrap_or_else(|| panic!("{}: no text of its corpus is accepted", parser.name));
        for text in &seeds {
            check(parser, good, text)
                .unwrap_or_else(|why| panic!("{}: {why}\n{}", parser.name, text.escape_ascii()));
        }
    }
}

fn accepted(parser: &Parser, text: &[u8]) -> bool {
    (parser.make)()(text, &mut Rows::default()).is_ok()
}

#[test]
fn mutated_texts_are_errors_or_complete_rows() {
    for parser in PARSERS {
        let seeds: Vec<_> = seeds(parser)
            .into_iter()
            .filter(|text| accepted(parser, text))
            .collect();
        let texts = (any::<Index>(), any::<Index>(), vec(mutation(), 1..6));
        let made = |(seed, _, spoils): &(Index, Index, Vec<Mutation>)| {
            let mut text = seed.get(&seeds).clone();
            spoils.iter().for_each(|mutation| apply(&mut text, mutation));
            text
        };
        // Stores the text that fails, which is more useful than a random seed.
        let mut runner = TestRunner::new(Config {
            cases: Config::default().cases.max(400),
            failure_persistence: None,
            ..Config::default()
        });
        let result = runner.run(&texts, |case| {
            check(parser, case.1.get::<Vec<u8>>(&seeds), &made(&case)).map_err(TestCaseError::fail)
        });
        if let Err(TestError::Fail(why, case)) = result {
            let text = made(&case);
            let kept = corpus(parser.name).join(format!("failed-{:08x}", crc32c(&text)));
            fs::write(&kept, &text).unwrap();
            panic!("{}: {why}; kept as {}", parser.name, kept.display());
        }
    }
}

/// Checks that a parser gives the same result as a new one after any other text that it has parsed or refused:
/// reused rows must not change the result.
fn does_not_depend_on_earlier_texts(parser: &Parser, texts: &[Vec<u8>]) -> Result<(), String> {
    let mut parse = (parser.make)();
    let mut rows = Rows::default();
    for (number, text) in texts.iter().enumerate() {
        let (mut fresh, mut alone) = ((parser.make)(), Rows::default());
        let expected = fresh(text, &mut alone);
        rows.clear();
        let result = parse(text, &mut rows);
        if result != expected {
            return Err(format!("text {number}: {result:?} in place of {expected:?}"));
        }
        if result.is_err() {
            // The recorder does the same.
            rows.clear();
        } else if dump(&rows, parser.width) != dump(&alone, parser.width) {
            return Err(format!("text {number}: other rows than without the texts before"));
        }
    }
    Ok(())
}

#[test]
fn reading_does_not_depend_on_earlier_ones() {
    for parser in PARSERS {
        let seeds: Vec<_> = seeds(parser)
            .into_iter()
            .filter(|text| accepted(parser, text))
            .collect();
        // Most texts are the previous one with few changes.
        let step = (any::<Index>(), 0..8u8, vec(mutation(), 0..4));
        let made = |steps: &[(Index, u8, Vec<Mutation>)]| {
            let mut text = seeds[0].clone();
            let next = |(seed, is_new_text, spoils): &(Index, u8, Vec<Mutation>)| {
                if *is_new_text == 0 {
                    text.clone_from(seed.get(&seeds));
                }
                for mutation in spoils {
                    apply(&mut text, mutation);
                    // Repeated doubling would grow without limit.
                    text.truncate(1 << 14);
                }
                text.clone()
            };
            steps.iter().map(next).collect::<Vec<_>>()
        };
        // The sequences are fixed; `PROPTEST_CASES` sets their number.
        let config = Config {
            cases: Config::default().cases.max(100),
            failure_persistence: None,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let result = runner.run(&vec(step, 2..8), |steps| {
            does_not_depend_on_earlier_texts(parser, &made(&steps)).map_err(TestCaseError::fail)
        });
        if let Err(TestError::Fail(why, steps)) = result {
            let texts: Vec<_> = made(&steps)
                .iter()
                .map(|text| text.escape_ascii().to_string())
                .collect();
            panic!("{}: {why}\n{}", parser.name, texts.join("\n---\n"));
        }
    }
}

/// A device that becomes idle has no row although the lines around it are unchanged; later it has a
/// row again.
#[test]
fn unchanged_lines_keep_their_rows_if_others_have_none() {
    let disk = PARSERS.iter().find(|parser| parser.name == "disk").unwrap();
    let line = |name: &str, count: u32| format!("7 0 {name} {}\n", format!("{count} ").repeat(17).trim_end());
    let text = |counts: [u32; 4]| -> Vec<u8> {
        let names = ["loop0", "vda", "loop1", "vdb"].into_iter();
        names
            .zip(counts)
            .map(|(name, count)| line(name, count))
            .collect::<String>()
            .into_bytes()
    };
    let counts = [
        [1, 2, 3, 4],
        [0, 2, 3, 4],
        [0, 2, 3, 4],
        [0, 2, 0, 4],
        [5, 2, 0, 4],
        [5, 1, 3, 4],
    ];
    does_not_depend_on_earlier_texts(disk, &counts.map(text)).unwrap();
}

/// The file name of a text: its CRC-32C, as in recordings.
fn crc32c(text: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    };
    !text.iter().fold(!0, step)
}
