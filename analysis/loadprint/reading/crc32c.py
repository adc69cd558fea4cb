"""Computes the CRC-32C (Castagnoli, RFC 3720 appendix B.4) of a file with google-crc32c."""

from __future__ import annotations

from pathlib import Path

import google_crc32c

BLOCK = 1 << 20


def crc32c_file(path: Path) -> int:
    """CRC-32C of a file's content, an unsigned 32-bit integer. Raises OSError."""
    crc = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            crc = int(google_crc32c.extend(crc, block))
    return crc
