"""Ports for servers that tests start."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

_reservations: list[socket.socket] = []


def free_port() -> int:
    """Choose a TCP port on which no program listens, and reserve it until this process ends.

    The port is below those that the kernel assigns to outgoing connections, and no other caller of this
    function on this machine gets it: each port in use by a test is the name of an abstract unix socket.
    """
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    # some hosts assign nearly all ports: then none is below
    ports = range(10_000, ephemeral if ephemeral > 12_000 else 32_768)
    while True:
        port = random.choice(ports)
        reservation = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe, contextlib.suppress(OSError):
            reservation.bind(f"\0loadprint-test-port-{port}")
            probe.bind(("127.0.0.1", port))
            _reservations.append(reservation)
            return port
        reservation.close()
