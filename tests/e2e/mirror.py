"""Gives the hosts of a bench a mirror of packages: a proxy on the control node."""

from __future__ import annotations

import ctypes
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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
def mirror(network: Path, address: str, real: str = DEBIAN) -> Iterator[str]:
    """Serve the mirror `real` in a network namespace; give its URL."""
    libc = ctypes.CDLL(None, use_errno=True)
    home, there = (os.open(path, os.O_RDONLY) for path in ("/proc/thread-self/ns/net", network))
    # a socket stays in the namespace in which it was made
    assert libc.setns(there, CLONE_NEWNET) == 0
    try:
        server = ThreadingHTTPServer((address, 0), type("Of", (Handler,), {"real": real}))
    finally:
        assert libc.setns(home, CLONE_NEWNET) == 0
        os.close(home)
        os.close(there)
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{address}:{server.server_port}"
        server.shutdown()
