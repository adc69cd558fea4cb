//! Tests a full disk: the journal stays readable, the error is one line, and `finish` succeeds when
//! there is space.
//!
//! Mounts a small tmpfs in a mount namespace of `unshare`, which needs root or user namespaces.

use crate::common;
use std::process::Command;

#[test]
fn a_full_disk_keeps_the_recorded_ticks() {
    let dir = tempfile::tempdir().unwrap();
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
    std::fs::create_dir(&mount).unwrap();
    let output = Command::new("unshare")
        .args([
            "--mount",
            "--map-root-user",
            "sh",
            "-c",
            script,
            "sh",
            env!("CARGO_BIN_EXE_loadprint-collect"),
        ])
        .arg(&mount)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", common::stderr(&output));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], ["status 2", "lines 1"]);
    assert_eq!(
        lines[2],
        "ticks are in the journal; free some disk space, then run: loadprint-collect finish"
    );
    assert_eq!(lines[3..5], ["No space left on device", "no room 2"]);
    // The recorder removed the partial tick: nothing is torn.
    assert!(
        lines[5].starts_with("server: ") && lines[5].ends_with("torn, 0 bytes dropped"),
        "{text}"
    );
}
