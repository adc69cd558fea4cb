"""Runs one SQL statement over a unix socket: `python sql.py OPTION_FILE STATEMENT`; prints the first value.

What the `mysql` client does in an experiment on a real server; the test machines have none. The protocol as
the manual has it: handshake version 10, caching_sha2_password, which takes the plain password over a socket.
"""

from __future__ import annotations

import configparser
import hashlib
import socket
import struct
import sys
from pathlib import Path

# LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH
CAPABILITIES = 0x1 | 0x200 | 0x8000 | 0x80000
FULL = b"\x01\x04"


class Connection:
    """One connection, logged in."""

    def __init__(self, defaults: Path) -> None:
        options = configparser.ConfigParser()
        options.read(defaults, encoding="utf-8")
        account = options["client"]
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(account["socket"])
        self._number = 0
        self._log_in(account["user"].encode(), account["password"].encode())

    def query(self, statement: str) -> str:
        """Run a statement: the first value of its first row; RuntimeError is the server's answer."""
        self._number = -1
        self._send(b"\x03" + statement.encode())
        first = self._read()
        if first[0] == 0:
            return ""
        for _ in range(first[0]):
            self._read()
        self._read()
        row = self._read()
        return row[1 : 1 + row[0]].decode() if row[0] not in (0xFB, 0xFE) else ""

    def _log_in(self, user: bytes, password: bytes) -> None:
        hello = self._read()
        at = hello.index(b"\0", 1) + 1 + 4
        salt = hello[at : at + 8] + hello[at + 27 : at + 39]
        answer = struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 255) + user + b"\0"
        self._send(answer + bytes([32]) + scramble(password, salt) + b"caching_sha2_password\0")
        while (told := self._read())[0] != 0:
            if told[:2] == FULL:
                self._send(password + b"\0")

    def _read(self) -> bytes:
        head = self._exactly(4)
        self._number = head[3]
        body = self._exactly(int.from_bytes(head[:3], "little"))
        if body[0] == 0xFF:
            raise RuntimeError(body[9:].decode(errors="replace"))
        return body

    def _send(self, body: bytes) -> None:
        self._socket.sendall(len(body).to_bytes(3, "little") + bytes([self._number + 1]) + body)

    def _exactly(self, count: int) -> bytes:
        read = b""
        while len(read) < count:
            more = self._socket.recv(count - len(read))
            if not more:
                raise RuntimeError("the server closed the connection")
            read += more
        return read


def scramble(password: bytes, salt: bytes) -> bytes:
    """XOR of SHA256(password) and SHA256(SHA256(SHA256(password)), salt)."""
    once = hashlib.sha256(password).digest()
    mask = hashlib.sha256(hashlib.sha256(once).digest() + salt).digest()
    return bytes(a ^ b for a, b in zip(once, mask, strict=True))


if __name__ == "__main__":
    print(Connection(Path(sys.argv[1])).query(sys.argv[2]))
