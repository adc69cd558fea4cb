"""What the server itself counted in the measure phase: SHOW GLOBAL STATUS at its end less at its begin.

The generator reads it outside its clock; its own second SHOW is one question, which is taken off. Any other
client of the same server is in it too.
"""

from __future__ import annotations

from loadprint.quantities import Quantities
from loadprint.recording import Run

# `Questions` leaves out COM_STMT_PREPARE, _CLOSE and _RESET; the Com_stmt_ counters show them
COUNTED = (
    "Questions",
    "Com_stmt_prepare",
    "Com_stmt_execute",
    "Com_stmt_close",
    "Com_prepare_sql",
    "Bytes_received",
    "Bytes_sent",
)
OWN = {"Questions": 1}


def status(run: Run, seconds: float, out: Quantities) -> None:
    """Add `status.<name>` a second. Counters that this server lacks are said to be lacking."""
    server = run.server or {}
    begin, end = server.get("status_begin"), server.get("status_end")
    if not isinstance(begin, dict) or not isinstance(end, dict):
        out.lack("status", "the server's status was not read at both ends of the measure phase")
        return
    for name in COUNTED:
        try:
            grown = int(end[name]) - int(begin[name])
        except (KeyError, TypeError, ValueError):
            out.lack(f"status.{name}", f"this server does not count {name}")
            continue
        if grown < 0:
            out.lack(f"status.{name}", "the server restarted in the measure phase")
        else:
            out.put(f"status.{name}", max(0, grown - OWN.get(name, 0)) / seconds, None)
