"""Filters that find the cause of a failure in a program's output, and missing libraries.

Most programs print the cause first and a line such as `Aborting` or a stack trace last.
"""

from __future__ import annotations

import re
from typing import Any

# Fatal errors of MySQL and MariaDB; then those of
# apt, debootstrap, the dynamic linker and others.
_ERRORS = (
    re.compile(r"\[ERROR\]|^ERROR\b|^E: |got signal \d+|got exception|Assertion failure"),
    re.compile(r"^(?!.*\[(?:Warning|Note|System)\]).*\b(?:fatal )?error\b(?::| while)", re.IGNORECASE),
)
# These lines follow the cause; a server without its share directory first reports a missing message file.
_NOISE = re.compile(
    r"\[ERROR\].*Aborting|The designated data directory .* is unusable|Can't find error-message file"
    r"|Error is not recoverable: exiting now"
)
# Names of Debian 12.
_PACKAGES = {
    "libaio.so.1": "libaio1 (Debian 13, Ubuntu 24.04: libaio1t64, and a link libaio.so.1 to libaio.so.1t64)",
    "libcrypt.so.1": "libcrypt1",
    "libncurses.so.5": "libncurses5",
    "libncurses.so.6": "libncurses6",
    "libnuma.so.1": "libnuma1",
    "libtinfo.so.5": "libtinfo5",
    "libtinfo.so.6": "libtinfo6",
    "liburing.so.2": "liburing2",
}


def first_error(text: str) -> str:
    """Return the first line of `text` that names an error, else its last line, else an empty string."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if not _NOISE.search(line)] or lines
    errors = (line for pattern in _ERRORS for line in causes if pattern.search(line))
    return next(errors, causes[-1] if causes else "")


def missing_libraries(text: str) -> str:
    """Return the libraries that ldd did not find, with their packages; empty if it found all."""
    names = dict.fromkeys(re.findall(r"^\s*(\S+) => not found", text, re.MULTILINE))
    return ", ".join(f"{name} of package {_PACKAGES[name]}" if name in _PACKAGES else name for name in names)


def failure_text(result: dict[str, Any]) -> str:
    """Return the reason of a failed task: its standard error or its message; of a loop, the first item's."""
    failed = [item for item in result.get("results") or [] if isinstance(item, dict) and item.get("failed")]
    content = failed[0] if failed else result
    text = str(content.get("stderr") or content.get("msg") or content.get("stdout") or "failed").strip()
    if text.startswith("no supervisor at "):
        return f"{content.get('failed_on', 'the host')} has {text.partition('; start one with')[0]}"
    return re.sub(r"^Task failed: (Action failed: )?", "", text)


class FilterModule:
    """The filters for Ansible."""

    def filters(self) -> dict[str, object]:
        """Return the filters by name."""
        return {
            "first_error": first_error,
            "missing_libraries": missing_libraries,
            "failure_text": failure_text,
        }
