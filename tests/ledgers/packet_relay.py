"""Relays the packets between two TUN devices, each with a delay: `packet_relay.py NAMESPACE NEAR FAR`.

NEAR is the address of the device in this network namespace, FAR that in the namespace of this name. The ends
of a connection stay in their programs, as with a switch. A line on standard input sets the delay of a round
trip in microseconds.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
NETNS, CLONE_NEWNET = "/run/netns", 0x40000000
PR_SET_TIMERSLACK = 29
MTU = 1500
LIBC = ctypes.CDLL(None, use_errno=True)


def enter(namespace: str) -> None:
    """Enter the network namespace of a file."""
    with open(namespace, encoding="ascii") as file:
        if LIBC.setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")


def device(name: str, address: str, peer: str) -> int:
    """Create a TUN device in the current namespace."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    for words in (["address", "add", address, "peer", peer, "dev", name], ["link", "set", name, "up"]):
        subprocess.run(["ip", *words], check=True)
    return descriptor


def main() -> None:
    """Relay until standard input ends."""
    namespace, near, far = sys.argv[1:]
    # the default of 50 µs would be a part of the delay
    LIBC.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    ends = [device("relay-near", near, far)]
    enter(f"{NETNS}/{namespace}")
    ends.append(device("relay-far", far, near))
    print("ready", flush=True)
    late: list[tuple[float, int, int, bytes]] = []
    delay_s, sent = 0.0, 0
    while True:
        wait = max(0.0, late[0][0] - time.monotonic()) if late else None
        ready, _, _ = select.select([0, *ends], [], [], wait)
        now = time.monotonic()
        for end in ready:
            if end == 0:
                line = sys.stdin.readline()
                if not line:
                    return
                delay_s = float(line) / 2e6
                print("set", flush=True)
                continue
            packet = os.read(end, MTU)
            other = ends[end == ends[0]]
            sent += 1
            heapq.heappush(late, (now + delay_s, sent, other, packet))
        while late and late[0][0] <= time.monotonic():
            _, _, other, packet = heapq.heappop(late)
            os.write(other, packet)


if __name__ == "__main__":
    main()
