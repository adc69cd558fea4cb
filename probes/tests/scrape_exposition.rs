//! What goes into the exposition parser comes out again: generated expositions, answers of real exporters, and both of them damaged.
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use loadprint_probes::scrape::exposition::Format;
use loadprint_probes::scrape::exposition::Item;
use loadprint_probes::scrape::exposition::parse;
use proptest::collection::btree_map;
use proptest::collection::vec;
use proptest::num::f64::ANY;
use proptest::option;
use proptest::prelude::*;

/// What a line says, by value.
#[derive(Clone, Debug)]
enum Said {
    Sample {
        series: String,
        value: f64,
        timestamp_ns: Option<i64>,
        exemplar: Option<String>,
    },
    Described(String, String, String),
}

impl PartialEq for Said {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Described(a, b, c), Self::Described(d, e, f)) => (a, b, c) == (d, e, f),
            (
                Self::Sample {
                    series,
                    value,
                    timestamp_ns,
                    exemplar,
                },
                Self::Sample {
                    series: its_series,
                    value: its_value,
                    timestamp_ns: its_timestamp_ns,
                    exemplar: its_exemplar,
                },
            ) => {
                // A NaN is a NaN; zeros have a sign.
                let same = value.to_bits() == its_value.to_bits() || (value.is_nan() && its_value.is_nan());
                same && (series, timestamp_ns, exemplar) == (its_series, its_timestamp_ns, its_exemplar)
            }
            _ => false,
        }
    }
}

fn read(body: &[u8], format: Format) -> Result<Vec<Said>, (u32, String)> {
    let mut said = vec![];
    let count = parse(body, format, &mut |item| {
        said.push(match item {
            Item::Sample {
                series,
                value,
                timestamp_ns,
                exemplar,
            } => Said::Sample {
                series: series.to_owned(),
                value,
                timestamp_ns,
                exemplar: exemplar.map(str::to_owned),
            },
            Item::Description { keyword, name, text } => {
                Said::Described(keyword.to_owned(), name.to_owned(), text.to_owned())
            }
        });
    })
    .map_err(|error| (error.line, format!("{}: {}", error.item, error.message)))?;
    let samples = said.iter().filter(|said| matches!(said, Said::Sample { .. }));
    assert_eq!(samples.count() as u64, count);
    Ok(said)
}

/// The exposition that says this, built from nothing but what a table's rows hold.
fn rebuilt(said: &[Said], format: Format) -> String {
    let mut body = String::new();
    for said in said {
        match said {
            Said::Described(keyword, name, text) => body += &format!("# {keyword} {name} {text}\n"),
            Said::Sample {
                series,
                value,
                timestamp_ns,
                exemplar,
            } => {
                body += &format!("{series} {value}");
                match (timestamp_ns, format) {
                    (None, _) => {}
                    (Some(at), Format::Text) => body += &format!(" {}", at / 1_000_000),
                    (Some(at), Format::OpenMetrics) => {
                        let sign = if *at < 0 { "-" } else { "" };
                        let at = at.unsigned_abs();
                        body += &format!(" {sign}{}.{:09}", at / 1_000_000_000, at % 1_000_000_000);
                    }
                }
                if let Some(exemplar) = exemplar {
                    body += &format!(" # {exemplar}");
                }
                body.push('\n');
            }
        }
    }
    if format == Format::OpenMetrics {
        body += "# EOF\n";
    }
    body
}

fn fixtures(folder: &str) -> Vec<(PathBuf, Format)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/fixtures/scrape")
        .join(folder);
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let format = match path.extension()?.to_str()? {
                "prom" => Format::Text,
                "om" => Format::OpenMetrics,
                _ => return None,
            };
            Some((path, format))
        })
        .collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert!(found.len() >= 4, "{folder}");
    found
}

/// Name and labels of a series whose label values hold no `",`.
fn parts(series: &str) -> Vec<&str> {
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}').unwrap();
    let mut parts: Vec<_> = labels
        .split("\",")
        .map(|label| label.trim_end_matches('"'))
        .collect();
    parts.sort_unstable();
    parts.insert(0, name);
    parts
}

#[test]
fn answers_of_real_exporters_come_back_whole() {
    for (path, format) in fixtures("") {
        let place = path.display();
        let body = fs::read_to_string(&path).unwrap();
        let said = read(body.as_bytes(), format).unwrap();
        let lines = body.lines().filter(|line| *line != "# EOF").count();
        assert_eq!(said.len(), lines, "{place}");
        assert_eq!(
            read(rebuilt(&said, format).as_bytes(), format).unwrap(),
            said,
            "{place}"
        );
        // These exporters write names as they are told here; only the order of labels may differ.
        if format == Format::Text {
            for (line, said) in body.lines().zip(&said) {
                match said {
                    Said::Sample { series, value, .. } => {
                        let (sent, number) = line.rsplit_once(' ').unwrap();
                        assert_eq!(
                            (parts(series), value.to_bits()),
                            (parts(sent), number.parse::<f64>().unwrap().to_bits()),
                            "{place}"
                        );
                    }
                    Said::Described(keyword, name, text) => {
                        assert_eq!(format!("# {keyword} {name} {text}"), line, "{place}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_malformed_exposition_is_refused_at_its_line() {
    for (path, format) in fixtures("malformed") {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let expected: u32 = name.split('-').next().unwrap().parse().unwrap();
        let (line, message) = read(&fs::read(&path).unwrap(), format).unwrap_err();
        assert_eq!(line, expected, "{name}: {message}");
    }
}

/// A name in the old alphabet or any other, and how it is spelled.
fn name(first: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![4 => first, 1 => "[a-zA-Z.ü \"\\\\\n=,{}#]{1,8}"]
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn is_bare(name: &str, colons: bool) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colons && c == ':');
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(fits)
}

fn spelled(name: &str, quoted: &str, pairs: &[String]) -> String {
    match (is_bare(name, true), pairs.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{name}{{{}}}", pairs.join(",")),
        (false, true) => format!("{{{quoted}}}"),
        (false, false) => format!("{{{quoted},{}}}", pairs.join(",")),
    }
}

/// A sample with the text of its line: labels in the order `turn` gives, and spaces where the format allows them.
fn sample(format: Format) -> impl Strategy<Value = (Said, String)> {
    let labels = btree_map(name("[a-zA-Z_][a-zA-Z0-9_]{0,5}"), any::<String>(), 0..4);
    let odd = prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(-0.0)
    ];
    let value = prop_oneof![4 => ANY, 1 => odd];
    let milliseconds = option::of(-9_000_000_000_000_i64..9_000_000_000_000);
    let exemplar = option::of(("[a-z]{1,4}", "[a-z0-9# ]{0,6}", -1e9..1e9f64));
    let spaces = (0..3usize, any::<bool>());
    (
        name("[a-zA-Z_:][a-zA-Z0-9_:]{0,8}"),
        labels,
        value,
        milliseconds,
        exemplar,
        spaces,
    )
        .prop_map(
            move |(name, labels, value, milliseconds, exemplar, (spaces, turn))| {
                let spell = |label: &str| match is_bare(label, false) {
                    true => label.to_owned(),
                    false => format!("\"{}\"", escaped(label)),
                };
                let pairs: Vec<String> = labels
                    .iter()
                    .map(|(label, value)| format!("{}=\"{}\"", spell(label), escaped(value)))
                    .collect();
                let bare = is_bare(&name, true);
                let quoted = format!("\"{}\"", escaped(&name));
                let series = spelled(&name, &quoted, &pairs);
                let mut parts = pairs;
                if !bare {
                    parts.push(quoted);
                }
                if turn {
                    parts.reverse();
                }
                let free = if format == Format::Text {
                    " \t".repeat(spaces)
                } else {
                    String::new()
                };
                let braces = format!("{{{}{free}}}", parts.join(&format!("{free},{free}")));
                let mut line = if bare {
                    format!("{free}{name}{braces}")
                } else {
                    format!("{free}{braces}")
                };
                line += &format!(" {free}{value}");
                if let Some(at) = milliseconds {
                    line += &match format {
                        Format::Text => format!("{free}\t{at}"),
                        Format::OpenMetrics => format!(" {}", at as f64 / 1e3),
                    };
                }
                let exemplar = exemplar
                    .filter(|_| format == Format::OpenMetrics)
                    .map(|(label, text, value)| format!("{{{label}=\"{text}\"}} {value}"));
                if let Some(exemplar) = &exemplar {
                    line += &format!(" # {exemplar}");
                } else {
                    line += &free;
                }
                let timestamp_ns = milliseconds.map(|at| at * 1_000_000);
                (
                    Said::Sample {
                        series,
                        value,
                        timestamp_ns,
                        exemplar,
                    },
                    line,
                )
            },
        )
}

fn described() -> impl Strategy<Value = (Said, String)> {
    ("[a-z_:]{1,8}", "[ -~ü]{0,20}").prop_map(|(name, text)| {
        let text = text.trim_start().to_owned();
        let line = format!("# HELP {name} {text}");
        (Said::Described("HELP".to_owned(), name, text), line)
    })
}

fn exposition(format: Format) -> impl Strategy<Value = (Vec<Said>, String)> {
    vec(prop_oneof![4 => sample(format), 1 => described()], 0..12).prop_map(move |lines| {
        let (said, text): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        let mut body = text.join("\n");
        if !body.is_empty() {
            body.push('\n');
        }
        if format == Format::OpenMetrics {
            body += "# EOF";
        }
        (said, body)
    })
}

proptest! {
    #[test]
    fn what_was_said_is_read((said, body) in exposition(Format::Text)) {
        let found = read(body.as_bytes(), Format::Text).unwrap();
        prop_assert_eq!(&found, &said, "{}", body);
        prop_assert_eq!(read(rebuilt(&found, Format::Text).as_bytes(), Format::Text).unwrap(), said);
    }

    #[test]
    fn what_openmetrics_said_is_read((said, body) in exposition(Format::OpenMetrics)) {
        let found = read(body.as_bytes(), Format::OpenMetrics).unwrap();
        prop_assert_eq!(&found, &said, "{}", body);
        let again = rebuilt(&found, Format::OpenMetrics);
        prop_assert_eq!(read(again.as_bytes(), Format::OpenMetrics).unwrap(), said);
    }

    #[test]
    fn no_bytes_do_harm(body in vec(any::<u8>(), 0..200)) {
        for format in [Format::Text, Format::OpenMetrics] {
            if let Err((line, _)) = read(&body, format) {
                prop_assert!(line as usize <= body.iter().filter(|byte| **byte == b'\n').count() + 1);
            }
        }
    }

    /// Lines of real answers with some bytes changed, lost or doubled: refused at a line that is there, or read and rebuilt.
    #[test]
    fn damaged_answers_are_refused_or_read(
        which in any::<prop::sample::Index>(),
        from in any::<prop::sample::Index>(),
        damage in vec((any::<prop::sample::Index>(), 0..3u8, prop::sample::select(b"{}\"\\ \n#,=\0\xff0aeN.".to_vec())), 1..6),
    ) {
        let files = fixtures("");
        let (path, format) = which.get(&files);
        let whole = fs::read(path).unwrap();
        let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let begin = from.index(lines.len());
        let mut body = lines[begin..lines.len().min(begin + 12)].concat();
        for (place, how, byte) in damage {
            let place = place.index(body.len());
            match how {
                0 => body[place] = byte,
                1 => body.insert(place, byte),
                _ if body.len() > 1 => drop(body.remove(place)),
                _ => {}
            }
        }
        match read(&body, *format) {
            Err((line, message)) => {
                prop_assert!(line as usize <= body.iter().filter(|byte| **byte == b'\n').count() + 1, "{message}");
            }
            Ok(said) => {
                prop_assert_eq!(read(rebuilt(&said, *format).as_bytes(), *format).unwrap(), said);
            }
        }
    }
}
