"""The rows of tables and their charts: one entry each, in the TOML file of its subject."""
