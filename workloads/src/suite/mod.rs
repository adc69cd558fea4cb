//! The built-in workloads, one folder per suite.

pub mod arm;
pub mod insert_benchmark;
pub mod lookup;
pub mod oltp;
mod parallel;
mod sbtest;
pub mod tproc_c;
