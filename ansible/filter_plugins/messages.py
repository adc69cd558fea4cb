"""Filters that find the cause of a failure in what a program wrote, and the package of a missing library.

A program that gives up mostly writes the cause first and a line such as `Aborting` or a stack trace last.
"""

from __future__ import annotations

import re

# What ends MySQL and MariaDB, as they write it; then what
# apt, debootstrap, the dynamic linker and others write.
_ERRORS = (
    re.compile(r"\[ERROR\]|^ERROR\b|^E: |got signal \d+|got exception|Assertion failure"),
    re.compile(r"^(?!.*\[(?:Warning|Note|System)\]).*\b(?:fatal )?error\b(?::| while)", re.IGNORECASE),
)
# These lines follow the cause; a server without its share directory writes that of the file of messages.
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
    """Return the first line of `text` that names an error, else its last line; empty where it has none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if not _NOISE.search(line)] or lines
    named = (line for pattern in _ERRORS for line in told if pattern.search(line))
    return next(named, told[-1] if told else "")


def missing_libraries(text: str) -> str:
    """Name the libraries that ldd did not find, with their packages; empty where it found all."""
    names = dict.fromkeys(re.findall(r"^\s*(\S+) => not found", text, re.MULTILINE))
    return ", ".join(f"{name} of package {_PACKAGES[name]}" if name in _PACKAGES else name for name in names)


class FilterModule:
    """Offers the filters to Ansible."""

    def filters(self) -> dict[str, object]:
        """Map names to functions."""
        return {"first_error": first_error, "missing_libraries": missing_libraries}
