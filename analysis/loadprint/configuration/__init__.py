"""Reads YAML files with the line of each key, checks their types, and writes private files."""
