//! Lists all workloads.

use crate::external::CommandWorkload;
use crate::suite::arm::ArmInsert;
use crate::suite::lookup::Lookup;
use crate::suite::oltp::bulk_insert::BulkInsert;
use crate::suite::oltp::scripts;
use crate::suite::tproc_c::TprocC;
use crate::workload::Workload;

/// All workloads.
pub static WORKLOADS: &[&dyn Workload] = &[
    &scripts::READ_WRITE,
    &scripts::READ_ONLY,
    &scripts::WRITE_ONLY,
    &scripts::POINT_SELECT,
    &scripts::UPDATE_INDEX,
    &scripts::UPDATE_NON_INDEX,
    &scripts::DELETE,
    &scripts::INSERT,
    &BulkInsert,
    &scripts::RANDOM_POINTS,
    &scripts::RANDOM_RANGES,
    &Lookup,
    &ArmInsert,
    &TprocC,
    &CommandWorkload,
];

/// Finds a workload by name.
pub fn find(name: &str) -> Option<&'static dyn Workload> {
    WORKLOADS
        .iter()
        .copied()
        .find(|workload| workload.descriptor().name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_workload_has_a_complete_and_unique_declaration() {
        let mut names = HashSet::new();
        for workload in WORKLOADS {
            let descriptor = workload.descriptor();
            assert!(
                names.insert(descriptor.name),
                "{} is listed twice",
                descriptor.name
            );
            assert!(!descriptor.types.is_empty() && !descriptor.operation.is_empty());
            let mut options = HashSet::new();
            let external = crate::external::options_of(descriptor.name);
            let tables = descriptor
                .options
                .iter()
                .copied()
                .chain([external, crate::options::COMMON]);
            for spec in tables.flatten() {
                assert!(
                    options.insert(spec.name),
                    "{}: --{} twice",
                    descriptor.name,
                    spec.name
                );
                assert!(
                    !spec.help.is_empty() && !spec.name.contains('_'),
                    "--{}",
                    spec.name
                );
                if let Some(default) = spec.default {
                    assert!(spec.parse(default).is_ok(), "--{}: default {default}", spec.name);
                }
            }
        }
    }
}
