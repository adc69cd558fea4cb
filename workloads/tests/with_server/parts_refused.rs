//! Refusals of a divided load: start times that cannot be met, and what cannot be divided.

use crate::common::Bench;
use crate::common::only_line;
use crate::common::running::Running;
use crate::parts::now_ns;

#[test]
fn a_start_that_is_past_or_far_ahead_fails_in_one_line() {
    let bench = Bench::new("parts_start");
    bench.succeed("prepare oltp_read_write --table-size=100");
    let run = "run oltp_point_select --table-size=100 --time=600";
    let past = now_ns() - 5_000_000_000;
    bench.refused(
        &format!("{run} --start-at={past}"),
        &[
            "--start-at was ",
            " s ago by the server's clock",
            "give a later time",
        ],
    );
    // Milliseconds instead of nanoseconds.
    bench.refused(
        &format!("{run} --start-at={}", past / 1_000_000),
        &["--start-at was "],
    );
    for ahead in [now_ns() as i64 + 3_700_000_000_000, i64::MAX] {
        bench.refused(
            &format!("{run} --start-at={ahead}"),
            &["ahead of the server's clock", "nanoseconds since 1970"],
        );
    }
    // A signal ends the wait.
    let start = now_ns() + 3_000_000_000_000;
    let mut running = Running::start(bench.command(&format!("{run} --start-at={start}")));
    running.wait_for_line(|line| line.starts_with("Starting in 2"));
    running.signal("TERM");
    let output = running.end();
    assert_eq!(output.status.code(), Some(143), "{}", only_line(&output));
}

#[test]
fn what_cannot_be_divided_is_refused_in_one_line() {
    let bench = Bench::new("parts_refused");
    let out = bench.path("run");
    for (words, part) in [
        (
            "prepare oltp_read_write --part=1/2",
            "run prepare once for all parts",
        ),
        ("warmup tproc_c --part=1/2", "run warmup once for all parts"),
        ("check tproc_c --part=1/2", "run check once for all parts"),
        (
            "cleanup arm_insert --start-at=5",
            "run cleanup once for all parts",
        ),
        (
            "run insert_benchmark --part=1/2 --rand-seed=1",
            "insert_benchmark cannot be divided",
        ),
        (
            "run command --part=1/2 --rand-seed=1",
            "command cannot be divided",
        ),
        (
            "run oltp_read_write --generator=sysbench --part=1/2 --rand-seed=1",
            "--part is not supported with --generator=sysbench",
        ),
        (
            "run tproc_c --generator=hammerdb --start-at=5",
            "--start-at is not supported with --generator=hammerdb",
        ),
        (
            "run oltp_read_write --threads=2 --part=1/2",
            "the same number, not 0, in all parts",
        ),
        (
            "run oltp_read_write --threads=2,4 --part=1/2 --rand-seed=1",
            "needs a single run, and these options make 2",
        ),
        (
            "run arm_insert --scenario=all --threads=2 --start-at=5",
            "--start-at needs a single run",
        ),
        (
            "run oltp_read_write --threads=2 --part=3/3 --rand-seed=1 --part=1/3",
            "--part=1/3 has none of --threads=2",
        ),
        (
            "run oltp_read_write --threads=2 --events=1 --part=1/2 --rand-seed=1",
            "--events=1 leaves none",
        ),
        (
            "run tproc_c --threads=2 --check=on --part=1/2 --rand-seed=1",
            "--check reads the rows of all parts",
        ),
        (
            "run arm_insert --threads=2 --verify --part=1/2 --rand-seed=1",
            "--verify reads the rows of all parts",
        ),
    ] {
        bench.refused(&format!("{words} --out={}", out.display()), &[part]);
        assert!(!out.exists(), "{words}");
    }
}

#[test]
fn values_of_another_form_are_refused_in_one_line() {
    let bench = Bench::new("parts_values");
    let out = bench.path("run");
    for (words, part) in [
        (
            "run oltp_read_write --part=2/1 --rand-seed=1",
            "--part=2/1 is not K/N",
        ),
        ("run oltp_read_write --part= --rand-seed=1", "--part= is not K/N"),
        ("run oltp_read_write --role=server", "--role=server is not load"),
        ("run oltp_read_write --role=../load", "--role=../load is not load"),
        ("run oltp_read_write --role=load-1", "--role=load-1 is not load"),
        ("run oltp_read_write --role=load-02", "--role=load-02 is not load"),
        (
            "run oltp_read_write --role=load-2/..",
            "--role=load-2/.. is not load",
        ),
        ("run oltp_read_write --role=", "--role= is not load"),
        (
            "run oltp_read_write --start-at=-1",
            "--start-at=-1 is not a whole number",
        ),
        (
            "run oltp_read_write --start-at=0",
            "--start-at=0 is not a whole number",
        ),
        (
            "run oltp_read_write --start-at=9223372036854775808",
            "is not a whole number",
        ),
    ] {
        bench.refused(&format!("{words} --out={}", out.display()), &[part]);
        assert!(!out.exists(), "{words}");
    }
}
