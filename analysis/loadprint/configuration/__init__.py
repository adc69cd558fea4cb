"""YAML files of the user: keys with their lines, checked types; and files for their owner alone."""
