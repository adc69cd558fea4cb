"""What a host can do at most: the tools' outputs read, put into `ceilings.json`, and shown."""
