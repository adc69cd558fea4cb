//! Tests that rows contain the whole exposition: those of the documentation, generated ones, responses
//! of real exporters, and damaged ones.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::fuzz::apply;
use crate::fuzz::mutation;
use loadprint_probes::scrape::exposition::Format;
use loadprint_probes::scrape::exposition::Item;
use loadprint_probes::scrape::exposition::parse;
use proptest::collection::btree_map;
use proptest::collection::vec;
use proptest::num::f64::ANY;
use proptest::option;
use proptest::prelude::*;

/// The lines of an exposition in one spelling.
fn read(body: &[u8], format: Format) -> Result<Vec<String>, String> {
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
    .map_err(|error| format!("{}: {}: {}", error.line, error.item, error.message))?;
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

fn text(body: &str) -> Result<Vec<String>, String> {
    read(body.as_bytes(), Format::Text)
}

fn open(body: &str) -> Result<Vec<String>, String> {
    read(body.as_bytes(), Format::OpenMetrics)
}

/// The example in the documentation of the text format.
#[test]
fn example_of_the_documentation_is_parsed() {
    let body = r#"# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="post",code="400"}    3 1395066363000

# Escaping in label values:
msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1.458255915e9

# Minimalistic line:
metric_without_timestamp_and_labels 12.47

# A weird metric from before the epoch:
something_weird{problem="division by zero"} +Inf -3982045

# TYPE rpc_duration_seconds summary
rpc_duration_seconds{quantile="0.01"} 3102
"#;
    assert_eq!(
        text(body).unwrap(),
        [
            "# HELP http_requests_total The total number of HTTP requests.",
            "# TYPE http_requests_total counter",
            r#"http_requests_total{code="200",method="post"} 1027 1395066363000"#,
            r#"http_requests_total{code="400",method="post"} 3 1395066363000"#,
            r#"msdos_file_access_time_seconds{error="Cannot find file:\n\"FILE.TXT\"",path="C:\\DIR\\FILE.TXT"} 1458255915"#,
            "metric_without_timestamp_and_labels 12.47",
            r#"something_weird{problem="division by zero"} inf -3982045"#,
            "# TYPE rpc_duration_seconds summary",
            r#"rpc_duration_seconds{quantile="0.01"} 3102"#,
        ]
    );
}

#[test]
fn openmetrics_has_exemplars_seconds_and_an_eof_line() {
    let body = r#"# TYPE foo_seconds histogram
# UNIT foo_seconds seconds
# HELP foo_seconds help \" \\ \n
foo_seconds_bucket{le="0.01"} 0
foo_seconds_bucket{le="0.1"} 8 # {} 0.054
foo_seconds_bucket{le="+Inf"} 17 1520879607.789 # {trace_id="KOO5S4vxi0o",x="y # z"} 9.8 1520879607.7891
foo_seconds_created 1.520430000123e+09
bar 1 1.5e9
bar NaN -0.000000001
# EOF
"#;
    assert_eq!(
        open(body).unwrap(),
        [
            "# TYPE foo_seconds histogram",
            "# UNIT foo_seconds seconds",
            r#"# HELP foo_seconds help \" \\ \n"#,
            r#"foo_seconds_bucket{le="0.01"} 0"#,
            r#"foo_seconds_bucket{le="0.1"} 8 # {} 0.054"#,
            r#"foo_seconds_bucket{le="+Inf"} 17 1520879607.789000000 # {trace_id="KOO5S4vxi0o",x="y # z"} 9.8 1520879607.7891"#,
            "foo_seconds_created 1520430000.123",
            "bar 1 1500000000.000000000",
            "bar NaN -0.000000001",
        ]
    );
    assert_eq!(open("a 1\n# EOF").unwrap(), ["a 1"]);
}

#[test]
fn series_has_one_canonical_form() {
    for spelled in [
        "a{b=\"1\",c=\"\"} 5",
        "a{c=\"\",b=\"1\"} 5",
        "  a \t{ c = \"\" , b=\"1\" , }\t5  ",
        "{\"a\",c=\"\",b=\"1\"}5",
        "{c=\"\",\"a\",\"b\"=\"1\"}5",
    ] {
        assert_eq!(text(spelled).unwrap(), ["a{b=\"1\",c=\"\"} 5"], "{spelled}");
    }
    for spelled in ["a 5", "a{} 5", "a{}5", "{\"a\"} 5"] {
        assert_eq!(text(spelled).unwrap(), ["a 5"], "{spelled}");
    }
    let spelled = r#"{"my.metric","other label"="ü\"\\",b="1"} 5"#;
    assert_eq!(
        text(spelled).unwrap(),
        [r#"{"my.metric",b="1","other label"="ü\"\\"} 5"#]
    );
    assert_eq!(
        text("# TYPE \"my.metric\" gauge").unwrap(),
        ["# TYPE \"my.metric\" gauge"]
    );
    assert_eq!(text("# HELP \"mine\" a  b ").unwrap(), ["# HELP mine a  b "]);
    // A backslash that escapes nothing is literal.
    assert_eq!(text(r#"a{b="C:\dir"} 5"#).unwrap(), [r#"a{b="C:\\dir"} 5"#]);
}

#[test]
fn unusual_input_is_accepted() {
    let body = "a 1\nb 2\na 3\na 1 5\n# TYPE a gauge\n# TYPE a counter\n#\n# comment\n#HELP\tc\n";
    let expected = [
        "a 1",
        "b 2",
        "a 3",
        "a 1 5",
        "# TYPE a gauge",
        "# TYPE a counter",
        "# HELP c ",
    ];
    assert_eq!(text(body).unwrap(), expected);
    assert_eq!(text("# UNIT a seconds\n\t\n").unwrap(), Vec::<String>::new());
    let values = text("a nan\na -iNf\na .5\na 1e-400\na -0\na 0001.e3").unwrap();
    assert_eq!(values, ["a NaN", "a -inf", "a 0.5", "a 0", "a -0", "a 1000"]);
}

#[test]
fn error_names_the_malformed_line() {
    for (body, expected) in [
        ("a 1\nb\n", "2: metric: no space before ``"),
        ("a 1\n\nb x", "3: value: `x` is not a number"),
        ("a 1\r\n", "1: value: `1\\r` ends with a carriage return"),
        ("a 1e999", "1: value: `1e999` is outside"),
        ("a 1 2 3", "1: sample: `3` follows"),
        ("a 1 2.5", "1: timestamp: `2.5` is not a whole number"),
        (
            "a 1 9223372036854775807",
            "1: timestamp: `9223372036854775807` is outside",
        ),
        ("a{b=\"1\"", "1: label: no `,` or `}`"),
        ("a{b=\"1} 5", "1: label: the closing quote of `1} 5`"),
        ("a{b=1} 5", "1: label: `1} 5` is not a string"),
        ("a{b} 5", "1: label: `b` has no value"),
        ("a{b=\"1\",b=\"2\"} 5", "1: label: `b` is duplicate"),
        ("a{\"b\"} 5", "1: metric: the series has two names"),
        ("9a 5", "1: metric: no name before `9a 5`"),
        ("# TYPE a nonsense", "1: TYPE: `nonsense` is not a type"),
        ("# HELP 9a b", "1: metric: `9a b` is not a string"),
        ("# HELP", "1: HELP: the name of the metric is missing"),
        ("a 1 99999999999999999999", "1: timestamp: "),
    ] {
        let error = text(body).unwrap_err();
        assert!(error.starts_with(expected), "{body:?}: {error}");
    }
    for (body, expected) in [
        ("", "0: # EOF: missing at the end"),
        ("# EOF\na 1\n", "2: # EOF: `a 1` follows it"),
        ("a 1\n\n# EOF\n", "2: line: empty"),
        ("a  1\n# EOF\n", "1: value: missing"),
        ("a 1 \n# EOF\n", "1: sample: `` follows"),
        ("a 1 nan\n# EOF\n", "1: timestamp: `nan` is not a time"),
        ("a 1 1e19\n# EOF\n", "1: timestamp: `1e19` is outside"),
        ("# comment\n# EOF\n", "1: comment: `comment` is not"),
        ("#HELP a b\n# EOF\n", "1: comment: no space"),
        ("a 1\n# EO", "2: "),
        ("a 1 # {b=\"c\"\n# EOF\n", "1: "),
        ("a 1 # 5\n# EOF\n", "1: exemplar: `5` does not start"),
        ("a 1 # {a=\"b\"}\n# EOF\n", "1: exemplar: the value is missing"),
        ("a 1 # {a=\"b\"} 1 2 3\n# EOF\n", "1: sample: ` 3` follows"),
    ] {
        let error = open(body).unwrap_err();
        assert!(error.starts_with(expected), "{body:?}: {error}");
    }
    let error = read(b"a 1\nb{c=\"\xff\"} 1\n", Format::Text).unwrap_err();
    assert_eq!(error, "2: text: byte 9 is not UTF-8");
}

fn fixtures() -> Vec<(PathBuf, Format)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/scrape");
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
    assert!(files.len() >= 4);
    files
}

#[test]
fn responses_of_real_exporters_are_read_completely() {
    for (path, format) in fixtures() {
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
        Err(error) => {
            let lines = body.iter().filter(|byte| **byte == b'\n').count() + 1;
            let line: usize = error.split(':').next().unwrap().parse().unwrap();
            prop_assert!(line <= lines, "{error}");
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

    /// Lines of real responses, mutated.
    #[test]
    fn damaged_responses_are_refused_or_read(
        which in any::<prop::sample::Index>(),
        from in any::<prop::sample::Index>(),
        damage in vec(mutation(), 1..6),
    ) {
        let files = fixtures();
        let (path, format) = which.get(&files);
        let whole = fs::read(path).unwrap();
        let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let begin = from.index(lines.len());
        let mut body = lines[begin..lines.len().min(begin + 12)].concat();
        let seeds = [body.clone()];
        damage.iter().for_each(|mutation| apply(&mut body, mutation, &seeds));
        check_any(&body, *format)?;
    }
}
