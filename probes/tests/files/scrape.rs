//! Tests faulty endpoints: only the rows of the faulty endpoint are missing.

use std::fs;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use loadprint_probes::Host;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_probes::ProbeError;
use loadprint_probes::scrape::ENTRY;
use loadprint_probes::scrape::target::Credentials;
use loadprint_probes::scrape::target::Scrapes;
use loadprint_probes::scrape::target::Target;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;

/// Timeout of every step.
const LONG: Duration = Duration::from_secs(600);
/// The head of a response whose body ends with the connection.
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n";
const PLAIN: &str = "Content-Type: text/plain; version=0.0.4\r\n";
const BODY: &str = "# TYPE a counter\na{b=\"c\"} 1\na{b=\"d\"} 2.5\n";

/// Serves each connection with `answer`, which gets the head of the request; the listener lives as
/// long as the test.
fn serve(answer: impl Fn(TcpStream, String) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = head(&mut stream);
            answer(stream, head);
        }
    });
    address
}

fn head(stream: &mut TcpStream) -> String {
    let mut head = vec![];
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn reply(mut stream: TcpStream, status: &str, headers: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // The client may have closed the connection.
    drop(
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body)),
    );
}

fn ok(stream: TcpStream, body: &str) {
    reply(stream, "200 OK", PLAIN, body.as_bytes());
}

/// An answer with this head and body.
fn replies(status: &str, headers: &str, body: &[u8]) -> impl Fn(TcpStream, String) + Send + 'static {
    let (status, headers, body) = (status.to_owned(), headers.to_owned(), body.to_vec());
    move |stream, _| reply(stream, &status, &headers, &body)
}

fn packed(text: &str, level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], level);
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

const GZIP: &str = "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n";

fn row<'a>(rows: &'a [Row], metric: &str) -> &'a Row {
    rows.iter().find(|row| row.metric == metric).unwrap()
}

fn probe_of(targets: &[(&str, SocketAddr)], change: impl FnOnce(&mut Scrapes)) -> Box<dyn Probe> {
    let target = |(name, address): &(&str, SocketAddr)| {
        format!("{name}=http://{address}/metrics")
            .parse::<Target>()
            .unwrap()
    };
    let mut scrapes = Scrapes {
        targets: targets.iter().map(target).collect(),
        timeout: LONG,
        ..Scrapes::default()
    };
    change(&mut scrapes);
    let options = Options {
        scrapes,
        ..Options::default()
    };
    ENTRY.open(&Host::default(), &options, &Rc::default()).unwrap()
}

#[derive(Debug, PartialEq)]
struct Row {
    endpoint: String,
    metric: String,
    value: Option<f64>,
    timestamp_ns: Option<i64>,
    text: Option<String>,
}

fn owned(text: &[u8]) -> String {
    String::from_utf8(text.to_vec()).unwrap()
}

fn rows_of(rows: &Rows) -> Vec<Row> {
    assert!(rows.has_width(3));
    let bits = |row, column| match rows.value(row, column, 3) {
        Value::Bits(bits) => Some(bits),
        _ => None,
    };
    let row = |row| {
        let mut entity = rows.entity(row).map(owned);
        Row {
            endpoint: entity.next().unwrap(),
            metric: entity.next().unwrap(),
            value: bits(row, 0).map(f64::from_bits),
            timestamp_ns: bits(row, 1).map(u64::cast_signed),
            text: match rows.value(row, 2, 3) {
                Value::Text(text) => Some(owned(text)),
                _ => None,
            },
        }
    };
    (0..rows.len()).map(row).collect()
}

/// One tick, which waits for the response.
fn tick(probe: &mut dyn Probe) -> Vec<Row> {
    let mut rows = Rows::default();
    probe.begin();
    probe.wait(LONG);
    probe.sample(&mut rows).unwrap();
    rows_of(&rows)
}

fn up(rows: &[Row]) -> (f64, String) {
    let row = row(rows, "up");
    (row.value.unwrap(), row.text.clone().unwrap_or_default())
}

fn samples(rows: &[Row]) -> Vec<(&str, f64)> {
    let own = |row: &&Row| row.metric != "up" && !row.metric.starts_with("scrape_");
    rows.iter()
        .filter(own)
        .filter_map(|row| Some((row.metric.as_str(), row.value?)))
        .collect()
}

/// The reason of `up` 0 for an endpoint with this answer; it must have no samples.
fn refused(answer: impl Fn(TcpStream, String) + Send + 'static, change: impl FnOnce(&mut Scrapes)) -> String {
    let address = serve(answer);
    let rows = tick(probe_of(&[("bad", address)], change).as_mut());
    assert_eq!(
        samples(&rows),
        [],
        "a response is recorded completely or not at all"
    );
    assert_eq!(row(&rows, "scrape_samples_scraped").value, Some(0.0));
    let (up, why) = up(&rows);
    assert_eq!(up, 0.0);
    why
}

fn nothing(_: &mut Scrapes) {}

fn shortly(scrapes: &mut Scrapes) {
    scrapes.timeout = Duration::from_millis(300);
}

#[test]
fn samples_are_recorded_as_exposed() {
    let (heads, received) = channel();
    let address = serve(move |stream, head| {
        heads.send(head).unwrap();
        ok(stream, BODY);
    });
    let mut probe = probe_of(&[("a.b-c", address)], nothing);
    let rows = tick(probe.as_mut());
    assert_eq!(up(&rows), (1.0, String::new()));
    assert!(rows.iter().all(|row| row.endpoint == "a.b-c"));
    assert_eq!(samples(&rows), [("a{b=\"c\"}", 1.0), ("a{b=\"d\"}", 2.5)]);
    assert_eq!(row(&rows, "# TYPE a").text.as_deref(), Some("counter"));
    let url = format!("http://{address}/metrics");
    assert_eq!(row(&rows, "# URL").text, Some(url));
    assert_eq!(row(&rows, "scrape_samples_scraped").value, Some(2.0));
    assert!(row(&rows, "scrape_duration_seconds").value.unwrap() > 0.0);
    let head: String = received.recv().unwrap();
    let head = head.to_ascii_lowercase();
    for expected in [
        "get /metrics http/1.1\r\n",
        "accept: application/openmetrics-text;version=1.0.0",
        "x-prometheus-scrape-timeout-seconds: 600\r\n",
        "accept-encoding: gzip\r\n",
        "user-agent: loadprint-collect/",
    ] {
        assert!(head.contains(expected), "{expected} in {head}");
    }
    // An unchanged description has a row only once.
    let rows = tick(probe.as_mut());
    assert!(rows.iter().all(|row| !row.metric.starts_with('#')), "{rows:?}");
    assert_eq!(samples(&rows).len(), 2);
}

#[test]
fn endpoint_that_hangs_does_not_delay_others() {
    let (hold, held) = channel();
    let hangs = serve(move |stream, _| hold.send(stream).unwrap());
    let well = serve(|stream, _| ok(stream, BODY));
    let mut probe = probe_of(&[("hangs", hangs), ("well", well)], nothing);
    let mut rows = Rows::default();
    for _ in 0..3 {
        rows.clear();
        probe.begin();
        // The first endpoint has its request and does not answer; the test waits for the second.
        while probe.sample(&mut rows).is_err() {
            thread::yield_now();
        }
        let rows = rows_of(&rows);
        assert!(rows.iter().all(|row| row.endpoint == "well"));
        assert_eq!(up(&rows).0, 1.0);
    }
    // When it answers, its rows have the time at which the scrape started.
    let stream: TcpStream = held.recv().unwrap();
    ok(stream, BODY);
    probe.wait(LONG);
    rows.clear();
    probe.sample(&mut rows).unwrap();
    let late = rows_of(&rows);
    assert!(late.iter().all(|row| row.endpoint == "hangs"));
    assert_eq!(samples(&late).len(), 2);

    let mut alone = probe_of(&[("hangs", hangs)], shortly);
    assert_eq!(
        up(&tick(alone.as_mut())),
        (0.0, "no complete response within 0.3 s".to_owned())
    );
    let mut waits = probe_of(&[("hangs", hangs)], nothing);
    waits.begin();
    rows.clear();
    assert!(matches!(waits.sample(&mut rows), Err(ProbeError::Pending(_))));
}

#[test]
fn slow_response_ends_at_the_timeout() {
    let drip = |mut stream: TcpStream, _| {
        thread::spawn(move || {
            stream.write_all(HEAD).unwrap();
            // Ends when the client closes the connection.
            while stream.write_all(b"a 1\n").is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });
    };
    assert_eq!(refused(drip, shortly), "no complete response within 0.3 s");
}

#[test]
fn response_over_the_limit_is_refused() {
    let long = |mut stream: TcpStream, _: String| {
        let line = "a 1\n".repeat(1 << 18);
        // 100 MiB without a limit.
        let all = stream
            .write_all(HEAD)
            .and_then(|()| (0..100).try_for_each(|_| stream.write_all(line.as_bytes())));
        let error = all.unwrap_err().kind();
        assert!(
            matches!(error, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
            "{error}"
        );
    };
    let reason = "the response has more than 16777216 bytes; raise the limit with --scrape-limit";
    assert_eq!(refused(long, nothing), reason);

    // Small when compressed, large in memory.
    let bomb = packed(&"a 1\n".repeat(25 << 20), Compression::best());
    assert!(bomb.len() < 1 << 20);
    let bomb = replies("200 OK", GZIP, &bomb);
    assert_eq!(refused(bomb, nothing), reason);
    let exact = |scrapes: &mut Scrapes| scrapes.limit = BODY.len() as u64;
    let address = serve(|stream, _| ok(stream, BODY));
    assert_eq!(up(&tick(probe_of(&[("fits", address)], exact).as_mut())).0, 1.0);
    let less = |scrapes: &mut Scrapes| scrapes.limit = BODY.len() as u64 - 1;
    assert!(refused(|stream, _| ok(stream, BODY), less).contains("more than"));
}

#[test]
fn compressed_responses_are_decompressed() {
    let address = serve(replies("200 OK", GZIP, &packed(BODY, Compression::fast())));
    let rows = tick(probe_of(&[("gzip", address)], nothing).as_mut());
    assert_eq!(samples(&rows).len(), 2);
}

#[test]
fn malformed_responses_are_refused_with_a_reason() {
    for status in ["404 Not Found", "500 Internal Server Error"] {
        let answer = replies(status, PLAIN, BODY.as_bytes());
        let expected = format!("the server returned HTTP status {status}");
        assert_eq!(refused(answer, nothing), expected);
    }
    let kind = |kind: &str, body: &str| {
        let headers = format!("Content-Type: {kind}\r\n");
        refused(replies("200 OK", &headers, body.as_bytes()), nothing)
    };
    assert!(kind("text/html; charset=utf-8", BODY).contains("content type \"text/html\""));
    assert!(kind("application/json", BODY).contains("/metrics"));
    assert!(kind("application/openmetrics-text; version=1.0.0", "a 1\n").starts_with("line 1: # EOF"));
    assert_eq!(
        kind("text/plain", "a 1\nb\n"),
        "line 2: metric: no space before ``"
    );

    let garbage = refused(
        |mut stream, _| drop(stream.write_all(&[0x16, 3, 1, 0, 0xff, b'\n', b'\n'])),
        nothing,
    );
    assert!(!garbage.is_empty());
    let early = refused(
        |mut stream, _| {
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\na 1\n";
            stream.write_all(head).unwrap();
        },
        nothing,
    );
    assert!(!early.is_empty(), "a truncated body is refused");
    assert!(!refused(|stream, _| drop(stream), nothing).is_empty());
}

#[test]
fn redirects_are_followed_within_the_origin_of_the_endpoint() {
    let (heads, received): (_, Receiver<String>) = channel();
    let log_in = |scrapes: &mut Scrapes| {
        let path = tempfile::NamedTempFile::new().unwrap();
        fs::write(path.path(), "bearer hush\n").unwrap();
        scrapes.targets[0].credentials = Some(Credentials::read(path.path()).unwrap());
    };
    let moved = serve(move |stream, head| {
        if head.starts_with("GET /metrics ") {
            reply(stream, "302 Found", "Location: /other\r\n", b"");
        } else {
            heads.send(head).unwrap();
            ok(stream, BODY);
        }
    });
    let rows = tick(probe_of(&[("moved", moved)], log_in).as_mut());
    assert_eq!(samples(&rows).len(), 2);
    let head = received.recv().unwrap().to_ascii_lowercase();
    assert!(head.starts_with("get /other "), "{head}");
    assert!(head.contains("authorization: bearer hush"), "{head}");

    let round = replies("302 Found", "Location: /metrics\r\n", b"");
    assert!(refused(round, nothing).contains("redirect"));
}

#[test]
fn redirects_to_another_origin_are_refused_unread() {
    let (heads, received): (_, Receiver<String>) = channel();
    let there = serve(move |stream, head| {
        heads.send(head).unwrap();
        ok(stream, BODY);
    });
    let port = there.port();
    for place in [
        format!("http://127.0.0.1:{port}/latest/meta-data"),
        format!("//127.0.0.1:{port}/"),
        format!("HTTP://LOCALHOST:{port}/"),
        "https://127.0.0.1/".to_owned(),
        "file:///etc/shadow".to_owned(),
        format!("http://127.0.0.1:{port}/{}", "x".repeat(5000)),
    ] {
        let answer = replies("302 Found", &format!("Location: {place}\r\n"), b"");
        let reason = refused(answer, nothing);
        assert!(reason.contains("redirects to another origin"), "{reason}");
        assert!(reason.len() < 400, "{reason}");
    }
    assert!(received.try_recv().is_err(), "the other origin got a request");
}

#[test]
fn endpoint_is_down_until_it_returns() {
    let once = |listener: &TcpListener, body: &str, probe: &mut dyn Probe| {
        probe.begin();
        let (mut stream, _) = listener.accept().unwrap();
        head(&mut stream);
        ok(stream, body);
        probe.wait(LONG);
        let mut rows = Rows::default();
        probe.sample(&mut rows).unwrap();
        rows_of(&rows)
    };
    // A separate address: on the shared one another test could get the port while the endpoint is
    // down.
    let listener = TcpListener::bind("127.0.0.77:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut probe = probe_of(&[("node", address)], nothing);
    assert_eq!(samples(&once(&listener, BODY, probe.as_mut())).len(), 2);
    drop(listener);
    let rows = tick(probe.as_mut());
    assert_eq!((up(&rows).0, samples(&rows).len()), (0.0, 0));
    assert!(up(&rows).1.contains("refused"), "{}", up(&rows).1);
    // It returns with other series, one of them with another type.
    let listener = TcpListener::bind(address).unwrap();
    let rows = once(
        &listener,
        "# TYPE a gauge\na{b=\"d\"} 3\nnew 4 5\n",
        probe.as_mut(),
    );
    assert_eq!(samples(&rows), [("a{b=\"d\"}", 3.0), ("new", 4.0)]);
    let described: Vec<_> = rows.iter().filter(|row| row.metric.starts_with('#')).collect();
    assert_eq!(described.len(), 1);
    assert_eq!(described[0].text.as_deref(), Some("gauge"));
    assert_eq!(row(&rows, "new").timestamp_ns, Some(5_000_000));
}
