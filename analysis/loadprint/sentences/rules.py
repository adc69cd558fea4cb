"""The rules behind the sentences on one side, as data: conditions over its rows, and what they say.

A condition holds in every repeat that measured its row, unless it says otherwise. Thresholds are in the unit
that the row shows. No rule rests on iowait: it is idle time, which a busy CPU hides.
"""

from __future__ import annotations

from dataclasses import dataclass

BUSY = 85.0  # % of the server's CPUs: little is left to wait for anything else
SOME_LOAD = 20.0  # % below which shares of the busy time say little
LOAD_BUSY = 80.0  # % of the load's CPUs, as the check for a load generator that was the limit


@dataclass(frozen=True)
class Condition:
    """A row's value against a threshold; `{disk}` and `{nic}` stand for the side's busiest.

    `of` names the row that the threshold is a multiple of. With `any_repeat` one repeat is enough. Where the
    row was not measured the condition does not hold, or with `optional` is passed over.
    """

    row: str
    at_least: float | None = None
    at_most: float | None = None
    of: str = ""
    any_repeat: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Rule:
    """What to say of a side where all of `needs` hold, and at least one of `signs` if there are any.

    `exercises` is engine, storage, network, kernel, locks, client, checkpoint, steal or cpu. The rows of
    conditions that hold are cited with their values, and those of `also` where they were measured.
    """

    id: str
    exercises: str
    text: str
    needs: tuple[Condition, ...] = ()
    signs: tuple[Condition, ...] = ()
    also: tuple[str, ...] = ()


UTILISATION, KERNEL_SHARE = "cpu_server_utilisation", "cpu_server_kernel_share"

# what spoils a comparison, then what a side waits for, then where its CPU time goes
FIRST = (
    Rule(
        "client-bound",
        "client",
        "{side} is bound by its load generator: the server may be able to do more",
        signs=(Condition("cpu_load_utilisation", at_least=LOAD_BUSY),),
        also=(UTILISATION, "process_load_cpu"),
    ),
    Rule(
        "steal",
        "steal",
        "{side} was denied CPU time, by other guests or by a quota: it ran on a smaller machine",
        signs=(
            Condition("cpu_server_steal", at_least=2),
            Condition("cgroup_throttled", at_least=5),
        ),
        also=(UTILISATION,),
    ),
    Rule(
        "checkpoint",
        "checkpoint",
        "{side} stalls in checkpoint spikes: the redo log runs full, and pages are written at all costs",
        needs=(Condition("checkpoint_spikes", at_least=1, any_repeat=True),),
        also=("flush_burst", "checkpoint_age_max"),
    ),
    Rule(
        "storage-bound",
        "storage",
        "{side} waits for storage with CPU time to spare",
        needs=(Condition(UTILISATION, at_most=BUSY),),
        signs=(
            Condition("pressure_io", at_least=40),
            Condition("waiting_block_io", at_least=1),
            Condition("disk_{disk}_aqu", at_least=4),
        ),
    ),
    Rule(
        "lock-bound",
        "locks",
        "{side}'s sessions wait for each other's row locks",
        needs=(
            Condition("row_lock", at_least=0.5),
            Condition("waiting_lock", at_least=0.5, optional=True),
            Condition(UTILISATION, at_most=95),
        ),
        also=("threads_running",),
    ),
)
LAST = (
    Rule(
        "cpu-bound",
        "engine",
        "{side} is bound by CPU, most of it in the engine",
        needs=(Condition(UTILISATION, at_least=BUSY), Condition(KERNEL_SHARE, at_most=40)),
        also=("server_cpu_per_operation",),
    ),
    Rule(
        "kernel-heavy",
        "kernel",
        "{side} spends most of its server's CPU time in the kernel",
        needs=(Condition(KERNEL_SHARE, at_least=50), Condition(UTILISATION, at_least=SOME_LOAD)),
        also=("switches_server", "irq_net_rx"),
    ),
    Rule(
        "network-chatty",
        "network",
        "{side} is chatty: many round trips and much traffic for one operation",
        needs=(Condition("round_trips_per_operation", at_least=10),),
        signs=(
            Condition("net_tx_per_operation", at_least=8192),
            Condition("net_rx_per_operation", at_least=8192),
            Condition("bytes_sent_per_operation", at_least=8192),
            Condition("bytes_received_per_operation", at_least=8192),
        ),
    ),
    Rule(
        "engine",
        "engine",
        "{side} spends its server's CPU time in user mode: it exercises the engine",
        needs=(
            Condition(KERNEL_SHARE, at_most=30),
            Condition(UTILISATION, at_least=SOME_LOAD),
            Condition(UTILISATION, at_most=BUSY),
        ),
    ),
    Rule(
        "run-queue",
        "cpu",
        "{side}'s threads wait longer for a CPU than they run on one",
        needs=(
            Condition(UTILISATION, at_least=70),
            Condition("waiting_run_queue", at_least=1, of="process_server_cpu"),
        ),
        also=("runq_p99", "process_server_cpu"),
    ),
)
RULES = FIRST + LAST
