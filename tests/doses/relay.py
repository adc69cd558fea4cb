"""Relays MySQL connections between unix sockets; delays statements, or adds a text to them.

`relay.py LISTEN SERVER`: commands on standard input are `delay MS` (per round trip), `add TEXT`, `report`.
"""

from __future__ import annotations

import heapq
import json
import select
import socket
import sys
import time
from typing import Any

COMMANDS = 0  # standard input
COM_QUERY = 3
CHANGED, HEAD = b"UPDATE ", 16


class Relay:
    """All connections; each direction has half of the delay."""

    def __init__(self, listen: str, server: str) -> None:
        self.server = server
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(listen)
        self.listener.listen()
        self.other: dict[socket.socket, socket.socket] = {}
        self.clients: dict[socket.socket, bytes] = {}  # with what is not a whole packet yet
        self.late: list[tuple[float, int, socket.socket, bytes, float]] = []
        self.delay_s, self.text, self.sent, self.kept_s = 0.0, b"", 0, 0.0

    def serve(self) -> None:
        """Relay until standard input ends."""
        print("ready", flush=True)
        while True:
            timeout = max(0.0, self.late[0][0] - time.monotonic()) if self.late else None
            # select has a finer timeout than epoll
            open_: list[Any] = [COMMANDS, self.listener, *self.other]
            ready, _, _ = select.select(open_, [], [], timeout)
            for source in ready:
                if source == COMMANDS:
                    if not self._obey(sys.stdin.readline()):
                        return
                elif source is self.listener:
                    self._accept()
                elif source in self.other:
                    self._relay(source)
            while self.late and self.late[0][0] <= time.monotonic():
                _, _, target, data, received = heapq.heappop(self.late)
                target.sendall(data)
                self.kept_s += time.monotonic() - received

    def _obey(self, line: str) -> bool:
        word, _, value = line.rstrip("\n").partition(" ")
        if word == "delay":
            self.delay_s = float(value) / 1000
        elif word == "add":
            self.text = value.encode()
        print(json.dumps(self.kept_s), flush=True)
        return bool(word)

    def _accept(self) -> None:
        client, _ = self.listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.server)
        self.other |= {client: server, server: client}
        self.clients[client] = b""

    def _relay(self, source: socket.socket) -> None:
        received, data = time.monotonic(), source.recv(1 << 20)
        if not data:
            self._close(source)
            return
        if source in self.clients:
            data = self._whole(source, data)
        if self.delay_s:
            self.sent += 1
            entry = (received + self.delay_s / 2, self.sent, self.other[source], data, received)
            heapq.heappush(self.late, entry)
        else:
            self.other[source].sendall(data)
            self.kept_s += time.monotonic() - received

    def _whole(self, client: socket.socket, data: bytes) -> bytes:
        """The whole packets that the client has sent, the text added to its statements."""
        rest, out = self.clients[client] + data, b""
        while len(rest) >= 4 and len(rest) >= (end := 4 + int.from_bytes(rest[:3], "little")):
            number, body, rest = rest[3], rest[4:end], rest[end:]
            # the text may follow the number of query attributes
            if number == 0 and body[0] == COM_QUERY and CHANGED in body[:HEAD]:
                body += self.text
            out += len(body).to_bytes(3, "little") + bytes([number]) + body
        self.clients[client] = rest
        return out

    def _close(self, source: socket.socket) -> None:
        target = self.other.pop(source)
        self.other.pop(target, None)
        self.late = [entry for entry in self.late if entry[2] not in (source, target)]
        for end in (source, target):
            self.clients.pop(end, None)
            end.close()


if __name__ == "__main__":
    Relay(*sys.argv[1:]).serve()
