"""`loadprint inspect`: reports contents and missed data of a run, and the recorder's cost."""
