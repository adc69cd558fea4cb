//! Sources a recorder can read.
