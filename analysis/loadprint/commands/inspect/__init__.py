"""`loadprint inspect`: what a run directory contains, what is missing, and what the recorder cost."""
