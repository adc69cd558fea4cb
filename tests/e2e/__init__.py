"""Tests of the whole: real server, real kernel, real playbook."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLLECT = ROOT / "target/release/loadprint-collect"
LOAD = ROOT / "target/release/loadprint-load"
LOADPRINT = ROOT / ".venv/bin/loadprint"
