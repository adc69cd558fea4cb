//! Lists all workloads.

use crate::external::CommandWorkload;
use crate::suite::arm::ArmInsert;
use crate::suite::oltp::bulk_insert::BulkInsert;
use crate::suite::oltp::scripts;
use crate::suite::tproc_c::TprocC;
use crate::workload::Workload;

/// All workloads.
pub static WORKLOADS: &[&dyn Workload] = &[
    &scripts::READ_WRITE,
    &scripts::READ_ONLY,
    &scripts::WRITE_ONLY,
    &scripts::POINT_SELECTS,
    &scripts::UPDATE_INDEX,
    &scripts::UPDATE_NON_INDEX,
    &scripts::DELETE,
    &scripts::INSERT,
    &BulkInsert,
    &scripts::RANDOM_POINTS,
    &scripts::RANDOM_RANGES,
    &scripts::LOOKUP,
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
    use super::*;
    use crate::external;
    use crate::options::OptionSpec;
    use crate::options::Values;

    #[test]
    fn every_workload_has_a_complete_declaration() {
        for workload in WORKLOADS {
            let descriptor = workload.descriptor();
            assert!(!descriptor.types.is_empty() && !descriptor.operation.is_empty());
            assert!(
                !external::generators(descriptor).is_empty(),
                "{}",
                descriptor.name
            );
            let specs: Vec<OptionSpec> = crate::cli::specs(*workload).copied().collect();
            for spec in &specs {
                assert!(
                    !spec.help.is_empty() && !spec.name.contains('_'),
                    "--{}",
                    spec.name
                );
            }
            let values = Values::defaults(&[&specs], &[]);
            // reads each struct of options
            let load = workload.load(&values, 1, 1);
            assert!(
                load.is_ok() || descriptor.name == "command",
                "{}: {:?}",
                descriptor.name,
                load.err()
            );
        }
    }
}
