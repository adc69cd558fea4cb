"""The prose linter of the project."""
