"""Where CPU time goes: groups of code, rows that add up to /proc, their sampling error, and the sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loadprint.commands.operands import resolve
from loadprint.commands.report.collect import collect
from loadprint.comparison.compare_sides import compare
from loadprint.errors import InputError
from loadprint.metrics import cpu_groups
from loadprint.metrics.cpu_groups import function_name, group_nodes
from loadprint.metrics.gather import Measured, gather
from loadprint.metrics.sources_profile import sampled
from loadprint.reading.call_tree import CallTree, Frame, read_call_tree
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from loadprint.rendering import render_text
from loadprint.tables import views
from loadprint.tables.table import Group, Table
from profiles import (
    COMMAND,
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
    write_stacks,
)
from recordings import Host, make_execution, write_json


def tree_of(*stacks: str) -> CallTree:
    written, _ = document(dict.fromkeys(stacks, 1))
    frames = [Frame(written["modules"][module]["path"], symbol) for module, symbol in written["frames"]]
    nodes = np.array(written["nodes"])
    return CallTree("cpu-clock", 99.0, 0, tuple(frames), nodes[:, 0], nodes[:, 1])


def group_of(stack: str) -> str:
    return group_nodes(tree_of(stack)).keys[-1]


def measured(path: Path) -> Measured:
    return gather(open_run(path), Store())


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
        ("[unknown]!", "unknown"),
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


def test_the_groups_of_a_role_add_up_to_its_cpu_time(tmp_path: Path) -> None:
    run = make_profiled_run(tmp_path / "run", server=OLTP, load={SEND: 7})
    quantities = measured(run).quantities
    for role in ("server", "load"):
        groups = [
            value.rate for name, value in quantities.values.items() if name.startswith(f"profile.{role}.")
        ]
        total = quantities.values[f"process.{role}.cpu"].rate
        assert math.isclose(sum(groups), total, rel_tol=1e-12)
    # 9 + 3 jiffies a second; 20 of 100 samples
    assert quantities.values["profile.server.tcp_send"].rate == pytest.approx(0.12 * 0.2)
    assert quantities.values["profiled.server.truncated"].rate == pytest.approx(0.05)
    absent = quantities.get("profile.server.purge")
    assert absent is not None
    assert absent.rate == 0.0
    assert absent.error > 0.0


def test_samples_of_the_first_tick_are_from_before_the_window(tmp_path: Path) -> None:
    quantities = measured(make_profiled_run(tmp_path / "run", Host(seconds=20), server=OLTP)).quantities
    ticks = quantities.values["profiled.server.samples"].rate / sum(OLTP.values())
    # 99 samples a second are one second of CPU time; the server uses 0.12 s
    assert quantities.values["profiled.server.covered"].rate == pytest.approx(100 / 99 / 0.12)
    assert ticks == 20


def test_a_process_that_starts_late_is_covered_while_it_is_there(tmp_path: Path) -> None:
    run = make_profiled_run(tmp_path / "run", Host(seconds=20), server=OLTP)
    for name in ("process", "profile"):
        path = run / "server" / f"{name}.parquet"
        table = pq.read_table(path)
        begin = 11 if name == "process" else 5
        kept = [row["tick"] >= begin or row["role"] != "server" for row in table.to_pylist()]
        pq.write_table(table.filter(kept), path)
    quantities = measured(run).quantities
    assert quantities.values["profiled.server.covered"].rate == pytest.approx(100 / 99 / 0.12)


def test_without_the_cpu_time_of_the_server_its_samples_have_no_rows(tmp_path: Path) -> None:
    run = make_profiled_run(tmp_path / "run", Host(seconds=20), server=OLTP)
    path = run / "server/process.parquet"
    table = pq.read_table(path)
    kept = [row["tick"] < 11 or row["role"] != "server" for row in table.to_pylist()]
    pq.write_table(table.filter(kept), path)
    quantities = measured(run).quantities
    assert not [name for name in quantities.values if name.startswith("profile.server.")]
    assert "ended in the window" in quantities.why("profile.server.parser")


def test_the_error_of_a_share_is_that_of_a_sample_of_this_size() -> None:
    rng = np.random.default_rng(14)
    for share, total in ((0.3, 400), (0.02, 2000)):
        counts = rng.binomial(total, share, 4000)
        expected = float(np.std(counts / total))
        assert sampled(1.0, share * total, total).error == pytest.approx(expected, rel=0.05)


def test_samples_of_hardware_cycles_count_by_their_cycles(tmp_path: Path) -> None:
    run = make_cycles_run(tmp_path / "run", server={SEND: 20, PARSE: 20}, load={SEND: 7})
    quantities = measured(run).quantities
    send = quantities.values["profile.server.tcp_send"]
    assert send.rate == pytest.approx(0.12 * 20 / (20 + 60))
    # 20 seconds of samples; (Σw)² / Σw²
    effective = 20 * (20 + 60) ** 2 / (20 + 20 * 9)
    assert quantities.values["profiled.server.samples"].rate == pytest.approx(effective)
    assert send.error == pytest.approx(sampled(0.12, effective / 4, effective).error)
    # those of one role do not change those of another
    assert quantities.values["profiled.load.samples"].rate == pytest.approx(7 * 20)
    # the CPU time in /proc is the only one: cycles have no time
    assert quantities.values["profiled.server.hertz"].rate == pytest.approx(80e6 / 0.12)
    assert quantities.get("profiled.server.covered") is None
    sides, _ = resolve([str(run), str(make_profiled_run(tmp_path / "other", server=OLTP))])
    note = ledger(compare(sides, None)).rows[-1].notes[0]
    assert "run 640 of hardware cycles (effective number), 0.67 GHz of the CPU time in /proc" in note
    assert "other 2,000 of the CPU clock, " in note


def test_the_error_of_weighted_shares_is_that_of_the_effective_number() -> None:
    rng = np.random.default_rng(14)
    weights = rng.lognormal(0.0, 1.0, (4000, 500))
    members = rng.random(weights.shape) < 0.2
    shares = (weights * members).sum(axis=1) / weights.sum(axis=1)
    effective = float(np.mean(weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)))
    expected = sampled(1.0, 0.2 * effective, effective).error
    assert expected == pytest.approx(float(np.std(shares)), rel=0.05)
    assert effective < 250


@pytest.mark.parametrize("column", ["samples", "cycles"])
def test_missing_numbers_of_samples_are_refused(tmp_path: Path, column: str) -> None:
    run = make_cycles_run(tmp_path / "run", server={SEND: 20})
    path = run / "server" / "profile.parquet"
    table = pq.read_table(path)
    nothing = pa.nulls(len(table), table.schema.field(column).type)
    pq.write_table(table.set_column(table.schema.get_field_index(column), column, nothing), path)
    with pytest.raises(InputError, match=f"column `{column}` is not a count in every row"):
        measured(run)


def table_of(path: Path) -> Table:
    sides, reference = resolve([str(path)])
    return compare(sides, reference)


def ledger(table: Table, per: str = "statement") -> Group:
    return next(group for group in table.groups if group.key == f"cputime_server_{per}")


def test_rows_add_up_in_both_views(tmp_path: Path) -> None:
    table = table_of(profiled_execution(tmp_path / "execution"))
    for shown in (views.usual(table), views.all_of(table), views.all_of(views.costs(table))):
        *rows, total = ledger(shown).rows
        for place in range(2):
            values = [row.cells[place].value or 0.0 for row in rows]
            assert sum(values) == pytest.approx(total.cells[place].value)
    assert {row.view for row in ledger(table, "commit").rows} == {"all"}
    assert ledger(views.usual(table)).rows[-2].label == "unknown"


def test_the_usual_view_sums_small_groups(tmp_path: Path) -> None:
    small = {f"{COMMAND};{MYSQLD}!{name}": 1 for name in ("row_purge", "mtr_t::commit()")}
    run = make_profiled_run(tmp_path / "a", server={**OLTP, **small})
    other = make_profiled_run(tmp_path / "b", server=OLTP)
    sides, _ = resolve([str(run), str(other)])
    table = compare(sides, None)
    usual, everything = ledger(views.usual(table)), ledger(views.all_of(table))
    assert "2 other groups" in [row.label for row in usual.rows]
    assert {"purge", "redo (mini-transactions)"} <= {row.label for row in everything.rows}
    purge = next(row for row in everything.rows if row.label == "purge")
    assert purge.cells[1].value == 0.0


def test_few_samples_are_noted_where_they_dominate(tmp_path: Path) -> None:
    few, many = (table_of(profiled_execution(tmp_path / f"{scale}", scale=scale)) for scale in (1, 10_000))
    notes = [
        {note for row in ledger(table).rows for versus in row.versus if versus for note in versus.notes}
        for table in (few, many)
    ]
    assert any(note.startswith("few samples") for note in notes[0])
    assert not any(note.startswith("few samples") for note in notes[1])


def test_the_sentence_adds_up_to_the_difference(tmp_path: Path) -> None:
    table = table_of(profiled_execution(tmp_path / "execution", scale=100))
    sentence = next(one for one in table.sentences if one.id == "cpu-difference")
    assert sentence.text == (
        "insert against oltp: +205 µs of server CPU per client statement: "
        "parser +112, TCP/IP send +110, record access −9, 1 more −1, unexplained −7."
    )


def test_without_an_interval_the_sentence_needs_repeats_that_do_not_overlap(tmp_path: Path) -> None:
    table = table_of(profiled_execution(tmp_path / "execution", scale=100, repeats=1))
    sentence = next(one for one in table.sentences if one.id == "cpu-difference")
    assert "by single values" in sentence.text
    same = table_of(make_execution(tmp_path / "same", {"a": [Host()], "b": [Host()]}, "a"))
    assert not [one for one in same.sentences if one.id == "cpu-difference"]


def test_text(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    table = table_of(profiled_execution(tmp_path / "execution", scale=10))
    kept = [group for group in table.groups if group.key.startswith("cputime_")]
    assert len(kept) == 3
    golden("cpu_ledger.txt", render_text.render(views.shown(table)))


def test_without_samples_the_row_has_the_reason(tmp_path: Path) -> None:
    plain = make_execution(tmp_path / "execution", {"a": [Host()], "b": [Host()]}, "a")
    table = table_of(plain)
    assert not [group for group in views.usual(table).groups if group.key.startswith("cputime_")]
    (row,) = ledger(table).rows
    assert row.cells[0].value is None
    assert row.cells[0].notes == ("probe profile was not recorded",)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"nodes": [[0, 0]]}, "`nodes[0]`: its parent is not an earlier node"),
        ({"nodes": [[-1, 0], [-2, 0]]}, "`nodes[1]`: its parent is not an earlier node"),
        ({"nodes": [[-1, 10_000]]}, "`nodes[0]`: its frame is not in `frames`"),
        ({"nodes": [[-1]]}, "`nodes` is not a list of pairs of integers"),
        ({"nodes": [[-1, 0], [0]]}, "`nodes` is not a list of pairs of integers"),
        ({"nodes": [[-1, 0.5]]}, "`nodes` is not a list of pairs of integers"),
        ({"nodes": [[-1, None]]}, "`nodes` is not a list of pairs of integers"),
        ({"nodes": {"a": 1}}, "`nodes` is not a list of pairs of integers"),
        ({"nodes": [[-1, 1 << 63]]}, "`nodes` is not a list of pairs of integers"),
        ({"frames": [[99, "main"]]}, "`frames[0]`: its module is not in `modules`"),
        ({"frames": [["main", 0]]}, "`frames[0]` is not a module and a symbol"),
        ({"frames": [[0, 1]]}, "`frames[0]` is not a module and a symbol"),
        ({"frames": {}}, "`frames` is an object, not a list"),
        ({"modules": ["mysqld"]}, "`modules[0]` is text, not an object"),
        ({"frequency_hz": 0}, "`frequency_hz` is missing or 0"),
        ({"frequency_hz": -1}, "`frequency_hz` is -1, not a non-negative number"),
    ],
)
def test_damaged_stacks_are_refused_in_one_line(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    path = tmp_path / "stacks.json"
    write_json(path, document(OLTP)[0] | change)
    with pytest.raises(InputError) as error:
        read_call_tree(path)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_stacks_that_the_table_has_and_the_tree_lacks_are_refused(tmp_path: Path) -> None:
    run = make_profiled_run(tmp_path / "run", server=OLTP)
    write_stacks(run, server={NAMELESS: 1})
    with pytest.raises(InputError, match=r"nodes that are not in stacks\.json"):
        measured(run)


def test_nothing_was_sampled(tmp_path: Path) -> None:
    run = make_profiled_run(tmp_path / "run", server=OLTP, other={SEND: 1})
    quantities = measured(run).quantities
    assert "profile.load.tcp_send" not in quantities.values
    assert (
        quantities.why("profile.load.tcp_send")
        == "probe profile has no sample of these processes in the window"
    )


def test_samples_without_a_tick_of_cpu_time_are_zero(tmp_path: Path) -> None:
    idle = Host(server_ticks={"utime": 0, "stime": 0})
    runs = [
        make_profiled_run(tmp_path / "idle", idle, server=OLTP),
        make_profiled_run(tmp_path / "busy", server=OLTP),
    ]
    sides, _ = resolve([str(run) for run in runs])
    table = compare(sides, None)
    assert {row.cells[0].value for row in ledger(table).rows} == {0.0}
    assert "unknown share of the CPU time" in ledger(table).rows[-1].notes[0]
    assert collect(sides, None).flames is None
