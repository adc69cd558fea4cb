"""Gives hosts of a bench access to packages: a proxy on the control node, in front of a real mirror."""

from __future__ import annotations

import ctypes
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .hosts import NETWORKS, SUBNET, Host

DEBIAN = "http://deb.debian.org/debian"
CLONE_NEWNET = 0x40000000  # include/uapi/linux/sched.h


class Handler(BaseHTTPRequestHandler):
    """Answers GET with the real mirror's answer."""

    real: str

    def do_GET(self) -> None:
        """Pass the request on."""
        try:
            with urllib.request.urlopen(self.real + self.path) as answer:
                status, content = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, content = error.code, b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def packages(*hosts: Host, real: str = DEBIAN, suite: str = "bookworm main") -> Iterator[None]:
    """Name the mirror `real` as the only source of packages of the hosts, which have no lists of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    home, there = (os.open(path, os.O_RDONLY) for path in ("/proc/thread-self/ns/net", NETWORKS / "control"))
    # a socket stays in the namespace in which it was made
    assert libc.setns(there, CLONE_NEWNET) == 0
    try:
        server = ThreadingHTTPServer((f"{SUBNET}1", 0), type("Of", (Handler,), {"real": real}))
    finally:
        assert libc.setns(home, CLONE_NEWNET) == 0
        os.close(home)
        os.close(there)
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for host in hosts:
            host.shell(
                "rm -rf /var/lib/apt/lists/* /etc/apt/sources.list.d/*;"
                f"echo 'deb http://{SUBNET}1:{server.server_port} {suite}' >/etc/apt/sources.list"
            )
        yield
        server.shutdown()
