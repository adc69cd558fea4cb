"""The commands of `loadprint`: each builds on the spine, and none is used by it."""
