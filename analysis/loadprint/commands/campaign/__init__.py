"""`loadprint campaign`: checks campaign files, opens and closes their executions."""
