"""The rows of a table, for tests of campaigns."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

LOADPRINT = Path(__file__).parents[1] / ".venv/bin/loadprint"


def table_rows(execution: Path) -> dict[str, list[Any]]:
    """The values of all rows of an execution's table, by side; None where there is none."""
    words = [str(LOADPRINT), "compare", str(execution), "--all", "--format", "json"]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    groups = json.loads(done.stdout)["groups"]
    return {row["key"]: [cell["value"] for cell in row["cells"]] for group in groups for row in group["rows"]}
