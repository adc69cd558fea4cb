//! Tests that rows contain the whole exposition: generated expositions, responses of real
//! exporters, and damaged ones.

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

/// The content of a line.
#[derive(Clone, Debug)]
enum Content {
    Sample {
        series: String,
        value: f64,
        timestamp_ns: Option<i64>,
        exemplar: Option<String>,
    },
    Description(String, String, String),
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Description(a, b, c), Self::Description(d, e, f)) => (a, b, c) == (d, e, f),
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
                // NaN equals NaN, and zeros have a sign.
                let same = value.to_bits() == its_value.to_bits() || (value.is_nan() && its_value.is_nan());
                same && (series, timestamp_ns, exemplar) == (its_series, its_timestamp_ns, its_exemplar)
            }
            _ => false,
        }
    }
}

fn read(body: &[u8], format: Format) -> Result<Vec<Content>, (u32, String)> {
    let mut contents = vec![];
    let count = parse(body, format, &mut |item| {
        contents.push(match item {
            Item::Sample {
                series,
                value,
                timestamp_ns,
                exemplar,
            } => Content::Sample {
                series: series.to_owned(),
                value,
                timestamp_ns,
                exemplar: exemplar.map(str::to_owned),
            },
            Item::Description { keyword, name, text } => {
                Content::Description(keyword.to_owned(), name.to_owned(), text.to_owned())
            }
        });
    })
    .map_err(|error| (error.line, format!("{}: {}", error.item, error.message)))?;
    let samples = contents
        .iter()
        .filter(|line| matches!(line, Content::Sample { .. }));
    assert_eq!(samples.count() as u64, count);
    Ok(contents)
}

/// Builds the exposition from the content of table rows.
fn rebuilt(contents: &[Content], format: Format) -> String {
    let mut body = String::new();
    for line in contents {
        match line {
            Content::Description(keyword, name, text) => body += &format!("# {keyword} {name} {text}\n"),
            Content::Sample {
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
    let mut files: Vec<_> = fs::read_dir(dir)
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
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert!(files.len() >= 4, "{folder}");
    files
}

/// Name and labels of a series without `",` in its label values.
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
fn responses_of_real_exporters_are_read_completely() {
    for (path, format) in fixtures("") {
        let place = path.display();
        let body = fs::read_to_string(&path).unwrap();
        let contents = read(body.as_bytes(), format).unwrap();
        let lines = body.lines().filter(|line| *line != "# EOF").count();
        assert_eq!(contents.len(), lines, "{place}");
        assert_eq!(
            read(rebuilt(&contents, format).as_bytes(), format).unwrap(),
            contents,
            "{place}"
        );
        // These exporters use the canonical form of names; only the order of labels can differ.
        if format == Format::Text {
            for (line, content) in body.lines().zip(&contents) {
                match content {
                    Content::Sample { series, value, .. } => {
                        let (sent, number) = line.rsplit_once(' ').unwrap();
                        assert_eq!(
                            (parts(series), value.to_bits()),
                            (parts(sent), number.parse::<f64>().unwrap().to_bits()),
                            "{place}"
                        );
                    }
                    Content::Description(keyword, name, text) => {
                        assert_eq!(format!("# {keyword} {name} {text}"), line, "{place}");
                    }
                }
            }
        }
    }
}

#[test]
fn malformed_expositions_are_refused_at_their_line() {
    for (path, format) in fixtures("malformed") {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let expected: u32 = name.split('-').next().unwrap().parse().unwrap();
        let (line, message) = read(&fs::read(&path).unwrap(), format).unwrap_err();
        assert_eq!(line, expected, "{name}: {message}");
    }
}

/// A name in the old or any other alphabet, and its canonical form.
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

fn canonical(name: &str, quoted: &str, pairs: &[String]) -> String {
    match (is_bare(name, true), pairs.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{name}{{{}}}", pairs.join(",")),
        (false, true) => format!("{{{quoted}}}"),
        (false, false) => format!("{{{quoted},{}}}", pairs.join(",")),
    }
}

/// A sample with the text of its line: labels in the order of `turn`, and optional spaces.
fn sample(format: Format) -> impl Strategy<Value = (Content, String)> {
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
                let series = canonical(&name, &quoted, &pairs);
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
                    Content::Sample {
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

fn described() -> impl Strategy<Value = (Content, String)> {
    ("[a-z_:]{1,8}", "[ -~ü]{0,20}").prop_map(|(name, text)| {
        let text = text.trim_start().to_owned();
        let line = format!("# HELP {name} {text}");
        (Content::Description("HELP".to_owned(), name, text), line)
    })
}

fn exposition(format: Format) -> impl Strategy<Value = (Vec<Content>, String)> {
    vec(prop_oneof![4 => sample(format), 1 => described()], 0..12).prop_map(move |lines| {
        let (contents, text): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        let mut body = text.join("\n");
        if !body.is_empty() {
            body.push('\n');
        }
        if format == Format::OpenMetrics {
            body += "# EOF";
        }
        (contents, body)
    })
}

proptest! {
    #[test]
    fn text_format_is_read((contents, body) in exposition(Format::Text)) {
        let read_back = read(body.as_bytes(), Format::Text).unwrap();
        prop_assert_eq!(&read_back, &contents, "{}", body);
        prop_assert_eq!(read(rebuilt(&read_back, Format::Text).as_bytes(), Format::Text).unwrap(), contents);
    }

    #[test]
    fn openmetrics_is_read((contents, body) in exposition(Format::OpenMetrics)) {
        let read_back = read(body.as_bytes(), Format::OpenMetrics).unwrap();
        prop_assert_eq!(&read_back, &contents, "{}", body);
        let again = rebuilt(&read_back, Format::OpenMetrics);
        prop_assert_eq!(read(again.as_bytes(), Format::OpenMetrics).unwrap(), contents);
    }

    #[test]
    fn any_bytes_are_handled(body in vec(any::<u8>(), 0..200)) {
        for format in [Format::Text, Format::OpenMetrics] {
            if let Err((line, _)) = read(&body, format) {
                prop_assert!(line as usize <= body.iter().filter(|byte| **byte == b'\n').count() + 1);
            }
        }
    }

    /// Lines of real responses with some bytes changed, removed or doubled: refused at an existing
    /// line, or read and rebuilt.
    #[test]
    fn damaged_responses_are_refused_or_read(
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
            Ok(contents) => {
                prop_assert_eq!(read(rebuilt(&contents, *format).as_bytes(), *format).unwrap(), contents);
            }
        }
    }
}
