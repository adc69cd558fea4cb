//! Tests the sampled stacks with programs of known functions on the running kernel. Needs root.

use crate::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value as Json;

/// Works from the first byte of its input: `NAME::often` three times as long as `NAME::seldom`, and
/// some system calls. After the given number of rounds (0: without end) it executes the program of
/// its second argument, or exits.
const SOURCE: &str = "
    #include <cstdlib>
    #include <unistd.h>
    namespace NAME {
    __attribute__((noinline)) static unsigned often(unsigned count) {
        volatile unsigned sum = 0;
        while (count--) sum = sum + 1;
        return sum;
    }
    __attribute__((noinline)) static unsigned seldom(unsigned count) {
        volatile unsigned sum = 1;
        while (count--) sum = sum + 1;
        return sum;
    }
    }
    int main(int count, char **arguments) {
        unsigned long rounds = strtoul(arguments[1], nullptr, 10);
        volatile unsigned sum = 0;
        char start;
        if (read(0, &start, 1) != 1) return 1;
        for (unsigned long round = 0; !rounds || round < rounds; round++) {
            sum = sum + NAME::often(300000) + NAME::seldom(100000);
            for (int call = 0; call < 300; call++) getppid();
        }
        if (count > 2) execl(arguments[2], arguments[2], \"0\", nullptr);
    }
";
/// Rounds for about a second of CPU time.
const ROUNDS: &str = "10000";

fn program(dir: &Path, name: &str, options: &[&str]) -> PathBuf {
    let program = dir.join(name);
    let options = [&["-fno-omit-frame-pointer"], options].concat();
    compile("c++", &SOURCE.replace("NAME", name), &program, &options);
    program
}

fn start(program: &Path, arguments: &[&str]) -> Running {
    Running::start(Command::new(program).args(arguments))
}

/// The probe, and all samples so far by the number of the stack.
struct Profile {
    probe: Live,
    samples: BTreeMap<String, u64>,
}

/// A sampled stack: module and symbol of each frame from the outermost one.
type Stack = Vec<(String, Option<String>)>;

impl Profile {
    fn of(process: &Running) -> Self {
        let options = Options {
            symbols: common::symbols(),
            ..watching(&[format!("worker={}", process.pid())])
        };
        let mut profile = Self {
            probe: Live::open("profile", &options),
            samples: BTreeMap::new(),
        };
        profile.tick();
        profile
    }

    /// Reads the samples; returns the number of all.
    fn tick(&mut self) -> u64 {
        for (entity, row) in self.probe.read() {
            let stack = entity.strip_prefix("worker ").unwrap();
            assert!(row["samples"] > 0);
            *self.samples.entry(stack.to_owned()).or_default() += row["samples"];
        }
        self.samples.values().sum()
    }

    fn wait_for(&mut self, samples: u64) {
        let more = self.tick() + samples;
        until("samples", || self.tick() >= more);
    }

    /// Waits for more than 20 samples of a function.
    fn wait_for_symbol(&mut self, wanted: &str) {
        until("samples of the function", || {
            self.tick();
            self.with_symbol(wanted) > 20
        });
    }

    fn json(&mut self) -> Json {
        let file = self.probe.probe.recorded_file().unwrap();
        assert_eq!(file.name, "stacks.json");
        serde_json::from_slice(&file.content).unwrap()
    }

    /// All stacks with their samples.
    fn stacks(&mut self) -> Vec<(Stack, u64)> {
        let json = self.json();
        let stack = |number: &str| {
            let mut node = number.parse::<i64>().unwrap();
            let mut stack = vec![];
            while let Ok(number) = usize::try_from(node) {
                let [parent, frame] = [0, 1].map(|part| json["nodes"][number][part].as_i64().unwrap());
                assert!(parent < node, "a parent comes before its children");
                let frame = &json["frames"][frame as usize];
                let module = &json["modules"][frame[0].as_u64().unwrap() as usize];
                let symbol = frame[1].as_str().map(str::to_owned);
                stack.push((module["path"].as_str().unwrap().to_owned(), symbol));
                node = parent;
            }
            stack.reverse();
            stack
        };
        let samples = self.samples.iter();
        samples
            .map(|(number, samples)| (stack(number), *samples))
            .collect()
    }

    /// The samples of stacks in which a frame matches.
    fn with_frame(&mut self, matches: impl Fn(&str, Option<&str>) -> bool) -> u64 {
        let stacks = self.stacks().into_iter();
        stacks
            .filter(|(stack, _)| {
                stack
                    .iter()
                    .any(|(module, symbol)| matches(module, symbol.as_deref()))
            })
            .map(|(_, samples)| samples)
            .sum()
    }

    fn with_symbol(&mut self, wanted: &str) -> u64 {
        self.with_frame(|_, symbol| symbol.is_some_and(|symbol| symbol.starts_with(wanted)))
    }
}

#[test]
fn shares_of_functions_are_those_of_their_work() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path(), "shares", &[]);
    let mut process = start(&program, &["0"]);
    let mut profile = Profile::of(&process);
    process.send("x");
    profile.wait_for(400);
    // The names are read when the process and its file are gone.
    drop(process);
    fs::remove_file(&program).unwrap();
    let all = profile.tick();
    let [often, seldom] = ["shares::often", "shares::seldom"].map(|name| profile.with_symbol(name));
    // The standard deviation of the share is below 0.03.
    let share = often as f64 / (often + seldom) as f64;
    assert!((0.6..0.9).contains(&share), "{often} and {seldom} of {all}");
    assert!(often + seldom > all / 2, "{often} and {seldom} of {all}");

    let module = program.display().to_string();
    for (stack, samples) in profile.stacks() {
        let place = |wanted: &str| {
            let is_wanted =
                |symbol: &Option<String>| symbol.as_deref().is_some_and(|name| name.starts_with(wanted));
            stack.iter().position(|(_, symbol)| is_wanted(symbol))
        };
        if let Some(often) = place("shares::often") {
            assert_eq!(place("main"), Some(often - 1), "{samples} of {stack:?}");
            assert_eq!(stack[often].0, module);
        }
        let kernel = stack.iter().position(|(module, _)| module == "[kernel]");
        let below = &stack[kernel.unwrap_or(stack.len())..];
        assert!(below.iter().all(|(module, _)| module == "[kernel]"), "{stack:?}");
        assert!(below.iter().all(|(_, symbol)| symbol.is_some()), "{stack:?}");
    }
    assert!(
        profile.with_frame(|module, _| module == "[kernel]") > 0,
        "system calls"
    );
    let json = profile.json();
    let event = json["event"].as_str().unwrap();
    assert!(["cpu-clock", "cycles"].contains(&event), "{event}");
    assert_eq!(json["frequency_hz"], 99);
    assert_eq!(json["lost"], 0);
    let modules = json["modules"].as_array().unwrap();
    let of_program = modules.iter().find(|entry| entry["path"] == *module).unwrap();
    assert_eq!(of_program["build_id"].as_str().unwrap().len(), 40);
}

#[test]
fn both_programs_of_a_process_that_executes_another_have_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| program(dir.path(), name, &[]));
    let mut process = start(&first, &[ROUNDS, second.to_str().unwrap()]);
    let mut profile = Profile::of(&process);
    process.send("x");
    process.send("x");
    profile.wait_for_symbol("second::often");
    assert!(profile.with_symbol("first::often") > 20);
    let unknown = profile.with_frame(|module, _| module == "[unknown]");
    assert!(unknown <= 2, "{unknown}");
}

#[test]
fn process_that_exits_before_the_tick_has_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path(), "brief", &[]);
    let mut process = start(&program, &[ROUNDS]);
    let mut profile = Profile::of(&process);
    process.send("x");
    assert!(process.0.wait().unwrap().success());
    profile.tick();
    assert!(profile.with_symbol("brief::often") > 20);
}

/// Frames of the program have its path and no symbol; no frame has `symbol`.
fn has_no_symbols(program: &Path, symbol: &str) {
    let mut process = start(program, &["0"]);
    let mut profile = Profile::of(&process);
    process.send("x");
    profile.wait_for(50);
    let module = program.display().to_string();
    assert!(profile.with_frame(|path, symbol| path == module && symbol.is_none()) > 20);
    assert_eq!(profile.with_symbol(symbol), 0);
}

#[test]
fn function_without_a_symbol_has_its_module() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path(), "stripped", &["-s"]);
    has_no_symbols(&program, "stripped::");
}

fn objcopy(options: &[&str], files: &[&Path]) {
    run(Command::new("objcopy").args(options).args(files));
}

/// Moves the symbols of a program to another file, as a distribution does.
fn separate(program: &Path, debug: &Path) {
    objcopy(&["--only-keep-debug"], &[program, debug]);
    run(Command::new("strip").arg(program));
}

#[test]
fn symbols_are_in_the_file_of_the_debug_link() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path(), "linked", &[]);
    let debug = dir.path().join(".debug/linked.debug");
    fs::create_dir(dir.path().join(".debug")).unwrap();
    separate(&program, &debug);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&[&link], &[&program]);
    let mut process = start(&program, &["0"]);
    let mut profile = Profile::of(&process);
    process.send("x");
    profile.wait_for_symbol("linked::often");
}

/// The process has another root directory, and so other debug files, than the recorder.
#[test]
fn symbols_are_in_the_file_of_the_build_id() {
    let root = tempfile::tempdir().unwrap();
    let program = program(root.path(), "packaged", &["-static"]);
    let debug = root.path().join("symbols");
    separate(&program, &debug);
    let notes = run(Command::new("readelf").arg("-n").arg(&program));
    let (_, build_id) = notes.split_once("Build ID: ").unwrap();
    let (first, rest) = build_id.lines().next().unwrap().split_at(2);
    let directory = root.path().join("usr/lib/debug/.build-id").join(first);
    fs::create_dir_all(&directory).unwrap();
    fs::rename(&debug, directory.join(format!("{rest}.debug"))).unwrap();
    let mut process = Running::start(Command::new("chroot").arg(root.path()).args(["/packaged", "0"]));
    let mut profile = Profile::of(&process);
    process.send("x");
    profile.wait_for_symbol("packaged::often");
}

/// A file of another build has other addresses.
#[test]
fn debug_file_of_another_build_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let [program, other] = ["rebuilt", "other"].map(|name| program(dir.path(), name, &[]));
    let debug = dir.path().join("rebuilt.debug");
    separate(&other, &debug);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&["--strip-all", &link], &[&program]);
    has_no_symbols(&program, "other::");
}

#[test]
fn file_in_another_mount_namespace_of_another_user_has_symbols() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let program = program(dir.path(), "hidden", &["-static"]);
    let (moved, place) = (dir.path().join("moved"), dir.path().join("private"));
    fs::rename(&program, &moved).unwrap();
    fs::create_dir(&place).unwrap();
    let script = "mount -t tmpfs -o mode=755 none \"$1\" && cp \"$2\" \"$1/hidden\" && cd / && \
                  exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$1/hidden\" 0";
    let mut process = Running::start(
        Command::new("unshare")
            .args(["--mount", "--propagation=private", "sh", "-c", script, "sh"])
            .args([&place, &moved]),
    );
    let mut profile = Profile::of(&process);
    process.send("x");
    profile.wait_for_symbol("hidden::often");
    assert!(!place.join("hidden").exists());
}

#[test]
fn nothing_sampled_is_an_empty_tree() {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path(), "idle", &[]);
    let process = start(&program, &["0"]);
    until("the wait for input", || {
        let wait = fs::read_to_string(format!("/proc/{}/wchan", process.pid())).unwrap();
        wait.contains("pipe")
    });
    let mut profile = Profile::of(&process);
    assert_eq!(profile.tick(), 0);
    let json = profile.json();
    for list in ["frames", "nodes"] {
        assert_eq!(json[list], Json::Array(vec![]));
    }
    assert_eq!(json["lost"], 0);
}

#[test]
fn without_watched_processes_it_is_off() {
    let refusal = refusal("profile", &Options::default());
    assert!(
        matches!(&refusal, NotRunning::Off(reason) if reason.contains("--process ROLE=PID")),
        "{refusal}"
    );
}
