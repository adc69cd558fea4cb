//! Tests journal and tables through the public interface: every shape, torn and damaged files, and
//! random recordings.

use crate::common;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;

use crate::common::Random;
use crate::common::header;
use crate::common::random_rows;
use crate::common::schemas;
use crate::common::write_journal;
use loadprint_recording::files::Directory;
use loadprint_recording::files::RunFile;
use loadprint_recording::finish;
use loadprint_recording::journal::Decoder;
use loadprint_recording::journal::Ended;
use loadprint_recording::journal::Frame;
use loadprint_recording::journal::Reader;
use loadprint_recording::journal::Status;
use loadprint_recording::journal::Writer;
use loadprint_recording::rows::Rows;
use loadprint_recording::staging::StagingDir;
use tempfile::tempdir;

/// Status, reason and formatted rows of one probe at one tick.
type SectionText = (Status, Option<String>, Vec<String>);

/// Reads all ticks back.
fn read_back(path: &Path) -> Vec<Vec<SectionText>> {
    let mut reader = Reader::open(path).unwrap();
    let schemas: Vec<_> = reader
        .header()
        .probes
        .iter()
        .map(|probe| probe.schema.clone())
        .collect();
    let mut decoders: Vec<_> = schemas.iter().map(Decoder::new).collect();
    let mut rows = Rows::default();
    let mut ticks = vec![];
    while let Some(frame) = reader.next_frame().unwrap() {
        let Frame::Tick(mut tick) = frame else { continue };
        if tick.is_key {
            decoders.iter_mut().for_each(Decoder::reset);
        }
        let mut sections = vec![];
        while let Some(section) = tick.next_section() {
            let section = section.unwrap();
            decoders[section.probe].decode(&section, &mut rows).unwrap();
            let texts = common::row_texts(&rows, schemas[section.probe].columns.len());
            sections.push((section.status, section.reason.map(str::to_owned), texts));
        }
        ticks.push(sections);
    }
    ticks
}

#[test]
fn random_recordings_round_trip() {
    for seed in 0..40 {
        let dir = tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut random = Random::new(seed);
        let mut writer = Writer::create(&RunFile::at(&path).unwrap(), &header(&schemas())).unwrap();
        let mut expected = vec![];
        // More than two key ticks.
        for tick in 0..150 {
            let stamp = common::stamp(&mut random, tick);
            writer.begin(stamp);
            let mut sections = vec![];
            for (probe, schema) in schemas().iter().enumerate() {
                let width = schema.columns.len();
                let mut rows = Rows::default();
                let status = [
                    Status::Ok,
                    Status::Ok,
                    Status::Ok,
                    Status::Failed,
                    Status::Skipped,
                ][random.below(5) as usize];
                if status == Status::Ok {
                    random_rows(&mut random, schema, &mut rows);
                }
                let start = stamp.start_ns + random.below(1000) as i64;
                writer.probe(
                    probe,
                    status,
                    (start, start + random.below(1000) as i64),
                    "not found",
                    &rows,
                );
                let reason = (status == Status::Failed).then(|| "not found".to_owned());
                sections.push((status, reason, common::row_texts(&rows, width)));
            }
            writer.commit().unwrap();
            expected.push(sections);
        }
        drop(writer);
        assert_eq!(read_back(&path), expected, "seed {seed}");
    }
}

#[test]
fn a_journal_torn_at_any_byte_loses_only_that_tick() {
    let dir = tempdir().unwrap();
    let whole = dir.path().join("whole");
    let ends = write_journal(&whole, 5);
    let bytes = fs::read(&whole).unwrap();
    let all = read_back(&whole);
    let path = dir.path().join("torn");
    for length in 0..=bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        // `ends` has the end of the header, of each tick, and of the end frame.
        let Some(ticks) = ends.iter().rposition(|end| *end <= length as u64) else {
            let error = Reader::open(&path).unwrap_err().to_string();
            assert!(error.starts_with(path.to_str().unwrap()), "{error}");
            continue;
        };
        let ticks = ticks.min(5);
        assert_eq!(read_back(&path), all[..ticks], "torn at byte {length}");
        let mut reader = Reader::open(&path).unwrap();
        while reader.next_frame().unwrap().is_some() {}
        let good = ends.iter().rfind(|end| **end <= length as u64).unwrap();
        assert_eq!(reader.torn_bytes(), length as u64 - good, "torn at byte {length}");
    }
}

#[test]
fn a_journal_ends_at_a_damaged_byte() {
    let dir = tempdir().unwrap();
    let whole = dir.path().join("whole");
    let ends = write_journal(&whole, 5);
    let bytes = fs::read(&whole).unwrap();
    let all = read_back(&whole);
    let path = dir.path().join("damaged");
    for place in ends[0] as usize..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let ticks = ends.iter().rposition(|end| *end <= place as u64).unwrap().min(5);
        assert_eq!(read_back(&path), all[..ticks], "damaged at byte {place}");
    }
}

#[test]
fn other_files_are_refused_in_one_line() {
    let dir = tempdir().unwrap();
    let whole = dir.path().join("whole");
    write_journal(&whole, 1);
    let mut other_version = fs::read(&whole).unwrap();
    other_version[7] = 9;
    let mut damaged = fs::read(&whole).unwrap();
    damaged[30] ^= 1;
    for (content, expected) in [
        (vec![], "empty file without a recording; remove it"),
        (b"PAR1, or anything else".to_vec(), "not a journal"),
        (b"LPJ".to_vec(), "not a journal"),
        (other_version, "another version"),
        (damaged, "header is damaged"),
    ] {
        let path = dir.path().join("journal");
        fs::write(&path, content).unwrap();
        let error = finish::journal(&Directory::open(dir.path()).unwrap())
            .unwrap_err()
            .to_string();
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
        if let Err(error) = finish::journal(&Directory::open(dir.path()).unwrap()) {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
    }
}

#[test]
fn finish_writes_tables_and_removes_the_journal() {
    let dir = tempdir().unwrap();
    let role = dir.path().join("server");
    fs::create_dir(&role).unwrap();
    write_journal(&role.join("journal"), 70);
    let finished = finish::run(dir.path()).unwrap();
    assert_eq!(
        (finished[0].ticks, finished[0].missed, finished[0].torn_bytes),
        (70, 0, 0)
    );
    assert_eq!(finished[0].ended, Ended::Duration);
    assert!(!role.join("journal").exists());
    for name in ["disk", "memory", "latency", "ticks"] {
        assert!(role.join(format!("{name}.parquet")).exists(), "{name}");
    }
    assert!(dir.path().join("manifest.json").exists());
    assert_eq!(finish::run(dir.path()).unwrap(), [], "finish is idempotent");
}

#[test]
fn finish_reports_torn_bytes() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal");
    let ends = write_journal(&path, 10);
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(ends[10] - 3)
        .unwrap();
    let finished = finish::journal(&Directory::open(dir.path()).unwrap()).unwrap();
    assert_eq!((finished.ticks, finished.ended), (9, Ended::Torn));
    assert_eq!(finished.torn_bytes, ends[10] - 3 - ends[9]);
}

#[test]
fn a_journal_in_another_directory_is_found_by_its_link() {
    let dir = tempdir().unwrap();
    let memory = dir.path().join("shm");
    let role = Directory::create(dir.path()).unwrap().make("server").unwrap();
    let staging = StagingDir::new(&role, &memory).unwrap();
    write_journal(&staging.file("journal").unwrap().path(), 3);
    let link = dir.path().join("server/journal");
    assert!(link.is_symlink());
    assert_eq!(finish::run(dir.path()).unwrap().len(), 1);
    assert!(link.symlink_metadata().is_err());
    assert_eq!(fs::read_dir(&memory).unwrap().count(), 0);
    assert!(dir.path().join("server/disk.parquet").exists());

    let staging = StagingDir::new(&role, &memory).unwrap();
    staging.file("journal").unwrap();
    let error = finish::run(dir.path()).unwrap_err().to_string();
    assert!(error.contains("run finish on the host that recorded"), "{error}");
}

/// The links of a forged run directory lead to the journal of another recording, and its journal
/// names tables outside of it.
#[test]
fn finish_of_a_forged_run_does_not_read_or_write_outside_of_it() {
    let dir = tempdir().unwrap();
    let (run, other) = (dir.path().join("run"), dir.path().join("other"));
    let (role, victim) = (
        Directory::create(&run).unwrap().make("server").unwrap(),
        Directory::create(&other).unwrap().make("server").unwrap(),
    );
    let journal = StagingDir::new(&victim, &dir.path().join("shm"))
        .unwrap()
        .file("journal")
        .unwrap()
        .path();
    write_journal(&journal, 3);
    write_journal(&other.join("loadprint-1-server.journal"), 3);
    let link = run.join("server/journal");
    for target in [
        journal.clone(),
        other.join("loadprint-1-server.journal"),
        PathBuf::from("../../other/journal"),
    ] {
        symlink(&target, &link).unwrap();
        let error = finish::run(&run).unwrap_err().to_string();
        assert!(
            error.contains("which no recorder created for this directory"),
            "{error}"
        );
        fs::remove_file(&link).unwrap();
    }
    assert!(journal.exists() && other.join("loadprint-1-server.journal").exists());

    let mut forged = header(&schemas());
    forged.probes[0].name = "../../other/planted".to_owned();
    Writer::create(&role.file("journal"), &forged).unwrap();
    let error = finish::run(&run).unwrap_err().to_string();
    assert!(error.contains("is not a file name"), "{error}");
    assert!(!other.join("planted.parquet").exists());

    fs::remove_file(&link).unwrap();
    fs::remove_dir(run.join("server")).unwrap();
    symlink(&other, run.join("server")).unwrap();
    assert_eq!(finish::run(&run).unwrap(), []);
    assert!(
        !fs::read_to_string(run.join("manifest.json"))
            .unwrap()
            .contains("server")
    );
}
