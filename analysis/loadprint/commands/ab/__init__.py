"""`loadprint ab`: switches a change on and off on a live server, and measures its effect.

`experiment` → `schedule` → `start` → `conduct` → run directory → `windows` → `gates`, `effects` → `Result` →
text.
"""

from loadprint.commands.ab.result import AbWindow, Check, Effect, Result
from loadprint.reading.names import BASELINE, TREATMENT

__all__ = ["BASELINE", "TREATMENT", "AbWindow", "Check", "Effect", "Result"]
