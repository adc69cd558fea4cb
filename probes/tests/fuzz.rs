//! Hostile input: every parser is fed its corpus, and texts made from it by cutting, doubling and spoiling.
//!
//! A text that broke a parser is kept in `tests/corpus/<parser>/` and tried again for ever.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed test stops where it failed"
)]

#[path = "common/parsers.rs"]
mod parsers;

use std::fs;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::path::PathBuf;

use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;
use parsers::PARSERS;
use parsers::Parser;
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

/// The texts of a parser's corpus, in the order of their names.
fn seeds(parser: &Parser) -> Vec<Vec<u8>> {
    let place = corpus(parser.name);
    let entries =
        fs::read_dir(&place).unwrap_or_else(|error| panic!("{}: {error}; give it a text", place.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// What may be done to a text. Places are fractions of its length, so that they stay true when it changes.
#[derive(Clone, Debug)]
enum Spoil {
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

fn spoil() -> impl Strategy<Value = Spoil> {
    let place = any::<Index>;
    Union::new([
        place().prop_map(Spoil::Cut).boxed(),
        place().prop_map(Spoil::Behead).boxed(),
        (place(), any::<u8>())
            .prop_map(|(at, byte)| Spoil::Replace(at, byte))
            .boxed(),
        (place(), select(&NUMBERS[..]))
            .prop_map(|(at, number)| Spoil::Digits(at, number))
            .boxed(),
        (place(), 1..50usize)
            .prop_map(|(at, times)| Spoil::RepeatLine(at, times))
            .boxed(),
        place().prop_map(Spoil::DropLine).boxed(),
        (place(), select(&PIECES[..]))
            .prop_map(|(at, piece)| Spoil::Insert(at, piece))
            .boxed(),
        (place(), select(&b"a1 :\0\xff"[..]), 1..20_000usize)
            .prop_map(|(at, byte, times)| Spoil::LongLine(at, byte, times))
            .boxed(),
        (place(), place())
            .prop_map(|(from, to)| Spoil::Splice(from, to))
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

fn apply(text: &mut Vec<u8>, spoil: &Spoil) {
    let length = text.len() + 1;
    let inside = |at: &Index| at.index(length);
    match spoil {
        Spoil::Cut(at) => text.truncate(inside(at)),
        Spoil::Behead(at) => drop(text.drain(..inside(at))),
        Spoil::Replace(at, byte) => {
            if let Some(place) = text.get_mut(inside(at)) {
                *place = *byte;
            }
        }
        Spoil::Digits(at, number) => {
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
        Spoil::RepeatLine(at, times) => {
            let range = line_around(text, inside(at));
            let lines = text[range.clone()].repeat(*times);
            text.splice(range.start..range.start, lines);
        }
        Spoil::DropLine(at) => drop(text.drain(line_around(text, inside(at)))),
        Spoil::Insert(at, piece) => drop(text.splice(inside(at)..inside(at), piece.iter().copied())),
        Spoil::LongLine(at, byte, times) => {
            drop(text.splice(inside(at)..inside(at), std::iter::repeat_n(*byte, *times)));
        }
        Spoil::Splice(from, to) => {
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

/// What must hold of any text: no panic, whole rows or an error of one line with a place, no more rows than the text can
/// have, and a good text after it read as if it had never been.
fn holds(parser: &Parser, good: &[u8], text: &[u8]) -> Result<(), String> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut parse = (parser.make)();
        let mut rows = Rows::default();
        parse(good, &mut rows).map_err(|error| format!("a text of the corpus is refused: {error}"))?;
        let first = dump(&rows, parser.width);
        rows.clear();
        match parse(text, &mut rows) {
            Ok(()) if !rows.has_width(parser.width) => return Err("a row is not whole".to_owned()),
            // A line of one byte and its end is two bytes; a matrix has no more cells than words.
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
                    return Err(format!("an error without a good place: {error}"));
                }
            }
        }
        rows.clear();
        parse(good, &mut rows).map_err(|error| format!("a good text is refused after a bad one: {error}"))?;
        if dump(&rows, parser.width) == first {
            Ok(())
        } else {
            Err("a good text is read otherwise after a bad one".to_owned())
        }
    }));
    result.unwrap_or_else(|_| Err("it panicked".to_owned()))
}

#[test]
fn every_text_of_the_corpus_holds() {
    for parser in PARSERS {
        let seeds = seeds(parser);
        let good = seeds.iter().find(|text| accepted(parser, text));
        let good = good.unwrap_or_else(|| panic!("{}: no text of its corpus is accepted", parser.name));
        for text in &seeds {
            holds(parser, good, text)
                .unwrap_or_else(|why| panic!("{}: {why}\n{}", parser.name, text.escape_ascii()));
        }
    }
}

fn accepted(parser: &Parser, text: &[u8]) -> bool {
    (parser.make)()(text, &mut Rows::default()).is_ok()
}

#[test]
fn spoilt_texts_are_errors_or_whole_rows() {
    for parser in PARSERS {
        let seeds: Vec<_> = seeds(parser)
            .into_iter()
            .filter(|text| accepted(parser, text))
            .collect();
        let texts = (any::<Index>(), any::<Index>(), vec(spoil(), 1..6));
        let made = |(seed, _, spoils): &(Index, Index, Vec<Spoil>)| {
            let mut text = seed.get(&seeds).clone();
            spoils.iter().for_each(|spoil| apply(&mut text, spoil));
            text
        };
        // What fails is kept as a text, which says more than the seed of a random number.
        let mut runner = TestRunner::new(Config {
            cases: Config::default().cases.max(400),
            failure_persistence: None,
            ..Config::default()
        });
        let result = runner.run(&texts, |case| {
            holds(parser, case.1.get::<Vec<u8>>(&seeds), &made(&case)).map_err(TestCaseError::fail)
        });
        if let Err(TestError::Fail(why, case)) = result {
            let text = made(&case);
            let kept = corpus(parser.name).join(format!("failed-{:08x}", crc32c(&text)));
            fs::write(&kept, &text).unwrap();
            panic!("{}: {why}; kept as {}", parser.name, kept.display());
        }
    }
}

/// A parser that has seen other texts before gives what a new one gives, whatever came before and was refused: what it
/// takes again of its reading before must not show.
fn remembers_nothing(parser: &Parser, texts: &[Vec<u8>]) -> Result<(), String> {
    let mut parse = (parser.make)();
    let mut rows = Rows::default();
    for (number, text) in texts.iter().enumerate() {
        let (mut fresh, mut alone) = ((parser.make)(), Rows::default());
        let expected = fresh(text, &mut alone);
        rows.clear();
        let found = parse(text, &mut rows);
        if found != expected {
            return Err(format!("text {number}: {found:?} in place of {expected:?}"));
        }
        if found.is_err() {
            // As the recorder does.
            rows.clear();
        } else if dump(&rows, parser.width) != dump(&alone, parser.width) {
            return Err(format!("text {number}: other rows than without the texts before"));
        }
    }
    Ok(())
}

#[test]
fn a_reading_does_not_depend_on_those_before() {
    for parser in PARSERS {
        let seeds: Vec<_> = seeds(parser)
            .into_iter()
            .filter(|text| accepted(parser, text))
            .collect();
        // Each text is the one before with few changes, now and then another one.
        let step = (any::<Index>(), 0..8u8, vec(spoil(), 0..4));
        let made = |steps: &[(Index, u8, Vec<Spoil>)]| {
            let mut text = seeds[0].clone();
            let next = |(seed, anew, spoils): &(Index, u8, Vec<Spoil>)| {
                if *anew == 0 {
                    text.clone_from(seed.get(&seeds));
                }
                for spoil in spoils {
                    apply(&mut text, spoil);
                    // Doubling what was doubled before would go on without end.
                    text.truncate(1 << 14);
                }
                text.clone()
            };
            steps.iter().map(next).collect::<Vec<_>>()
        };
        // The same sequences every time; `PROPTEST_CASES` makes them more.
        let config = Config {
            cases: Config::default().cases.max(100),
            failure_persistence: None,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let result = runner.run(&vec(step, 2..8), |steps| {
            remembers_nothing(parser, &made(&steps)).map_err(TestCaseError::fail)
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

/// A device that falls idle gives no row, though its neighbours' lines are as before; and rows come back.
#[test]
fn lines_that_stay_keep_their_rows_when_others_give_none() {
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
    remembers_nothing(disk, &counts.map(text)).unwrap();
}

/// A name for a text: CRC-32C, as everywhere in a recording.
fn crc32c(text: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    };
    !text.iter().fold(!0, step)
}
