//! The recording format.
