//! The workloads themselves, one folder per suite.

pub mod arm;
pub mod oltp;
mod parallel;
