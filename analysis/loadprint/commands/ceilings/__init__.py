"""`loadprint ceilings`: reads the tools' outputs, writes `ceilings.json`, and prints it."""
