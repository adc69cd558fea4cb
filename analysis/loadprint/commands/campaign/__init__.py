"""Campaign files, what they resolve to, and the directories of their executions."""
