//! Makes a small recording with every shape and type, and seeded random recordings.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a failed test stops where it failed")]

use std::path::Path;

use loadprint_recording::journal::End;
use loadprint_recording::journal::Ended;
use loadprint_recording::journal::Header;
use loadprint_recording::journal::ProbeHeader;
use loadprint_recording::journal::ProbeStatus;
use loadprint_recording::journal::Stamp;
use loadprint_recording::journal::Status;
use loadprint_recording::journal::Writer;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Schema;
use loadprint_recording::schema::Shape;
use loadprint_recording::schema::Text;
use loadprint_recording::schema::Type;
use loadprint_recording::schema::Unit;
use loadprint_recording::schema::text;

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

static DISK: &[Column] = &[
    Column::counter("reads", Unit::One, "reads completed", "/proc/diskstats field 4"),
    Column::counter("cutime", Unit::Tick, "signed", "/proc/PID/stat").stored(Type::Int64),
    Column::gauge("avg10", Unit::One, "average", "/proc/pressure").stored(Type::Double),
    Column::info("model", "model name", "/sys"),
];
static DISK_ENTITY: &[Text] = &[text("device"), text("queue")];
static KNOWN: &[Column] = &[Column::gauge("Dirty", Unit::Kibibyte, "waiting", "/proc/meminfo")];
static LATENCY_ENTITY: &[Text] = &[text("device")];

/// A table, an open key set with texts, and a histogram.
pub fn schemas() -> Vec<Schema> {
    let mut buckets =
        Column::counter("buckets", Unit::Microsecond, "time per request", "test").stored(Type::Buckets);
    buckets.bounds = vec![Some(0.0), Some(1.0), Some(2.0), None].into();
    let sum = Column::counter("sum", Unit::Microsecond, "of all", "test");
    let mut histogram = Schema::histogram(LATENCY_ENTITY, &[]);
    histogram.columns = vec![buckets, sum].into();
    vec![
        Schema::table(DISK_ENTITY, DISK),
        Schema::metrics_or_text(KNOWN),
        histogram,
    ]
}

pub fn header(schemas: &[Schema]) -> Header {
    let probe = |(name, schema): (&str, &Schema)| ProbeHeader {
        name: name.to_owned(),
        status: ProbeStatus::Running,
        reason: None,
        schema: schema.clone(),
    };
    Header {
        format_version: 1,
        role: "server".to_owned(),
        interval_ns: 1_000_000_000,
        boot_id: "boot".to_owned(),
        writer: "test".to_owned(),
        started_monotonic_ns: 5,
        started_realtime_ns: 1_795_226_976_562_094_043,
        probes: ["disk", "memory", "latency"]
            .into_iter()
            .zip(schemas)
            .map(probe)
            .collect(),
    }
}

pub fn stamp(random: &mut Random, tick: u32) -> Stamp {
    let intended_ns = i64::from(tick) * 1_000_000_000;
    let start_ns = intended_ns + random.below(1_000_000) as i64;
    Stamp {
        tick,
        intended_ns,
        start_ns,
        realtime_ns: 1_795_226_976_562_094_043 + start_ns,
        missed: 0,
    }
}

/// Appends rows whose entities and order vary, with cells of every type, extreme values and missing
/// ones.
pub fn random_rows(random: &mut Random, schema: &Schema, rows: &mut Rows) {
    for _ in 0..random.below(6) {
        let name = ["vda", "nvme0n1", "", "dm-0", "\u{e9}"][random.below(5) as usize];
        let parts: Vec<&[u8]> = schema.entity.iter().map(|_| name.as_bytes()).collect();
        rows.row(&parts);
        for column in schema.columns.iter() {
            if random.below(4) == 0 {
                rows.null();
                continue;
            }
            match column.storage {
                Type::Uint64 | Type::Int64 | Type::Double => {
                    let extreme = [0, 1, u64::MAX, 1 << 63, random.next()][random.below(5) as usize];
                    rows.uint(extreme);
                }
                Type::Text => rows.text(["", "a", "a longer text"][random.below(3) as usize].as_bytes()),
                Type::Buckets => {
                    let list: Vec<u64> = (0..random.below(5))
                        .map(|_| random.next() >> random.below(64))
                        .collect();
                    rows.list(&list);
                }
            }
        }
    }
}

/// Writes a recording of `ticks` ticks; returns the file's length after the header, each tick, and
/// the end frame.
pub fn write_journal(path: &Path, ticks: u32) -> Vec<u64> {
    let length = || path.metadata().unwrap().len();
    let mut writer = Writer::create(path, &header(&schemas())).unwrap();
    let mut random = Random::new(1);
    let mut ends = vec![length()];
    for tick in 0..ticks {
        let stamp = stamp(&mut random, tick);
        writer.begin(stamp);
        let value = u64::from(tick);
        let mut rows = Rows::default();
        for device in ["vda", "dm-0"] {
            rows.row(&[device.as_bytes(), b"0"]);
            rows.uint(1000 + 3 * value);
            rows.int(-5 - i64::from(tick));
            if tick % 3 == 1 {
                rows.null()
            } else {
                rows.double(0.25)
            }
            rows.text(device.as_bytes());
        }
        let at = |place: i64| (stamp.start_ns + 10 * place, stamp.start_ns + 10 * place + 10);
        writer.probe(0, Status::Ok, at(0), "", &rows);
        rows.clear();
        rows.row(&[b"Dirty"]);
        rows.int(77);
        rows.null();
        rows.row(&[b"version"]);
        rows.null();
        rows.text(b"9.7.4");
        writer.probe(1, Status::Ok, at(1), "", &rows);
        rows.clear();
        rows.row(&[b"vda"]);
        rows.list(&[value, 2 * value, 0]);
        rows.uint(5 * value);
        let status = if tick == 2 { Status::Failed } else { Status::Ok };
        writer.probe(2, status, at(2), "no such device", &rows);
        writer.commit().unwrap();
        ends.push(length());
    }
    let end = End {
        ended: Ended::Duration,
        last_tick: ticks.checked_sub(1),
        missed: 0,
    };
    writer.end(&end).unwrap();
    ends.push(length());
    ends
}

/// The entity and the text of each row as it is in the table.
pub fn row_texts(rows: &Rows, schema: &Schema, tick: u32) -> Vec<(Vec<String>, String)> {
    let width = schema.columns.len();
    let quoted = |text| format!("{:?}", String::from_utf8_lossy(text));
    let row = |row| {
        let entity: Vec<_> = rows.entity(row).map(quoted).collect();
        let mut cells = entity.clone();
        let place = if schema.shape == Shape::Metrics {
            cells.len()
        } else {
            0
        };
        cells.insert(place, tick.to_string());
        cells.extend((0..width).map(|column| match rows.value(row, column, width) {
            Value::Null => "null".to_owned(),
            Value::Bits(bits) => bits.to_string(),
            Value::Text(text) => quoted(text),
            Value::List(list) => format!("{list:?}"),
        }));
        (entity, cells.join(" "))
    };
    (0..rows.len()).map(row).collect()
}
