"""A/B on a real server: `tests/with-server .venv/bin/pytest -c analysis/pyproject.toml tests/ab`."""
