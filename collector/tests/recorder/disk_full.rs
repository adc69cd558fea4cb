//! Tests a full disk: the journal stays readable, the error is one line, and `finish` succeeds when
//! there is space.
//!
//! Mounts a small tmpfs in a mount namespace of `unshare`, which needs root or user namespaces.

use std::fs;
use std::process::Command;

use crate::prelude::*;
use tempfile::tempdir;

#[test]
fn a_full_disk_keeps_the_recorded_ticks() {
    let dir = tempdir().unwrap();
    let script = r#"
        set -eu
        mount -t tmpfs -o size=256k tmpfs "$2"
        status=0
        "$1" record --out "$2/run" --interval 1ms --duration 600s 2>"$2.message" || status=$?
        echo "status $status"
        echo "lines $(wc -l <"$2.message")"
        grep -o 'ticks are in the journal; free some disk space, then run: loadprint-collect finish' "$2.message"
        grep -o 'No space left on device' "$2.message"
        again=0
        "$1" finish "$2/run" 2>/dev/null || again=$?
        echo "no room $again"
        test -e "$2/run/server/journal"
        mount -o remount,size=64m "$2"
        "$1" finish "$2/run"
        test ! -e "$2/run/server/journal"
        test -s "$2/run/server/cpu.parquet"
    "#;
    let mount = dir.path().join("small");
    fs::create_dir(&mount).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script, "sh", PROGRAM]);
    let text = succeeded(&command.arg(&mount).output().unwrap());
    let lines: Vec<_> = text.lines().collect();
    let expected = [
        "status 2",
        "lines 1",
        "ticks are in the journal; free some disk space, then run: loadprint-collect finish",
        "No space left on device",
        "no room 2",
    ];
    assert_eq!(lines[..5], expected);
    // The recorder removed the partial tick: nothing is torn.
    assert!(
        lines[5].starts_with("server: ") && lines[5].ends_with("torn, 0 bytes dropped"),
        "{text}"
    );
}
