"""Checks whether results are valid: sides comparable, not client-bound, pinned, undisturbed, warm."""
