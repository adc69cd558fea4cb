"""`loadprint import`: imports other tools' recordings, and checks printed tables."""
