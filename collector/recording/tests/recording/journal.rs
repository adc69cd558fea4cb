//! Tests journal and tables through the public interface: every shape, torn and damaged files, and
//! random recordings.

use crate::common;
use std::fs;
use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::Random;
use crate::common::header;
use crate::common::random_rows;
use crate::common::schemas;
use crate::common::write_journal;
use loadprint_recording::finish;
use loadprint_recording::journal::Ended;
use loadprint_recording::journal::Frame;
use loadprint_recording::journal::Reader;
use loadprint_recording::journal::Status;
use loadprint_recording::journal::Writer;
use loadprint_recording::rows::Rows;
use loadprint_recording::staging;
use parquet::file::reader::SerializedFileReader;
use parquet::record::Field;
use tempfile::tempdir;

/// The ticks of a journal as text.
fn ticks(path: &Path) -> Vec<String> {
    let mut reader = Reader::open(path).unwrap();
    let mut ticks = vec![];
    while let Some(frame) = reader.next_frame().unwrap() {
        if let Frame::Tick(tick) = frame {
            ticks.push(format!("{tick:?}"));
        }
    }
    ticks
}

/// The rows of a table, floating-point numbers as their bits.
fn table(path: &Path) -> Vec<String> {
    let cell = |field: &Field| match field {
        Field::Long(value) => value.cast_unsigned().to_string(),
        Field::Double(value) => value.to_bits().to_string(),
        other => other.to_string(),
    };
    let rows = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    rows.into_iter()
        .map(|row| {
            let cells: Vec<_> = row
                .unwrap()
                .get_column_iter()
                .map(|(_, field)| cell(field))
                .collect();
            cells.join(" ")
        })
        .collect()
}

#[test]
fn random_recordings_round_trip() {
    for seed in 0..40 {
        let dir = tempdir().unwrap();
        let mut random = Random::new(seed);
        let header = header(&schemas());
        let mut writer = Writer::create(&dir.path().join("journal"), &header).unwrap();
        let (mut reads, mut rows_of) = ([const { vec![] }; 3], [const { vec![] }; 3]);
        // More than two key ticks.
        for tick in 0..150 {
            let stamp = common::stamp(&mut random, tick);
            writer.begin(stamp);
            for (probe, schema) in schemas().iter().enumerate() {
                let mut rows = Rows::default();
                let status = match random.below(5) {
                    0 => Status::Failed,
                    1 => Status::Skipped,
                    _ => Status::Ok,
                };
                if status == Status::Ok {
                    random_rows(&mut random, schema, &mut rows);
                }
                let start = stamp.start_ns + random.below(1000) as i64;
                let end = start + random.below(1000) as i64;
                // A read can have a reason, too: what of it was not read. One that is skipped: what it waits for.
                let reason = match status {
                    Status::Ok | Status::Skipped if random.below(2) == 0 => "",
                    _ => "not found",
                };
                writer.probe(probe, status, (start, end), reason, &rows);
                let is_written = !reason.is_empty();
                let (name, reason) = (&header.probes[probe].name, format!("{reason:?}"));
                reads[probe].push(format!(
                    "{tick} {name:?} {} {start} {end} {} {:?} 0 {}",
                    stamp.intended_ns,
                    stamp.realtime_ns,
                    status.word(),
                    if is_written { &reason } else { "null" },
                ));
                rows_of[probe].extend(common::row_texts(&rows, schema, tick));
            }
            writer.commit().unwrap();
        }
        drop(writer);
        finish::journal(dir.path()).unwrap();
        assert_eq!(
            table(&dir.path().join("ticks.parquet")),
            reads.concat(),
            "seed {seed}"
        );
        for (probe, mut expected) in header.probes.iter().zip(rows_of) {
            expected.sort_by(|(entity, _), (other, _)| entity.cmp(other));
            let expected: Vec<_> = expected.into_iter().map(|(_, text)| text).collect();
            let path = dir.path().join(format!("{}.parquet", probe.name));
            assert_eq!(table(&path), expected, "seed {seed}");
        }
    }
}

#[test]
fn a_journal_ends_before_its_first_torn_or_damaged_tick() {
    let dir = tempdir().unwrap();
    let whole = dir.path().join("whole");
    // The ends of the header, of each tick, and of the end frame.
    let ends = write_journal(&whole, 5);
    let bytes = fs::read(&whole).unwrap();
    let all = ticks(&whole);
    let path = dir.path().join("damaged");
    for place in 0..bytes.len() {
        let whole_frames = ends.iter().rposition(|end| *end <= place as u64);
        fs::write(&path, &bytes[..place]).unwrap();
        let Some(count) = whole_frames.map(|frames| frames.min(5)) else {
            let error = Reader::open(&path).unwrap_err().to_string();
            assert!(error.starts_with(path.to_str().unwrap()), "{error}");
            continue;
        };
        assert_eq!(ticks(&path), all[..count], "torn at byte {place}");
        let mut reader = Reader::open(&path).unwrap();
        while reader.next_frame().unwrap().is_some() {}
        let torn = place as u64 - ends[count];
        assert_eq!(reader.torn_bytes(), torn, "torn at byte {place}");

        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(ticks(&path), all[..count], "damaged at byte {place}");
    }
}

#[test]
fn other_files_are_refused_in_one_line() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    write_journal(&path, 1);
    let whole = fs::read(&path).unwrap();
    let changed = |place: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[place] ^= byte;
        bytes
    };
    let mut forged = header(&schemas());
    forged.probes[0].name = "../planted".to_owned();
    Writer::create(&path, &forged).unwrap();
    for (content, expected) in [
        (vec![], "empty file without a recording; remove it"),
        (b"PAR1, or anything else".to_vec(), "not a journal"),
        (b"LPJ".to_vec(), "not a journal"),
        (changed(7, 8), "another version"),
        (changed(30, 1), "header is damaged"),
        (fs::read(&path).unwrap(), "`../planted` is not a file name"),
    ] {
        fs::write(&path, content).unwrap();
        let error = finish::journal(dir.path()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
        assert!(path.exists(), "a file that cannot be read must stay");
    }
}

/// Frames with a correct checksum and forged content are refused without a panic.
#[test]
fn forged_frames_are_errors() {
    let dir = tempdir().unwrap();
    let whole = dir.path().join("whole");
    let ends = write_journal(&whole, 3);
    let bytes = fs::read(&whole).unwrap();
    let mut random = Random::new(7);
    let path = dir.path().join("journal");
    for _ in 0..400 {
        let mut forged = bytes.clone();
        let tick = random.below(3) as usize;
        let (start, end) = (ends[tick] as usize, ends[tick + 1] as usize);
        for _ in 0..=random.below(3) {
            let place = start + 8 + random.below((end - start - 8) as u64) as usize;
            forged[place] = random.below(256) as u8;
        }
        let sum = crc32c::crc32c(&forged[start + 8..end]);
        forged[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
        fs::write(&path, &forged).unwrap();
        if let Err(error) = finish::journal(dir.path()) {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
    }
}

#[test]
fn finish_writes_tables_of_a_torn_journal_and_removes_it() {
    let dir = tempdir().unwrap();
    let role = dir.path().join("server");
    fs::create_dir(&role).unwrap();
    let path = role.join("journal");
    let ends = write_journal(&path, 70);
    let journal = fs::read(&path).unwrap();
    let finished = finish::run(dir.path()).unwrap();
    let finished = &finished[0];
    assert_eq!((finished.ticks, finished.missed, finished.torn_bytes), (70, 0, 0));
    assert_eq!(finished.ended, Ended::Duration);
    assert!(!path.exists());
    for name in ["disk", "memory", "latency", "ticks"] {
        assert!(role.join(format!("{name}.parquet")).exists(), "{name}");
    }
    assert!(dir.path().join("manifest.json").exists());
    assert_eq!(finish::run(dir.path()).unwrap(), [], "finish is idempotent");

    fs::write(&path, &journal[..ends[10] as usize - 3]).unwrap();
    let finished = finish::journal(&role).unwrap();
    assert_eq!((finished.ticks, finished.ended), (9, Ended::Torn));
    assert_eq!(finished.torn_bytes, ends[10] - 3 - ends[9]);
}

#[test]
fn a_journal_in_another_directory_is_found_by_its_link() {
    let dir = tempdir().unwrap();
    let (memory, role) = (dir.path().join("shm"), dir.path().join("run/server"));
    fs::create_dir_all(&role).unwrap();
    let (link, run) = (role.join("journal"), role.parent().unwrap());
    let staged = || staging::create(&role, &memory, "journal").unwrap();
    write_journal(&staged(), 3);
    assert!(link.is_symlink());
    // A copied or forged link does not give access to the journal of another recording.
    let copy = dir.path().join("copy/server");
    fs::create_dir_all(&copy).unwrap();
    symlink(fs::read_link(&link).unwrap(), copy.join("journal")).unwrap();
    let error = finish::run(copy.parent().unwrap()).unwrap_err().to_string();
    assert!(
        error.contains("which no recorder created for this directory"),
        "{error}"
    );

    assert_eq!(finish::run(run).unwrap().len(), 1);
    assert!(link.symlink_metadata().is_err());
    assert_eq!(fs::read_dir(&memory).unwrap().count(), 0);
    assert!(role.join("disk.parquet").exists());

    staged();
    let error = finish::run(run).unwrap_err().to_string();
    assert!(error.contains("run finish on the host that recorded"), "{error}");
}
