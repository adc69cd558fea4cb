"""`loadprint inspect`: reports the contents of a run directory, missed data, and the recorder's cost."""
