"""`loadprint campaign`: checks campaign files, and opens and closes the directories of their executions."""
