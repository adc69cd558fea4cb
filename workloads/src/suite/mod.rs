//! The built-in workloads, one folder per suite.

pub mod arm;
pub mod lookup;
pub mod oltp;
mod parallel;
mod sbtest;
pub mod tproc_c;
