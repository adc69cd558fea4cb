"""Names that a recording uses and that need no package: `loadprint ab revert` runs without any."""

LOAD = "load"  # the generator's role
BASELINE, TREATMENT = "baseline", "treatment"  # phases of an A/B experiment, for each of its windows
