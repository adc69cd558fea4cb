//! Attacks the readers of symbols with processes of an unprivileged user. Needs root.

use crate::prelude::*;
use std::fs;
use std::fs::OpenOptions;
use std::fs::Permissions;
use std::io::BufRead;
use std::io::BufReader;
use std::iter;
use std::mem::discriminant;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::path::Path;
use std::path::PathBuf;
use std::process;
use std::process::Command;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use loadprint_probes::symbols::Answer;
use loadprint_probes::symbols::Description;
use loadprint_probes::symbols::Mapping;
use loadprint_probes::symbols::Request;
use loadprint_probes::symbols::Symbols;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;
use serde::de::DeserializeOwned;

/// Maps its second argument, does what its first one names, prints a line and waits.
const SOURCE: &str = r#"
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <sys/stat.h>
    #include <unistd.h>

    int main(int count, char **arguments) {
        const char *attack = arguments[1];
        int file = open(arguments[2], O_RDWR);
        if (file < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
            return 1;
        if (!strcmp(attack, "lease")) {
            signal(SIGIO, SIG_IGN); /* and so the lease is kept for lease-break-time */
            if (fcntl(file, F_SETLEASE, F_WRLCK))
                return 2;
        }
        if (!strcmp(attack, "mappings"))
            for (int each = 0; each < 60000; each++)
                if (mmap(NULL, 4096, each % 2 ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
                    break;
        puts("ready");
        fflush(stdout);
        if (!strcmp(attack, "truncate")) {
            struct stat stat;
            fstat(file, &stat);
            char *content = malloc(stat.st_size);
            if (pread(file, content, stat.st_size, 0) != stat.st_size)
                return 3;
            for (;;)
                if (ftruncate(file, 0) || pwrite(file, content, stat.st_size, 0) != stat.st_size)
                    return 4;
        }
        pause();
    }
"#;

struct Attack {
    dir: tempfile::TempDir,
    program: PathBuf,
    symbols: Symbols,
}

impl Attack {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let program = dir.path().join("attack");
        compile("cc", SOURCE, &program, &[]);
        Self {
            dir,
            program,
            symbols: common::symbols().unwrap(),
        }
    }

    /// A library with one function that the attacker may write.
    fn library(&self) -> PathBuf {
        let library = self.dir.path().join("library.so");
        let source = "int function(void) { return 1; }";
        compile("cc", source, &library, &["-shared", "-fPIC"]);
        fs::set_permissions(&library, Permissions::from_mode(0o777)).unwrap();
        chown(&library, Some(65534), Some(65534)).unwrap();
        library
    }

    fn start(&self, attack: &str, file: &Path) -> Running {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&self.program)
            .args([Path::new(attack), file])
            .stdout(Stdio::piped());
        let mut attacker = Running::start(&mut command);
        let mut line = String::new();
        let mut output = BufReader::new(attacker.0.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        attacker
    }

    fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<(T, Vec<(u32, u32)>), String> {
        self.symbols.allow(Duration::from_secs(60));
        match self.symbols.ask(request) {
            Answer::Ready(value, reply) => Ok((value, reply.pairs())),
            Answer::Failed(reason) => Err(reason),
            unanswered => panic!("{:?}", discriminant(&unanswered)),
        }
    }

    fn mappings(&self, attacker: &Running) -> Vec<Mapping> {
        self.ask(&Request::Maps { pid: attacker.pid() }).unwrap().0
    }

    /// Opens the file that the attacker maps as module 7; returns whether that was possible.
    fn open(&self, attacker: &Running, file: &Path) -> bool {
        let mappings = self.mappings(attacker).into_iter();
        let mapping = mappings
            .rev()
            .find(|mapping| Path::new(&mapping.name) == file)
            .unwrap();
        let pid = attacker.pid();
        let files = vec![(7, mapping)];
        let (opened, _) = self.ask::<Vec<usize>>(&Request::Open { pid, files }).unwrap();
        !opened.is_empty()
    }

    fn functions(&self) -> Result<(Description, Vec<(u32, u32)>), String> {
        self.ask(&Request::Functions { module: 7 })
    }

    /// The helper still works.
    fn is_unharmed(&self) {
        let own = process::id();
        let mappings: Vec<Mapping> = self.ask(&Request::Maps { pid: own }).unwrap().0;
        assert!(!mappings.is_empty());
    }
}

#[test]
fn lease_does_not_block_the_open() {
    let attack = Attack::new();
    let library = attack.library();
    let attacker = attack.start("lease", &library);
    assert!(
        !attack.open(&attacker, &library),
        "the lease is broken only after 45 s"
    );
    assert!(attack.functions().unwrap_err().contains("not open"));
    attack.is_unharmed();
}

#[test]
fn file_that_is_truncated_while_it_is_read_kills_nothing() {
    let attack = Attack::new();
    let library = attack.library();
    let attacker = attack.start("truncate", &library);
    assert!(attack.open(&attacker, &library));
    let mut read = 0;
    for _ in 0..200 {
        match attack.functions() {
            Ok(_) => read += 1,
            Err(reason) => assert_eq!(reason, "not an ELF file"),
        }
        let names = Request::Names {
            module: 7,
            functions: vec![1],
        };
        drop(attack.ask::<Vec<Option<String>>>(&names));
    }
    assert!(read < 200, "the file was empty at times");
    attack.is_unharmed();
}

/// A file of 16 KiB on disk whose table of symbols has 1.6 GB.
#[test]
fn sparse_table_is_not_read() {
    let attack = Attack::new();
    let library = attack.library();
    let file = OpenOptions::new().read(true).write(true).open(&library).unwrap();
    let read = |offset: u64| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, offset).unwrap();
        u64::from_le_bytes(word)
    };
    // elf(5): e_shoff at 0x28, e_shnum at 0x3c; sh_type at 4, sh_offset at 24, sh_size at 32 of 64 bytes.
    let (sections, count) = (read(0x28), read(0x38) >> 32 & 0xffff);
    let table = (0..count)
        .map(|section| sections + 64 * section)
        .find(|section| read(*section) >> 32 == 2)
        .unwrap();
    let size = 1_600_000_000 / 24 * 24;
    file.write_all_at(
        &file.metadata().unwrap().len().next_multiple_of(8).to_le_bytes(),
        table + 24,
    )
    .unwrap();
    file.write_all_at(&u64::to_le_bytes(size), table + 32).unwrap();
    file.set_len(2_000_000_000).unwrap();
    let attacker = attack.start("wait", &library);
    assert!(attack.open(&attacker, &library));
    let (description, functions) = attack.functions().unwrap();
    assert!(description.build_id.is_some());
    assert!(functions.len() < 100, "only those for dynamic linking");
    attack.is_unharmed();
}

#[test]
fn process_with_megabytes_of_mappings_has_the_first_ones() {
    let attack = Attack::new();
    let mut long = attack.dir.path().to_owned();
    for _ in 0..15 {
        long.push("d".repeat(240));
        fs::create_dir(&long).unwrap();
    }
    let library = long.join("library.so");
    fs::rename(attack.library(), &library).unwrap();
    let attacker = attack.start("mappings", &library);
    let text = fs::read(format!("/proc/{}/maps", attacker.pid())).unwrap();
    assert!(text.len() > 100_000_000, "{}", text.len());
    let mappings = attack.mappings(&attacker);
    assert!((1000..=4096).contains(&mappings.len()), "{}", mappings.len());
    attack.is_unharmed();
}

#[test]
fn helper_that_is_stopped_or_killed_costs_the_answers_only() {
    let attack = Attack::new();
    let library = attack.library();
    let attacker = attack.start("wait", &library);
    let signal = |name: &str| {
        let pid = attack.symbols.pid().to_string();
        run(Command::new("kill").args([name, &pid]));
    };
    let request = Request::Maps { pid: attacker.pid() };
    signal("-STOP");
    attack.symbols.allow(Duration::from_millis(300));
    assert!(matches!(
        attack.symbols.ask::<Vec<Mapping>>(&request),
        Answer::Later
    ));
    let other = Request::Dispatch { pid: attacker.pid() };
    assert!(matches!(attack.symbols.ask::<()>(&other), Answer::Busy));
    signal("-CONT");
    let mappings: Vec<Mapping> = attack.ask(&request).unwrap().0;
    assert!(!mappings.is_empty(), "the late answer");
    signal("-KILL");
    let reason = attack.ask::<Vec<Mapping>>(&request).unwrap_err();
    assert!(
        reason.starts_with("the helper that reads symbols has ended"),
        "{reason}"
    );
}

/// Runs requests until a child without privileges is in the middle of one, stops it there, and
/// returns its status and what its open files are.
fn reading_child(attack: &Attack) -> (String, Vec<String>) {
    let helper = attack.symbols.pid();
    thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let children = format!("/proc/{helper}/task/{helper}/children");
            for _ in 0..1_000_000 {
                let child = fs::read_to_string(&children).unwrap_or_default();
                let Some(pid) = child.trim().parse().ok().and_then(Pid::from_raw) else {
                    continue;
                };
                // It may have ended.
                let _sent = kill_process(pid, Signal::STOP);
                let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                let is_at_rest =
                    |stat: &String| stat.is_empty() || stat.contains(") Z ") || stat.contains(") T ");
                let stat = iter::repeat_with(stat).find(is_at_rest).unwrap();
                if !stat.contains(") T ") {
                    continue;
                }
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
                let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
                let target = |file: fs::DirEntry| fs::read_link(file.path()).unwrap().display().to_string();
                let files = files.map(|file| target(file.unwrap())).collect();
                kill_process(pid, Signal::CONT).unwrap();
                if status.contains("NoNewPrivs:\t1") {
                    return (status, files);
                }
            }
            panic!("no child was seen");
        });
        while !watch.is_finished() {
            drop(attack.functions());
        }
        watch.join().unwrap()
    })
}

#[test]
fn child_has_no_privileges() {
    let attack = Attack::new();
    let library = attack.library();
    let attacker = attack.start("wait", &library);
    assert!(attack.open(&attacker, &library));
    let (seen, _) = reading_child(&attack);
    let field = |name: &str| {
        let line = seen.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap()
            .split_ascii_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(
        field("Uid:")
            .iter()
            .all(|user| (61_184..62_000).contains(&user.parse::<u32>().unwrap())),
        "{seen}"
    );
    assert_eq!(field("Groups:"), Vec::<String>::new());
    for set in ["CapPrm:", "CapEff:", "CapInh:", "CapAmb:"] {
        assert_eq!(field(set), ["0000000000000000"]);
    }
    assert_eq!(field("NoNewPrivs:"), ["1"]);
}

/// Other modules are open in the helper, and a file that the recorder inherited.
#[test]
fn child_has_no_files_but_its_module_and_its_socket() {
    let inherited = fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let attack = Attack::new();
    let library = attack.library();
    let attacker = attack.start("wait", &library);
    let pid = attacker.pid();
    let mappings = attack.mappings(&attacker);
    let others = mappings
        .into_iter()
        .filter(|mapping| mapping.name.starts_with('/'));
    let files: Vec<_> = (100..).zip(others).collect();
    let (opened, _) = attack.ask::<Vec<usize>>(&Request::Open { pid, files }).unwrap();
    assert!(opened.len() > 2, "{opened:?}");
    assert!(attack.open(&attacker, &library));
    let (_, mut files) = reading_child(&attack);
    files.sort();
    let [null, other_null, module, socket] = &files[..] else {
        panic!("{files:#?}");
    };
    assert_eq!([null, other_null], ["/dev/null"; 2]);
    assert_eq!(Path::new(module), library);
    assert!(socket.starts_with("socket:["), "{socket}");
}
