"""A/B on a live server: flips a change on and off under production's own load, and says what it did.

`experiment` → `controller`, and `keeper`, which flips → run directory → `windows` → `gates`, `effects` →
`Result` → text.
"""

from loadprint.commands.ab.result import BASELINE, TREATMENT, Check, Effect, Result, Window

__all__ = ["BASELINE", "TREATMENT", "Check", "Effect", "Result", "Window"]
