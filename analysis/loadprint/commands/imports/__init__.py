"""`loadprint import`: converts recordings of other tools to run directories, and checks printed tables."""
