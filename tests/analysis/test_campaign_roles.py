"""Roles: every public variable has a default, a type and a description, and bears its role's name."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

ROLES = sorted((Path(__file__).parents[2] / "ansible" / "roles").iterdir())


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_defaults_and_argument_specs_name_the_same_variables(role: Path) -> None:
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    assert list(options) == list(defaults)
    assert all(name.startswith(f"{role.name}_") for name in options)
    assert all(option["description"].strip() and option["type"] for option in options.values())
