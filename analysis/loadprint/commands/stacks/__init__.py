"""Command `stacks`."""
