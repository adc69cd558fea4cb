//! Tests the sampled stacks with programs of known functions on the running kernel. Needs root.

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use crate::common::live::eventually;
use loadprint_probes::Host;
use loadprint_probes::NotRunning;
use loadprint_probes::Options;
use loadprint_probes::Probe;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;
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

fn compile(dir: &Path, name: &str, options: &[&str]) -> PathBuf {
    let (source, program) = (dir.join(format!("{name}.cc")), dir.join(name));
    fs::write(&source, SOURCE.replace("NAME", name)).unwrap();
    let built = Command::new("c++")
        .args(["-O1", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o"])
        .args([&program, &source])
        .args(options)
        .status();
    assert!(built.unwrap().success());
    program
}

struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::piped()).spawn().unwrap())
    }

    fn program(program: &Path, arguments: &[&str]) -> Self {
        Self::start(Command::new(program).args(arguments))
    }

    fn go(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The probe, and all samples so far by the number of the stack.
struct Profile {
    probe: Box<dyn Probe>,
    samples: BTreeMap<String, u64>,
}

/// A sampled stack: module and symbol of each frame from the outermost one.
type Stack = Vec<(String, Option<String>)>;

impl Profile {
    fn of(process: &Running) -> Self {
        let options = Options {
            processes: vec![format!("worker={}", process.0.id()).parse().unwrap()],
            symbols: common::symbols(),
            ..Options::default()
        };
        let probe = common::entry("profile").open(&Host::default(), &options, &Default::default());
        let mut profile = Self {
            probe: probe.unwrap_or_else(|error| panic!("{error}")),
            samples: BTreeMap::new(),
        };
        profile.tick();
        profile
    }

    /// Reads the samples; returns the number of all.
    fn tick(&mut self) -> u64 {
        let mut rows = Rows::default();
        common::read(self.probe.as_mut(), &mut rows).unwrap();
        for row in 0..rows.len() {
            let mut entity = rows.entity(row).map(|part| str::from_utf8(part).unwrap());
            assert_eq!(entity.next(), Some("worker"));
            let Value::Bits(samples) = rows.value(row, 0, 2) else {
                panic!("no number of samples");
            };
            assert!(samples > 0);
            let stack = entity.next().unwrap().to_owned();
            *self.samples.entry(stack).or_default() += samples;
        }
        self.samples.values().sum()
    }

    fn wait_for(&mut self, samples: u64) {
        let more = self.tick() + samples;
        eventually("samples", || (self.tick() >= more).then_some(()));
    }

    fn json(&mut self) -> Json {
        let file = self.probe.recorded_file().unwrap();
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
    let program = compile(dir.path(), "shares", &[]);
    let mut process = Running::program(&program, &["0"]);
    let mut profile = Profile::of(&process);
    process.go();
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
    let [first, second] = ["first", "second"].map(|name| compile(dir.path(), name, &[]));
    let mut process = Running::program(&first, &[ROUNDS, second.to_str().unwrap()]);
    let mut profile = Profile::of(&process);
    process.go();
    process.go();
    eventually("samples of both programs", || {
        profile.tick();
        (profile.with_symbol("second::often") > 20).then_some(())
    });
    assert!(profile.with_symbol("first::often") > 20);
    let unknown = profile.with_frame(|module, _| module == "[unknown]");
    assert!(unknown <= 2, "{unknown}");
}

#[test]
fn process_that_exits_before_the_tick_has_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "brief", &[]);
    let mut process = Running::program(&program, &[ROUNDS]);
    let mut profile = Profile::of(&process);
    process.go();
    assert!(process.0.wait().unwrap().success());
    profile.tick();
    assert!(profile.with_symbol("brief::often") > 20);
}

/// Frames of the program have its path and no symbol; no frame has `symbol`.
fn has_no_symbols(program: &Path, symbol: &str) {
    let mut process = Running::program(program, &["0"]);
    let mut profile = Profile::of(&process);
    process.go();
    profile.wait_for(50);
    let module = program.display().to_string();
    assert!(profile.with_frame(|path, symbol| path == module && symbol.is_none()) > 20);
    assert_eq!(profile.with_symbol(symbol), 0);
}

#[test]
fn function_without_a_symbol_has_its_module() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "stripped", &["-s"]);
    has_no_symbols(&program, "stripped::");
}

/// Moves the symbols of a program to another file, as a distribution does.
fn separate(program: &Path, debug: &Path) {
    let run = |tool: &str, arguments: &[&Path]| {
        assert!(Command::new(tool).args(arguments).status().unwrap().success());
    };
    run("objcopy", &[Path::new("--only-keep-debug"), program, debug]);
    run("strip", &[program]);
}

/// The function of the program is named; its file has no symbol of it.
fn has_symbols_of_debug_file(process: &mut Running, name: &str) {
    let mut profile = Profile::of(process);
    process.go();
    let function = format!("{name}::often");
    eventually("samples of the function", || {
        profile.tick();
        (profile.with_symbol(&function) > 20).then_some(())
    });
}

#[test]
fn symbols_are_in_the_file_of_the_debug_link() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "linked", &[]);
    let debug = dir.path().join(".debug/linked.debug");
    fs::create_dir(dir.path().join(".debug")).unwrap();
    separate(&program, &debug);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let linked = Command::new("objcopy").arg(link).arg(&program).status();
    assert!(linked.unwrap().success());
    has_symbols_of_debug_file(&mut Running::program(&program, &["0"]), "linked");
}

/// The process has another root directory, and so other debug files, than the recorder.
#[test]
fn symbols_are_in_the_file_of_the_build_id() {
    let root = tempfile::tempdir().unwrap();
    let program = compile(root.path(), "packaged", &["-static"]);
    let debug = root.path().join("symbols");
    separate(&program, &debug);
    let notes = Command::new("readelf").arg("-n").arg(&program).output().unwrap();
    let notes = String::from_utf8(notes.stdout).unwrap();
    let (_, build_id) = notes.split_once("Build ID: ").unwrap();
    let (first, rest) = build_id.lines().next().unwrap().split_at(2);
    let directory = root.path().join("usr/lib/debug/.build-id").join(first);
    fs::create_dir_all(&directory).unwrap();
    fs::rename(&debug, directory.join(format!("{rest}.debug"))).unwrap();
    let mut process = Running::start(Command::new("chroot").arg(root.path()).args(["/packaged", "0"]));
    has_symbols_of_debug_file(&mut process, "packaged");
}

/// A file of another build has other addresses.
#[test]
fn debug_file_of_another_build_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let [program, other] = ["rebuilt", "other"].map(|name| compile(dir.path(), name, &[]));
    let debug = dir.path().join("rebuilt.debug");
    separate(&other, &debug);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let linked = Command::new("objcopy")
        .args(["--strip-all", &link])
        .arg(&program)
        .status();
    assert!(linked.unwrap().success());
    has_no_symbols(&program, "other::");
}

#[test]
fn file_in_another_mount_namespace_of_another_user_has_symbols() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let program = compile(dir.path(), "hidden", &["-static"]);
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
    process.go();
    eventually("samples of the function", || {
        profile.tick();
        (profile.with_symbol("hidden::often") > 20).then_some(())
    });
    assert!(!place.join("hidden").exists());
}

#[test]
fn nothing_sampled_is_an_empty_tree() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "idle", &[]);
    let process = Running::program(&program, &["0"]);
    eventually("the wait for input", || {
        let stat = fs::read_to_string(format!("/proc/{}/wchan", process.0.id())).unwrap();
        stat.contains("pipe").then_some(())
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
    let opened = common::entry("profile").open(&Host::default(), &Options::default(), &Default::default());
    let Err(NotRunning::Off(reason)) = opened else {
        panic!("{opened:?}");
    };
    assert!(reason.contains("--process ROLE=PID"), "{reason}");
}
