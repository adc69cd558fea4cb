//! Tests that a process whose files in `/proc` block their reader costs its own rows only. FIFOs in a
//! copy of `/proc` take the place of a mapping whose file system does not answer.

use std::collections::BTreeMap;
use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::common::Recorder;
use crate::common::assert_manifest;
use crate::common::collect;
use crate::common::copy;
use crate::common::json;
use crate::common::rows;
use crate::common::stderr;
use loadprint_recording::table::read_meta;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::mknodat;
use rustix::process::Signal;
use tempfile::TempDir;
use tempfile::tempdir;

/// Serves a file system whose files never finish to close, starts a process that executes a program with
/// such a file open, and prints its ID when it hangs there.
const SOURCE: &str = r#"
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <linux/fuse.h>
    #include <signal.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/mount.h>
    #include <sys/prctl.h>
    #include <sys/stat.h>
    #include <sys/uio.h>
    #include <unistd.h>

    static int device;

    static void reply(struct fuse_in_header *request, int error, void *data, size_t size) {
        struct fuse_out_header head = {sizeof head + size, error, request->unique};
        struct iovec parts[] = {{&head, sizeof head}, {data, size}};
        writev(device, parts, 2);
    }

    int main(int count, char **arguments) {
        char options[100], file[4096];
        device = open("/dev/fuse", O_RDWR);
        snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
        if (device < 0 || mount("hang", arguments[1], "fuse", 0, options))
            return 1;
        int victim = fork();
        if (victim == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(device);
            snprintf(file, sizeof file, "%s/file", arguments[1]);
            if (open(file, O_RDONLY | O_CLOEXEC) < 0)
                _exit(2);
            execlp("sleep", "sleep", "1000", NULL);
        }
        static char buffer[1 << 20];
        struct fuse_in_header *request = (void *)buffer;
        while (read(device, buffer, sizeof buffer) > 0) {
            struct fuse_attr attr = {.ino = request->nodeid, .mode = S_IFREG | 0644, .nlink = 1};
            if (request->nodeid == FUSE_ROOT_ID)
                attr.mode = S_IFDIR | 0755;
            switch (request->opcode) {
            case FUSE_INIT: {
                struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
                reply(request, 0, &out, sizeof out);
                break;
            }
            case FUSE_LOOKUP: {
                struct fuse_entry_out out = {.nodeid = 2, .attr = {.ino = 2, .mode = S_IFREG | 0644, .nlink = 1}};
                reply(request, 0, &out, sizeof out);
                break;
            }
            case FUSE_GETATTR: {
                struct fuse_attr_out out = {.attr = attr};
                reply(request, 0, &out, sizeof out);
                break;
            }
            case FUSE_OPEN: {
                struct fuse_open_out out = {.fh = 1};
                reply(request, 0, &out, sizeof out);
                break;
            }
            case FUSE_FLUSH:
                printf("%d\n", victim);
                fflush(stdout);
                break;
            default:
                reply(request, -38, NULL, 0);
            }
        }
    }
"#;

/// A copy of a host, in which reading `file` blocks; a run directory; and the options for both.
fn host(file: &str) -> (TempDir, PathBuf, String) {
    let dir = tempdir().unwrap();
    let host = dir.path().join("host");
    copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/host/t0"),
        &host,
    );
    let blocked = host.join("proc").join(file);
    // Files of the kernel that the fixture does not have are added.
    drop(fs::remove_file(&blocked));
    mknodat(CWD, &blocked, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let run = dir.path().join("run");
    let host = host.display();
    let words = format!("--proc-root {host}/proc --sys-root {host}/sys --interval 50ms");
    (dir, run, words)
}

/// Waits for the end, which must come soon, and returns the messages.
fn ended(mut recorder: Recorder) -> String {
    let started = Instant::now();
    while !recorder.has_ended() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the recorder does not end"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = recorder.wait();
    assert!(output.status.success(), "{}", stderr(&output));
    stderr(&output)
}

/// The outcomes of each probe in all ticks, without duplicates.
fn outcomes(run: &Path) -> BTreeMap<String, Vec<String>> {
    let mut outcomes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for [probe, status] in rows(run.join("server/ticks.parquet"), ["probe", "status"]) {
        outcomes.entry(probe).or_default().push(status);
    }
    outcomes.values_mut().for_each(Vec::dedup);
    outcomes
}

#[test]
fn duration_and_deadline_end_a_recording_whose_reads_hang() {
    for (file, probe, limit) in [
        ("4242/stat", "process", "--duration 500ms"),
        ("4242/task/4250/status", "threads", "--duration 500ms"),
        ("4242/net/snmp", "sockets", "--deadline 500ms"),
    ] {
        let (_dir, run, words) = host(file);
        let words =
            format!("record {words} {limit} --probes cpu,process,threads,sockets --process server=4242");
        let recorder = Recorder(Some(collect(&words).arg("--out").arg(&run).spawn().unwrap()));
        let messages = ended(recorder);
        assert_manifest(&run);
        for (name, statuses) in outcomes(&run) {
            // On a busy machine others may take longer than a tick waits.
            let is_as_expected = match name == probe {
                true => statuses == ["skipped"],
                false => statuses.iter().any(|status| status == "ok"),
            };
            assert!(is_as_expected, "{file}: {name} {statuses:?}");
        }
        let expected =
            format!("could not be read: {probe}: 1 tick failed ({probe}: a read has not finished after");
        assert!(messages.contains(&expected), "{messages}");
    }
}

/// A search by name reads the names of all processes, also at the start.
#[test]
fn signals_act_while_a_search_by_name_hangs() {
    let (_dir, run, words) = host("777/comm");
    let words = format!("{words} --probes cpu,process --process server=mysqld");
    let recorder = Recorder::start(&run, &words);
    recorder.signal(Signal::USR1);
    recorder.signal(Signal::TERM);
    ended(recorder);
    let meta = read_meta(&run.join("server/ticks.parquet")).unwrap();
    assert_eq!(meta["ended"], "signal");
    assert_eq!(outcomes(&run)["cpu"], ["ok"]);
    assert!(json(run.join("server/fingerprint.json")).is_object());
}

struct Attack(Child);

impl Drop for Attack {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A process in execve(2) that closes a file of fuse(4) blocks the readers of most of its files.
#[test]
#[ignore = "in full: depends on the machine's speed, devices or kernel"]
fn a_process_that_hangs_in_execve_costs_its_own_rows() {
    if !Path::new("/dev/fuse").exists() {
        return eprintln!("/dev/fuse is missing: a hang in execve(2) is not tested");
    }
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (source, program, mount, run) = (path("hang.c"), path("hang"), path("mount"), path("run"));
    fs::write(&source, SOURCE).unwrap();
    let compiled = Command::new("cc").arg("-o").args([&program, &source]).status();
    assert!(compiled.unwrap().success());
    fs::create_dir(&mount).unwrap();
    let mut server = Command::new("unshare");
    server
        .arg("--mount")
        .args([&program, &mount])
        .stdout(Stdio::piped());
    let mut attack = Attack(server.spawn().unwrap());
    let mut pid = String::new();
    BufReader::new(attack.0.stdout.take().unwrap())
        .read_line(&mut pid)
        .unwrap();
    let pid = pid.trim();
    let words =
        format!("record --interval 50ms --duration 500ms --probes cpu,process --process server={pid}");
    let recorder = Recorder(Some(collect(&words).arg("--out").arg(&run).spawn().unwrap()));
    let summary = ended(recorder);
    assert!(summary.contains("full duration"), "{summary}");
    assert_manifest(&run);
    assert!(outcomes(&run)["cpu"].iter().any(|status| status == "ok"));
    assert_eq!(outcomes(&run)["process"], ["skipped"]);
}
