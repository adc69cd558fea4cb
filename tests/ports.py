"""Ports for servers that tests start."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path


def free_port() -> int:
    """A port that nothing listens at, below those that the kernel gives to connections of others."""
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    # some hosts give out nearly all: then there are none below
    ports = range(10_000, ephemeral if ephemeral > 12_000 else 32_768)
    while True:
        port = random.choice(ports)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
