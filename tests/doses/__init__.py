"""Doses of waiting and of CPU time on a real server: each appears in its row of a ledger, and in no other."""
