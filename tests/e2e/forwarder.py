"""Forwards Ethernet frames between interfaces like a switch, with delay and loss; run in a network namespace.

Kernels without netem cannot delay packets. The segments that the sender's kernel has not split yet keep their
offload header (PACKET_VNET_HDR), so that checksums and large segments pass unchanged.

    forwarder.py IFACE...     commands on standard input: `delay MS`, `loss SHARE`; they apply to frames
                              between two interfaces other than the first, which is the control node's
"""

from __future__ import annotations

import contextlib
import heapq
import random
import select
import socket
import struct
import sys
import time

ETH_P_ALL = 3
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
HEADER = 10  # struct virtio_net_hdr


def opened(name: str) -> socket.socket:
    """Open an interface for whole frames, without those that this program sends."""
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    port.setsockopt(
        SOL_PACKET, 1, struct.pack("iHH8s", socket.if_nametoindex(name), 1, 0, b"")
    )  # promiscuous
    port.bind((name, ETH_P_ALL))
    port.setblocking(False)
    return port


def main() -> None:  # noqa: PLR0912  one loop, without calls for each frame
    """Forward until standard input ends."""
    ports = [opened(name) for name in sys.argv[1:]]
    control = ports[0]
    delay_s, loss = 0.0, 0.0
    known: dict[bytes, socket.socket] = {}
    late: list[tuple[float, int, socket.socket, bytes]] = []
    count = 0
    draw = random.Random(1)
    poller = select.epoll()
    by_fd = {port.fileno(): port for port in ports}
    for fd in [0, *by_fd]:
        poller.register(fd, select.EPOLLIN)
    print("ready", flush=True)
    while True:
        timeout = max(0.0, late[0][0] - time.monotonic()) if late else -1
        # epoll's timeouts are whole milliseconds, rounded up: the last one is polled
        for fd, _ in poller.poll(timeout if timeout < 0 or timeout > 0.0015 else 0):
            if fd == 0:
                word, _, value = sys.stdin.readline().partition(" ")
                if not word:
                    return
                if word == "delay":
                    delay_s = float(value) / 1000
                else:
                    loss = float(value)
                print("done", flush=True)
                continue
            source = by_fd[fd]
            try:
                frame = source.recv(1 << 17)
            except BlockingIOError:
                continue
            known[frame[HEADER + 6 : HEADER + 12]] = source
            found = known.get(frame[HEADER : HEADER + 6])
            for target in [found] if found else [port for port in ports if port is not source]:
                between = control not in (source, target)
                if between and loss and draw.random() < loss:
                    continue
                if between and delay_s:
                    count += 1
                    heapq.heappush(late, (time.monotonic() + delay_s, count, target, frame))
                else:
                    send(target, frame)
        while late and late[0][0] <= time.monotonic():
            _, _, target, frame = heapq.heappop(late)
            send(target, frame)


def send(port: socket.socket, frame: bytes) -> None:
    """Send a frame; a full queue or an interface that is down drops it, as a switch does."""
    with contextlib.suppress(OSError):
        port.send(frame)


if __name__ == "__main__":
    main()
