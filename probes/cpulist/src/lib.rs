//! Parses the kernel's CPU lists, such as `0-3,8` (cpuset(7), "List format"), and its list of mounts, reads small
//! files of procfs and sysfs, and finds the interrupts of devices.

pub mod interrupts;
pub mod mountinfo;
mod set;
pub mod small_files;

pub use set::CpuSet;
