"""Defines the rules for sentences on one side as data: conditions over its rows, and the text.

A condition must be true in every repeat that measured its row, unless `any_repeat` is set. Thresholds are in
the unit that the row shows. No rule uses iowait: it is idle time, which a busy CPU hides.
"""

from __future__ import annotations

from dataclasses import dataclass

from loadprint.series.spikes import BURST, DROP, FULL

BUSY = 85.0  # % of the server's CPUs; little time is left to wait for other resources
SOME_LOAD = 20.0  # %; shares of less busy time are not meaningful
LOAD_BUSY = 80.0  # % of the load's CPUs, as in judging/client.py


@dataclass(frozen=True)
class Condition:
    """A row's value compared with a threshold; `{disk}` is the side's busiest with files of the server.

    The threshold is a multiple of the row `of`, if given. With `any_repeat` one repeat is enough. If the row
    was not measured the condition is false, or skipped if `optional`. It is false if the row `unless`, which
    is better evidence, was measured.
    """

    row: str
    at_least: float | None = None
    at_most: float | None = None
    of: str = ""
    any_repeat: bool = False
    optional: bool = False
    unless: str = ""

    def is_met(self, value: float) -> bool:
        """Whether a value in the row's printed unit is within the thresholds."""
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True)
class Rule:
    """The sentence on a side for which all of `needs`, and one of `signs` if there are any, are true.

    `exercises` is engine, storage, network, kernel, locks, client, checkpoint, steal or cpu. The sentence
    cites the rows of conditions that are true with their values, and those of `also` that were measured.
    """

    id: str
    exercises: str
    text: str
    needs: tuple[Condition, ...] = ()
    signs: tuple[Condition, ...] = ()
    also: tuple[str, ...] = ()


UTILISATION, KERNEL_SHARE = "cpu_server_utilisation", "cpu_server_kernel_share"
MOST = 50.0  # % of the CPU time of all programs on a set
BY_SERVER = Condition("process_server_of_busy", at_least=MOST)
CONNECTIONS = "connections_storage"

# causes of invalid comparisons, then resources that a side waits for, then its CPU time
FIRST = (
    Rule(
        "client-bound",
        "client",
        "{side} is client-bound: the server may be able to do more",
        needs=(
            Condition("cpu_load_utilisation", at_least=LOAD_BUSY),
            Condition("process_load_of_busy", at_least=MOST),
        ),
        also=(UTILISATION, "process_load_cpu"),
    ),
    Rule(
        "other-programs",
        "cpu",
        "other programs use the CPUs of {side}'s server",
        needs=(
            Condition("process_server_of_busy", at_most=MOST),
            Condition(UTILISATION, at_least=SOME_LOAD),
        ),
        also=("process_server_cpu",),
    ),
    Rule(
        "other-programs-load",
        "cpu",
        "other programs use the CPUs of {side}'s load generator",
        needs=(
            Condition("process_load_of_busy", at_most=MOST),
            Condition("cpu_load_utilisation", at_least=SOME_LOAD),
        ),
        also=("process_load_cpu",),
    ),
    Rule(
        "steal",
        "steal",
        "{side} lost CPU time to other virtual machines or to a quota: it ran on a smaller machine",
        signs=(
            Condition("cpu_server_steal", at_least=2),
            Condition("cgroup_throttled", at_least=5),
        ),
        also=(UTILISATION,),
    ),
    Rule(
        "checkpoint",
        "checkpoint",
        f"{{side}} lost over {100 * DROP:.0f} % of its throughput in seconds of flushing at over {BURST:g} × "
        f"the median, at a checkpoint age over {100 * FULL:.0f} % of the redo capacity",
        needs=(Condition("checkpoint_spikes", at_least=1, any_repeat=True),),
        also=("flush_burst", "checkpoint_age_max"),
    ),
    Rule(
        "storage-bound",
        "storage",
        "{side} waits for storage while its CPUs are partly idle",
        needs=(Condition(UTILISATION, at_most=BUSY),),
        signs=(
            Condition(CONNECTIONS, at_least=40),
            # of the server's threads also those in the background, at its disks also other programs
            Condition("waiting_block_io", at_least=1, unless=CONNECTIONS),
            Condition("disk_{disk}_aqu", at_least=4, unless=CONNECTIONS),
        ),
        also=("pressure_io", "disk_{disk}_aqu"),
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
        "{side} is CPU-bound, mostly in user mode (the engine)",
        needs=(Condition(UTILISATION, at_least=BUSY), Condition(KERNEL_SHARE, at_most=40), BY_SERVER),
        also=("server_cpu_per_operation",),
    ),
    Rule(
        "kernel-heavy",
        "kernel",
        "{side} spends most of its server's CPU time in the kernel",
        needs=(Condition(KERNEL_SHARE, at_least=50), Condition(UTILISATION, at_least=SOME_LOAD), BY_SERVER),
        also=("switches_server", "irq_net_rx"),
    ),
    Rule(
        "network-chatty",
        "network",
        "{side} needs many round trips and much traffic per operation",
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
        "{side} spends its server's CPU time in user mode",
        needs=(
            Condition(KERNEL_SHARE, at_most=30),
            Condition(UTILISATION, at_least=SOME_LOAD),
            Condition(UTILISATION, at_most=BUSY),
            BY_SERVER,
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
