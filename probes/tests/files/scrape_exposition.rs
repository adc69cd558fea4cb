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

/// The lines of an exposition in one spelling.
fn read(body: &[u8], format: Format) -> Result<Vec<String>, (u32, String)> {
    let mut lines = vec![];
    let count = parse(body, format, &mut |item| {
        lines.push(match item {
            Item::Sample {
                series,
                value,
                timestamp_ns,
                exemplar,
            } => spelled(series, value, timestamp_ns, exemplar, format),
            Item::Description { keyword, name, text } => format!("# {keyword} {name} {text}"),
        });
    })
    .map_err(|error| (error.line, format!("{}: {}", error.item, error.message)))?;
    let samples = lines.iter().filter(|line| !line.starts_with('#'));
    assert_eq!(samples.count() as u64, count);
    Ok(lines)
}

fn spelled(series: &str, value: f64, at: Option<i64>, exemplar: Option<&str>, format: Format) -> String {
    let at = at.map_or(String::new(), |at| match format {
        Format::Text => {
            assert_eq!(at % 1_000_000, 0);
            format!(" {}", at / 1_000_000)
        }
        Format::OpenMetrics => {
            let (sign, at) = (if at < 0 { "-" } else { "" }, at.unsigned_abs());
            format!(" {sign}{}.{:09}", at / 1_000_000_000, at % 1_000_000_000)
        }
    });
    let exemplar = exemplar.map_or(String::new(), |exemplar| format!(" # {exemplar}"));
    format!("{series} {value}{at}{exemplar}")
}

/// Lines in one spelling are read as they are.
fn is_stable(lines: &[String], format: Format) -> bool {
    let end = if format == Format::OpenMetrics {
        "# EOF\n"
    } else {
        ""
    };
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    read((body + end).as_bytes(), format).unwrap() == lines
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

#[test]
fn responses_of_real_exporters_are_read_completely() {
    for (path, format) in fixtures("") {
        let place = path.display();
        let body = fs::read_to_string(&path).unwrap();
        let lines = read(body.as_bytes(), format).unwrap();
        let sent = body.lines().filter(|line| *line != "# EOF");
        assert_eq!(lines.len(), sent.clone().count(), "{place}");
        assert!(is_stable(&lines, format), "{place}");
        // These exporters use the same spelling of names; only the order of labels can differ.
        for (line, sent) in lines.iter().zip(sent).filter(|_| format == Format::Text) {
            if line.starts_with('#') {
                assert_eq!(line, sent, "{place}");
                continue;
            }
            let parts = |line: &str| {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                let mut labels: Vec<_> = labels.trim_end_matches('}').split("\",").collect();
                labels
                    .iter_mut()
                    .for_each(|label| *label = label.trim_end_matches('"'));
                labels.sort_unstable();
                let labels = labels.join(",");
                (name.to_owned(), labels, value.parse::<f64>().unwrap().to_bits())
            };
            assert_eq!(parts(line), parts(sent), "{place}");
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

/// The line of a sample in one spelling, and in another one: labels in another order and optional
/// spaces.
fn sample(format: Format) -> impl Strategy<Value = (String, String)> {
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
    let name = name("[a-zA-Z_:][a-zA-Z0-9_:]{0,8}");
    let parts = (name, labels, value, milliseconds, exemplar, spaces);
    parts.prop_map(
        move |(name, labels, value, milliseconds, exemplar, (spaces, turn))| {
            let is_text = format == Format::Text;
            let quoted = |text: &str| format!("\"{}\"", escaped(text));
            let pair = |(label, value): (&String, &String)| match is_bare(label, false) {
                true => format!("{label}={}", quoted(value)),
                false => format!("{}={}", quoted(label), quoted(value)),
            };
            let pairs: Vec<String> = labels.iter().map(pair).collect();
            let series = canonical(&name, &quoted(&name), &pairs);
            let (mut parts, mut bare) = (pairs, name.as_str());
            if !is_bare(&name, true) {
                parts.push(quoted(&name));
                bare = "";
            }
            if turn {
                parts.reverse();
            }
            let free = if is_text {
                " \t".repeat(spaces)
            } else {
                String::new()
            };
            let labels = parts.join(&format!("{free},{free}"));
            let at = milliseconds.map_or(String::new(), |at| match format {
                Format::Text => format!("{free}\t{at}"),
                Format::OpenMetrics => format!(" {}", at as f64 / 1e3),
            });
            let exemplar = exemplar
                .filter(|_| !is_text)
                .map(|(label, text, value)| format!("{{{label}=\"{text}\"}} {value}"));
            let end = exemplar
                .as_ref()
                .map_or(free.clone(), |exemplar| format!(" # {exemplar}"));
            let timestamp_ns = milliseconds.map(|at| at * 1_000_000);
            (
                spelled(&series, value, timestamp_ns, exemplar.as_deref(), format),
                format!("{free}{bare}{{{labels}{free}}} {free}{value}{at}{end}"),
            )
        },
    )
}

/// The lines of an exposition in one spelling, and its body.
fn exposition() -> impl Strategy<Value = (Format, Vec<String>, String)> {
    let formats = prop_oneof![Just(Format::Text), Just(Format::OpenMetrics)];
    formats.prop_flat_map(|format| {
        let help = ("[a-z_:]{1,8}", "[ -~ü]{0,20}")
            .prop_map(|(name, text)| format!("# HELP {name} {}", text.trim_start()))
            .prop_map(|line| (line.clone(), line));
        vec(prop_oneof![4 => sample(format), 1 => help], 0..12).prop_map(move |lines| {
            let (lines, spelled): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
            let mut body: String = spelled.iter().map(|line| format!("{line}\n")).collect();
            if format == Format::OpenMetrics {
                body += "# EOF";
            }
            (format, lines, body)
        })
    })
}

/// Checks that a body is read, or refused at one of its lines.
fn check_any(body: &[u8], format: Format) -> Result<(), TestCaseError> {
    match read(body, format) {
        Ok(lines) => prop_assert!(is_stable(&lines, format)),
        Err((line, message)) => {
            let lines = body.iter().filter(|byte| **byte == b'\n').count() + 1;
            prop_assert!(line as usize <= lines, "{message}");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn expositions_are_read((format, lines, body) in exposition()) {
        prop_assert_eq!(&read(body.as_bytes(), format).unwrap(), &lines, "{}", body);
        prop_assert!(is_stable(&lines, format));
    }

    #[test]
    fn any_bytes_are_handled(body in vec(any::<u8>(), 0..200)) {
        check_any(&body, Format::Text)?;
        check_any(&body, Format::OpenMetrics)?;
    }

    /// Lines of real responses with some bytes changed, removed or doubled.
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
        check_any(&body, *format)?;
    }
}
