"""`loadprint ab`: switches a change on and off on a live server, and measures its effect.

`experiment` → `schedule` → `start` → `conduct` → run directory → `windows` → `gates`, `effects` → `Result` →
text.
"""

from loadprint.commands.ab.result import BASELINE, TREATMENT, Check, Effect, Result, Window

__all__ = ["BASELINE", "TREATMENT", "Check", "Effect", "Result", "Window"]
