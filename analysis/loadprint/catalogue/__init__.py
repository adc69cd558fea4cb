"""The rows of all tables and charts: one entry each, in the TOML file of its subject."""
