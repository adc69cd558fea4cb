"""The package's structure, as far as import-linter does not check it."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import loadprint


def test_no_module_name_occurs_twice() -> None:
    modules = Path(loadprint.__file__).parent.rglob("*.py")
    names = Counter(path.stem for path in modules if path.stem != "__init__")
    assert [name for name, count in names.items() if count > 1] == []


def test_no_class_name_occurs_twice() -> None:
    modules = Path(loadprint.__file__).parent.rglob("*.py")
    statements = (node for path in modules for node in ast.parse(path.read_text(encoding="utf-8")).body)
    names = Counter(node.name for node in statements if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []
