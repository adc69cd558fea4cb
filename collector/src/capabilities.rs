//! Drops the capabilities that the recorder does not need after its probes are open
//! (capabilities(7)).
//!
//! Capabilities belong to a thread. The recorder drops them while it has one thread. Background
//! threads start at the first tick and inherit the reduced sets.

use std::path::Path;

use anyhow::Context;
use rustix::fs::Access;
use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::accessat;
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
use rustix::thread::CapabilitySets;
use rustix::thread::capabilities;
use rustix::thread::capability_is_in_bounding_set;
use rustix::thread::clear_ambient_capability_set;
use rustix::thread::remove_capability_from_bounding_set;
use rustix::thread::set_capabilities;
use rustix::thread::set_no_new_privs;

use crate::opened_probe::OpenedProbe;

/// Writes and removes files in directories of another user.
const WRITES: CapabilitySet = CapabilitySet::DAC_OVERRIDE;
/// Reads the files of all users: the manifest has a checksum of each file of the run, and a pid
/// file may be in the server's directory.
const READS: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;

/// Drops all capabilities except those that the running `probes` declared and those for writing
/// into `dirs`.
///
/// # Errors
/// When the kernel refuses; some capabilities may be dropped already.
pub fn drop_unneeded(probes: &[OpenedProbe], dirs: &[&Path]) -> anyhow::Result<()> {
    let running = probes.iter().filter(|opened| opened.probe.is_ok());
    let needed = running.fold(READS, |all, opened| all | opened.entry.capabilities);
    keep(needed, dirs).context("cannot drop capabilities")
}

fn keep(mut needed: CapabilitySet, dirs: &[&Path]) -> Result<(), Errno> {
    let has = capabilities(None)?;
    // The check below must not use the capability that it is about.
    set_capabilities(
        None,
        CapabilitySets {
            effective: has.effective - WRITES,
            ..has
        },
    )?;
    if dirs.iter().any(|dir| !is_writable(dir)) {
        needed |= WRITES;
    }
    let kept = needed & has.permitted;
    if has.effective.contains(CapabilitySet::SETPCAP) {
        limit_bounding_set(kept)?;
    }
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    set_no_new_privs(true)
}

/// A missing directory counts as writable: the capability does not help with it.
fn is_writable(dir: &Path) -> bool {
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    let access = Access::WRITE_OK | Access::EXEC_OK;
    accessat(CWD, dir, access, AtFlags::EACCESS) != Err(Errno::ACCESS)
}

/// Removes all but `kept` from the bounding set, which limits the programs that this one starts.
fn limit_bounding_set(kept: CapabilitySet) -> Result<(), Errno> {
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        match capability_is_in_bounding_set(one) {
            Ok(true) if !kept.contains(one) => remove_capability_from_bounding_set(one)?,
            Ok(_) => {}
            // Past the kernel's last capability.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
