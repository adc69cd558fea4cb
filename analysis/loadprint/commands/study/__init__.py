"""Judges the claims of a published study against executions of its campaigns."""
