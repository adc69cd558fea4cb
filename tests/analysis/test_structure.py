"""The package's structure, as far as import-linter does not check it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import loadprint


def test_no_module_name_occurs_twice() -> None:
    modules = Path(loadprint.__file__).parent.rglob("*.py")
    names = Counter(path.stem for path in modules if path.stem != "__init__")
    assert [name for name, count in names.items() if count > 1] == []
