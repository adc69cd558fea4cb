"""The package's structure, as far as import-linter does not check it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import loadprint
from programs import ROOT

PACKAGE = Path(loadprint.__file__).parent


def test_no_module_name_occurs_twice() -> None:
    names = Counter(path.stem for path in PACKAGE.rglob("*.py") if path.stem != "__init__")
    assert [name for name, count in names.items() if count > 1] == []


def test_no_class_name_occurs_twice() -> None:
    modules = PACKAGE.rglob("*.py")
    statements = (node for path in modules for node in ast.parse(path.read_text(encoding="utf-8")).body)
    names = Counter(node.name for node in statements if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_architecture_names_what_is_there() -> None:
    """Every path exists, from the root or from the package, and every bold word is a type."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    paths = {path for path in re.findall(r"`([\w./-]+)`", text) if "/" in path.rstrip("/")}
    assert "probes/src/source.rs" in paths
    assert [path for path in paths if not (ROOT / path).exists() and not (PACKAGE / path).exists()] == []
    code = [path for name in ("probes", "collector", "workloads") for path in (ROOT / name).rglob("*.rs")]
    text_of_code = "\n".join(path.read_text() for path in (*code, *PACKAGE.rglob("*.py")))
    types = set(re.findall(r"\b(?:class|struct|trait|enum) (\w+)", text_of_code))
    words = set(re.findall(r"\*\*`(\w+)`\*\*", text))
    assert "Probe" in words
    assert words <= types
