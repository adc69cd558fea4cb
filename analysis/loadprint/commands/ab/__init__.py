"""`loadprint ab`: switches a change on and off on a live server, and measures its effect.

`experiment` → `schedule` → `start` → `conduct` → run directory → `windows` → `gates`, `effects` → `Result` →
text.
"""
