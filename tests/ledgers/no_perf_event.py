"""Runs a command in which perf_event_open(2) fails, as in a container: `python no_perf_event.py COMMAND…`."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

CALL = {"x86_64": 298, "aarch64": 241}
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
PR_SET_NO_NEW_PRIVS = 38
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, EPERM = 0x7FFF0000, 0x00050001


def main() -> None:
    """Install the filter and execute the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    # struct sock_filter: the number of the call is the first field of struct seccomp_data
    rules = [
        (LOAD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, CALL[platform.machine()]),
        (RETURN, 0, 0, EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(program)))
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0)):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
