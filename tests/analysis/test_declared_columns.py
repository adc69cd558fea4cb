"""Every column that a probe records is read by the analysis, or has a reason to be recorded."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import loadprint
from declarations import declared

SOURCES = Path(loadprint.__file__).parent
# tables of metrics have every line of their file
RECORDED_FOR = {
    "cgroup.period_us": "quota_us is CPU time in such a period",
    "ebpf_exchanges.waiting_ns": "network_ns is its difference to server_ns",
    "ebpf_exchanges.server_ns": "network_ns is its difference to waiting_ns",
    "mysql_digests.*": "statements of a server by digest, for SQL",
    "nvme.*_exceeded_us": "read as {name}_exceeded_us",
}


def test_every_column_is_read_or_has_a_reason() -> None:
    """A name counts as read where it is a word of the code or of the catalogue."""
    texts = [
        path.read_text(encoding="utf-8") for kind in ("py", "toml") for path in SOURCES.rglob(f"*.{kind}")
    ]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    unread = {
        f"{probe.name}.{column}" for probe in declared() for column in probe.columns if column not in words
    }
    explained = {column: [key for key in RECORDED_FOR if fnmatch(column, key)] for column in unread}
    assert [column for column, keys in explained.items() if not keys] == []
    assert {key for keys in explained.values() for key in keys} == set(RECORDED_FOR), (
        "a reason without a column"
    )
