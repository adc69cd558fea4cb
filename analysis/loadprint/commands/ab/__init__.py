"""`loadprint ab`: switches a change on and off on a live server, and measures its effect.

`experiment` → `schedule` → `start` → `conduct` → run directory → `windows` → `gates`, `effects` → `Result` →
text.
"""

from loadprint.commands.ab.result import BASELINE, TREATMENT, AbWindow, Check, Effect, Result

__all__ = ["BASELINE", "TREATMENT", "AbWindow", "Check", "Effect", "Result"]
