"""Loadprint: recordings of workloads, read and compared."""
