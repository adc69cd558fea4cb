"""Where CPU time goes: groups of code, what was not sampled, the sampling error, and the sentence."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from conftest import Golden
from loadprint.metrics import cpu_groups
from loadprint.metrics.cpu_groups import function_name, group_nodes
from loadprint.metrics.profile import sampled, share
from loadprint.metrics.quantities import Quantities
from loadprint.reading.call_tree import CallTree, Frame
from loadprint.rendering import render_text
from loadprint.tables import views
from loadprint.tables.table import Group, Row, Table
from profiles import (
    COMMAND,
    CUT,
    KERNEL,
    LIBC,
    MYSQLD,
    NAMELESS,
    OLTP,
    PARSE,
    SEARCH,
    SEND,
    SYSTEM_CALL,
    document,
    make_cycles_run,
    make_profiled_run,
    profiled_execution,
)
from reads import compared, known, quantities, report_of, table_of
from recordings import Host, change_column, change_rows


def tree_of(*stacks: str) -> CallTree:
    written, _ = document(dict.fromkeys(stacks, 1))
    frames = [Frame(written["modules"][module]["path"], symbol) for module, symbol in written["frames"]]
    nodes = np.array(written["nodes"])
    return CallTree("cpu-clock", 99.0, 0, tuple(frames), nodes[:, 0], nodes[:, 1])


def group_of(stack: str) -> str:
    return group_nodes(tree_of(stack)).keys[-1]


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("row_search_mvcc(unsigned char*, page_cur_mode_t)", "row_search_mvcc"),
        ("void mutex_enter_inline<PolicyMutex<T> >(PolicyMutex<T>*, ut::Location)", "mutex_enter_inline"),
        ("std::vector<int, std::allocator<int> >::operator[](unsigned long)", "std::vector::operator[]"),
        ("bool Cmp::operator()(int, int) const", "Cmp::operator()"),
        ("A::operator<(A const&) const", "A::operator<"),
        ("operator new(unsigned long)", "operator new"),
        ("(anonymous namespace)::Pool<int>::get()", "{anonymous}::Pool::get"),
        ("finish_task_switch.isra.0", "finish_task_switch"),
        ("ext4_fsync_nojournal.constprop.0", "ext4_fsync_nojournal"),
        ("", ""),
        ("<", ""),
    ],
)
def test_a_function_has_the_name_without_types_and_suffixes(symbol: str, name: str) -> None:
    assert function_name(symbol) == name


@pytest.mark.parametrize(
    ("stack", "group"),
    [
        (SEND, "tcp_send"),
        (SYSTEM_CALL, "syscall"),
        (PARSE, "parser"),
        (SEARCH, "records"),
        # a helper belongs to its caller
        (f"{SEARCH};{MYSQLD}!;{LIBC}!", "records"),
        (f"{SEARCH};{LIBC}!__memmove_avx_unaligned_erms", "copies"),
        (f"{SEARCH};/usr/lib/libtcmalloc.so.4.6.5!", "allocation"),
        # of a sample in the kernel only its kernel frames count
        (f"{PARSE};{KERNEL}!some_new_function", "other_kernel"),
        (NAMELESS, "unknown"),
        # a caller that was cut off could have decided
        (CUT, "truncated"),
        ("[unknown]!", "truncated"),
        (f"{MYSQLD}!row_search_mvcc(unsigned char*, page_cur_mode_t)", "records"),
        # the functions of a server mean nothing in another program
        ("/usr/bin/program!row_search_mvcc", "in_program"),
        ("/usr/bin/program!main;/usr/lib/libfoo.so.1!foo", "in_libfoo.so.1"),
        ("/usr/bin/program!main;/usr/lib/libssl.so.3!SSL_read", "tls"),
    ],
)
def test_the_first_frame_from_the_leaf_that_matches_decides(stack: str, group: str) -> None:
    assert group_of(stack) == group


def test_a_stack_is_truncated_without_the_start_of_a_thread() -> None:
    whole = (PARSE, f"{MYSQLD}!_start;{MYSQLD}!main", "/opt/app!runtime.goexit.abi0;/opt/app!main.main")
    cut = (PARSE.split(";", 2)[2], f"{LIBC}!", "[unknown]!")
    stacks = (*whole, *cut)
    tree = tree_of(*stacks)
    _, ends = document(dict.fromkeys(stacks, 1))
    truncated = group_nodes(tree).truncated
    assert [bool(truncated[ends[stack]]) for stack in stacks] == [stack in cut for stack in stacks]


def test_every_group_has_patterns_and_one_label() -> None:
    labels = cpu_groups.patterns().labels
    assert len(set(labels.values())) == len(labels)
    used = {group for space in cpu_groups.patterns().symbols.values() for group in space.groupindex}
    assert used | {cpu_groups.OTHER_KERNEL} == set(labels)


def test_a_sample_of_the_cpu_clock_stands_for_its_period(tmp_path: Path) -> None:
    run = make_profiled_run(tmp_path / "run", server=OLTP, load={SEND: 7})
    found = quantities(run)
    assert found.values["profile.server.tcp_send"].rate == pytest.approx(20 / 99)
    assert found.values["profile.server.unknown"].rate == pytest.approx(3 / 99)
    assert found.values["profile.server.truncated"].rate == pytest.approx(2 / 99)
    assert found.values["profiled.server.truncated"].rate == pytest.approx(2 / 99)
    # 9 + 3 and 25 + 8 jiffies a second
    assert found.values["profiled.server.not_sampled"].rate == pytest.approx(0.12 - 100 / 99)
    assert found.values["profiled.load.not_sampled"].rate == pytest.approx(0.33 - 7 / 99)
    absent = known(found.get("profile.server.purge"))
    assert absent.rate == 0.0
    assert absent.error > 0.0


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The comparison of two sides with some hundred samples a second."""
    return table_of(profiled_execution(tmp_path_factory.mktemp("few") / "execution"))


def test_samples_that_the_recorder_missed_are_not_sampled(few: Table, tmp_path: Path) -> None:
    """A tenth of the samples is removed: the other rows shrink, and the ledger does not close."""
    execution = profiled_execution(tmp_path / "execution", scale=100)
    for path in execution.glob("*/server/profile.parquet"):
        change_column(path, "samples", lambda row: math.ceil(0.9 * row["samples"]))
    row = not_sampled(table_of(execution))
    for cell, cpu, samples in zip(row.cells, (1.02, 1.43), (100, 140 * 1.01), strict=True):
        missed = cpu - 0.9 * samples / 99
        assert cell.value == pytest.approx(missed / 2000, rel=0.01)
        note = f"{100 * missed / cpu:.0f} % of the CPU time in /proc: this ledger does not close"
        assert cell.notes == (note,)
    # few can miss some time by chance
    assert [cell.notes for cell in not_sampled(few).cells] == [(), ()]


def test_a_process_that_starts_late_is_sampled_while_it_is_there_and_one_that_ended_has_no_rows(
    tmp_path: Path,
) -> None:
    def found(name: str, **ticks: range) -> Quantities:
        run = make_profiled_run(tmp_path / name, server=OLTP)
        for table, kept in ticks.items():
            path = run / "server" / f"{table}.parquet"
            change_rows(path, lambda row: row if row["tick"] in kept or row["role"] != "server" else None)  # noqa: B023
        return quantities(run)

    late = found("late", process=range(11, 99), profile=range(5, 99))
    assert late.values["profiled.server.not_sampled"].rate == pytest.approx(0.12 - 100 / 99)
    ended = found("ended", process=range(11))
    assert not [name for name in ended.values if name.startswith("profile.server.")]
    assert "ended in the window" in ended.why("profile.server.parser")


def test_the_error_of_a_share_is_that_of_a_sample_of_this_size() -> None:
    rng = np.random.default_rng(14)
    for part, total in ((0.3, 400), (0.02, 2000)):
        counts = rng.binomial(total, part, 4000)
        expected = float(np.std(counts / total))
        assert share(1.0, part * total, total).error == pytest.approx(expected, rel=0.05)
        spread = float(np.std(rng.poisson(part * total, 4000)))
        assert sampled(0.01, part * total).error == pytest.approx(0.01 * spread, rel=0.05)


def test_samples_of_hardware_cycles_count_by_their_cycles(tmp_path: Path) -> None:
    run = make_cycles_run(tmp_path / "run", server={SEND: 20, PARSE: 20}, load={SEND: 7})
    found = quantities(run)
    send = found.values["profile.server.tcp_send"]
    assert send.rate == pytest.approx(0.12 * 20 / (20 + 60))
    # 20 seconds of samples; (Σw)² / Σw²
    effective = 20 * (20 + 60) ** 2 / (20 + 20 * 9)
    assert found.values["profiled.server.samples"].rate == pytest.approx(effective)
    assert send.error == pytest.approx(share(0.12, effective / 4, effective).error)
    # those of one role do not change those of another
    assert found.values["profiled.load.samples"].rate == pytest.approx(7 * 20)
    # the CPU time in /proc is the only one: cycles have no time
    assert found.values["profiled.server.hertz"].rate == pytest.approx(80e6 / 0.12)
    table = table_of(run, make_profiled_run(tmp_path / "other", server=OLTP))
    cycles = "640 of hardware cycles (effective number), 0.67 GHz of the CPU time"
    assert ledger(table).rows[-1].notes == (f"samples: run {cycles}; other 2,000 of the CPU clock",)
    by_cycles, by_clock = not_sampled(table).cells
    assert by_cycles.value is None
    assert "hardware cycles have no time" in by_cycles.notes[0]
    assert by_clock.value is not None


CANNOT_FAIL = "this ledger cannot fail: its rows are shares of the CPU time, not times"
FITS = "samples of hardware cycles have no time: they divide the CPU time in /proc"


@pytest.mark.parametrize(
    ("clocks", "removed", "note"),
    [
        ((), 0.0, CANNOT_FAIL),
        ((), 0.1, CANNOT_FAIL),
        # 80 million cycles in each second, and 0.12 s of CPU time
        ((666_667,), 0.0, FITS),
        ((666_667,), 0.1, "10 % of the CPU time in /proc, by the cycles and the clock frequency"),
        ((500_000,), 0.0, "-33 % of the CPU time in /proc, by the cycles and the clock frequency"),
        # it is not known which of these the samples had
        ((500_000, 800_000), 0.1, FITS),
        ((700_000, 800_000), 0.1, "14 % of the CPU time in /proc, by the cycles and the clock frequency"),
    ],
)
def test_cycles_that_are_missing_are_found_by_a_clock_frequency(
    tmp_path: Path, clocks: tuple[int, ...], removed: float, note: str
) -> None:
    """Every tenth sample is removed; shares of the CPU time stay the same."""
    run = make_cycles_run(tmp_path / "run", clocks, server={SEND: 20, PARSE: 20})
    kept = 1 - removed
    change_rows(
        run / "server/profile.parquet",
        lambda row: row | {name: round(kept * row[name]) for name in ("samples", "cycles")},
    )
    table = table_of(run, make_profiled_run(tmp_path / "other", server=OLTP))
    found = not_sampled(table).cells[0]
    assert note in found.notes[-1]
    assert found.notes[-1].endswith("this ledger does not close") == ("by the cycles" in note)
    assert found.value is None
    range_ = "–".join(f"{clock / 1e6:.2f}" for clock in clocks)
    assert (f"GHz of the CPU time at a clock of {range_} GHz;" in ledger(table).rows[-1].notes[0]) == bool(
        clocks
    )


def test_the_error_of_weighted_shares_is_that_of_the_effective_number() -> None:
    rng = np.random.default_rng(14)
    weights = rng.lognormal(0.0, 1.0, (4000, 500))
    members = rng.random(weights.shape) < 0.2
    shares = (weights * members).sum(axis=1) / weights.sum(axis=1)
    effective = float(np.mean(weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)))
    expected = share(1.0, 0.2 * effective, effective).error
    assert expected == pytest.approx(float(np.std(shares)), rel=0.05)
    assert effective < 250


def ledger(table: Table, per: str = "statement") -> Group:
    return next(group for group in table.groups if group.key == f"cputime_server_{per}")


def not_sampled(table: Table) -> Row:
    return next(row for row in ledger(table).rows if row.label == "not sampled")


def difference(table: Table) -> str:
    """The sentence about the CPU time of two sides, if there is one."""
    return next((one.text for one in table.sentences if one.id == "cpu-difference"), "")


def test_rows_add_up_in_both_views(few: Table) -> None:
    for shown in (views.usual(few), views.all_of(few), views.all_of(views.costs(few))):
        *rows, total = (row for row in ledger(shown).rows if not row.part)
        for place in range(2):
            values = [row.cells[place].value or 0.0 for row in rows]
            assert sum(values) == pytest.approx(total.cells[place].value)
    assert {row.view for row in ledger(few, "commit").rows} == {"all"}
    labels = [row.label for row in ledger(views.usual(few)).rows]
    assert labels[-4:-1] == ["unknown code", "truncated stacks", "not sampled"]


def test_the_usual_view_sums_small_groups(tmp_path: Path) -> None:
    small = {f"{COMMAND};{MYSQLD}!{name}": 1 for name in ("row_purge", "mtr_t::commit()")}
    busy = {"utime": 68, "stime": 34}
    run = make_profiled_run(tmp_path / "a", Host(server_ticks=busy), server={**OLTP, **small})
    other = make_profiled_run(tmp_path / "b", Host(server_ticks=busy), server=OLTP)
    table = table_of(run, other)
    usual, everything = ledger(views.usual(table)), ledger(views.all_of(table))
    assert "2 other groups" in [row.label for row in usual.rows]
    assert {"purge", "redo (mini-transactions)"} <= {row.label for row in everything.rows}
    purge = next(row for row in everything.rows if row.label == "purge")
    assert purge.cells[1].value == 0.0


def test_few_samples_are_noted_where_they_dominate(few: Table, tmp_path: Path) -> None:
    many = table_of(profiled_execution(tmp_path / "many", scale=10_000))
    notes = [
        {note for row in ledger(table).rows for versus in row.versus if versus for note in versus.notes}
        for table in (few, many)
    ]
    assert any(note.startswith("few samples") for note in notes[0])
    assert not any(note.startswith("few samples") for note in notes[1])


def test_the_sentence_adds_up_to_the_difference(tmp_path: Path) -> None:
    table = table_of(profiled_execution(tmp_path / "execution", scale=100))
    assert difference(table) == (
        "insert against oltp: +205 µs of server CPU per client statement: TCP/IP send +103, parser +103, "
        "record access +8, truncated stacks −5, not sampled −4, unknown code +0.15, 1 other row +0.25."
    )


def test_without_an_interval_the_sentence_needs_repeats_that_do_not_overlap(tmp_path: Path) -> None:
    table = table_of(profiled_execution(tmp_path / "execution", scale=100, repeats=1))
    assert "by single values" in difference(table)
    assert difference(compared(tmp_path / "same", a=[Host()], b=[Host()])) == ""


def test_text(tmp_path: Path, golden: Golden) -> None:
    table = table_of(profiled_execution(tmp_path / "execution", scale=10))
    kept = [group for group in table.groups if group.key.startswith("cputime_")]
    assert len(kept) == 3
    golden("cpu_ledger.txt", render_text.render(views.shown(table)))


def test_without_samples_the_row_has_the_reason(tmp_path: Path) -> None:
    table = compared(tmp_path / "execution", a=[Host()], b=[Host()])
    assert not [group for group in views.usual(table).groups if group.key.startswith("cputime_")]
    (row,) = ledger(table).rows
    assert row.cells[0].value is None
    assert row.cells[0].notes == ("probe profile was not recorded",)


def test_nothing_was_sampled(tmp_path: Path) -> None:
    run = make_profiled_run(tmp_path / "run", server=OLTP, other={SEND: 1})
    found = quantities(run)
    assert "profile.load.tcp_send" not in found.values
    assert (
        found.why("profile.load.tcp_send") == "probe profile has no sample of these processes in the window"
    )


def test_samples_without_a_tick_of_cpu_time_are_more_than_it(tmp_path: Path) -> None:
    idle = Host(server_ticks={"utime": 0, "stime": 0})
    runs = [
        make_profiled_run(tmp_path / "idle", idle, server=OLTP),
        make_profiled_run(tmp_path / "busy", server=OLTP),
    ]
    table = table_of(*runs)
    assert ledger(table).rows[-1].cells[0].value == 0.0
    assert not_sampled(table).cells[0].value == pytest.approx(-100 / 99 / 2000)
    assert report_of(*runs).flames is not None
