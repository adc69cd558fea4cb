use super::*;

/// Samples and descriptions as lines of text.
fn parsed(body: &str, format: Format) -> Result<Vec<String>, String> {
    let mut lines = vec![];
    let count = parse(body.as_bytes(), format, &mut |item| {
        lines.push(match item {
            Item::Sample {
                series,
                value,
                timestamp_ns,
                exemplar,
            } => format!(
                "{series} {value}{}{}",
                timestamp_ns.map_or(String::new(), |at| format!(" @{at}")),
                exemplar.map_or(String::new(), |exemplar| format!(" # {exemplar}"))
            ),
            Item::Description { keyword, name, text } => format!("# {keyword} {name} {text}"),
        });
    })
    .map_err(|error| format!("{}: {}: {}", error.line, error.item, error.message))?;
    let samples = lines.iter().filter(|line| !line.starts_with('#')).count();
    assert_eq!(count, samples as u64);
    Ok(lines)
}

fn text(body: &str) -> Result<Vec<String>, String> {
    parsed(body, Format::Text)
}

fn open(body: &str) -> Result<Vec<String>, String> {
    parsed(body, Format::OpenMetrics)
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
            r#"http_requests_total{code="200",method="post"} 1027 @1395066363000000000"#,
            r#"http_requests_total{code="400",method="post"} 3 @1395066363000000000"#,
            r#"msdos_file_access_time_seconds{error="Cannot find file:\n\"FILE.TXT\"",path="C:\\DIR\\FILE.TXT"} 1458255915"#,
            "metric_without_timestamp_and_labels 12.47",
            r#"something_weird{problem="division by zero"} inf @-3982045000000"#,
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
            r#"foo_seconds_bucket{le="+Inf"} 17 @1520879607789000000 # {trace_id="KOO5S4vxi0o",x="y # z"} 9.8 1520879607.7891"#,
            "foo_seconds_created 1520430000.123",
            "bar 1 @1500000000000000000",
            "bar NaN @-1",
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
        "a 1 @5000000",
        "# TYPE a gauge",
        "# TYPE a counter",
        "# HELP c ",
    ];
    assert_eq!(text(body).unwrap(), expected);
    assert_eq!(text("# UNIT a seconds\n\t\n").unwrap(), Vec::<String>::new());
    let values = text("a nan\na -iNf\na .5\na 1e-400\na -0\na 0001.e3").unwrap();
    assert_eq!(values, ["a NaN", "a -inf", "a 0.5", "a 0", "a -0", "a 1000"]);
}

/// Further malformed input is in `tests/fixtures/scrape/malformed`.
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
        ("a 1 # 5\n# EOF\n", "1: exemplar: `5` does not start"),
        ("a 1 # {a=\"b\"}\n# EOF\n", "1: exemplar: the value is missing"),
        ("a 1 # {a=\"b\"} 1 2 3\n# EOF\n", "1: sample: ` 3` follows"),
    ] {
        let error = open(body).unwrap_err();
        assert!(error.starts_with(expected), "{body:?}: {error}");
    }
    let error = parse(b"a 1\nb{c=\"\xff\"} 1\n", Format::Text, &mut |_| {}).unwrap_err();
    assert_eq!((error.line, error.message.as_str()), (2, "byte 9 is not UTF-8"));
}
