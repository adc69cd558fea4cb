"""Where time goes: states that a kernel does not account, and the rows of rare states."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loadprint.metrics.gather import gather
from loadprint.metrics.quantities import Quantities
from loadprint.reading.queries import Store
from loadprint.reading.recording import open_run
from recordings import make_run, write_json, write_manifest
from test_time_ledger import STATES, host


def on_kernel(path: Path, *, irq_time: str | None, steal: int, stolen: float = 0.0) -> Quantities:
    """A run on a kernel with this configuration, whose /proc/stat has this steal time since the boot."""
    make_run(path, host({**STATES, "stolen": stolen} if stolen else STATES))
    document = path / "server/fingerprint.json"
    write_json(document, json.loads(document.read_text()) | {"cpu_accounting": {"irq_time": irq_time}})
    table = pq.read_table(path / "server/cpu.parquet")
    place = table.schema.get_field_index("steal")
    column = pa.array([steal] * len(table), table.schema.field(place).type)
    pq.write_table(table.set_column(place, table.schema.field(place), column), path / "server/cpu.parquet")
    write_manifest(path)
    return gather(open_run(path), Store()).quantities


@pytest.mark.parametrize("irq_time", ["n", None])
def test_without_accounting_stolen_time_is_not_zero_but_missing(tmp_path: Path, irq_time: str | None) -> None:
    quantities = on_kernel(tmp_path / "run", irq_time=irq_time, steal=0)
    assert quantities.get("ledger.stolen") is None
    assert "CONFIG_IRQ_TIME_ACCOUNTING" in quantities.why("ledger.stolen")
    # the rows on CPU contain it
    assert quantities.values["ledger.server"].rate == pytest.approx(2.7)


@pytest.mark.parametrize(("irq_time", "steal"), [("y", 0), ("n", 7)])
def test_no_stolen_time_is_zero_where_it_is_accounted(tmp_path: Path, irq_time: str, steal: int) -> None:
    quantities = on_kernel(tmp_path / "run", irq_time=irq_time, steal=steal)
    assert quantities.values["ledger.stolen"].rate == 0.0


def test_stolen_time_of_the_threads_shows_that_it_is_accounted(tmp_path: Path) -> None:
    quantities = on_kernel(tmp_path / "run", irq_time=None, steal=0, stolen=0.1)
    assert quantities.values["ledger.stolen"].rate == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("states", "row"), [({"stopped": 0.2}, "stopped"), ({"memory": 0.1, "page fault": 0.1}, "memory")]
)
def test_a_stopped_server_and_its_waits_for_memory_have_rows(
    tmp_path: Path, states: dict[str, float], row: str
) -> None:
    make_run(tmp_path / "run", host({**STATES, **states, "client": 1.1}))
    quantities = gather(open_run(tmp_path / "run"), Store()).quantities
    assert quantities.values[f"ledger.{row}"].rate == pytest.approx(0.2)
    assert quantities.values["ledger.other"].rate == pytest.approx(0.05)
    assert quantities.values["ledger.server"].rate == pytest.approx(2.9)
