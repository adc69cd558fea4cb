//! What the recorder may do once its probes are open: what their later reads need, and nothing else (capabilities(7)).
//!
//! Capabilities belong to a thread. The recorder narrows itself while it has one thread; those that read beside the ticks are
//! made at the first tick and inherit what it has.

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

use crate::session::Opened;

/// Writing into directories of another user, and removing what they hold there.
const WRITES: CapabilitySet = CapabilitySet::DAC_OVERRIDE;
/// The manifest has a checksum of every file of the run, whoever wrote it, and a pid file may lie in the server's own directory.
const READS: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;

/// Gives up every capability but those that the running `probes` declared and those that writing into `dirs` needs.
///
/// # Errors
/// When the kernel refuses; some may be given up by then.
pub fn narrow(probes: &[Opened], dirs: &[&Path]) -> anyhow::Result<()> {
    let running = probes.iter().filter(|opened| opened.probe.is_ok());
    let later = running.fold(READS, |all, opened| all | opened.entry.capabilities);
    keep(later, dirs).context("cannot give up capabilities")
}

fn keep(mut later: CapabilitySet, dirs: &[&Path]) -> Result<(), Errno> {
    let has = capabilities(None)?;
    // Whether a directory can be written without the capability is asked without it.
    set_capabilities(
        None,
        CapabilitySets {
            effective: has.effective - WRITES,
            ..has
        },
    )?;
    if dirs.iter().any(|dir| !is_writable(dir)) {
        later |= WRITES;
    }
    let kept = later & has.permitted;
    if has.effective.contains(CapabilitySet::SETPCAP) {
        bound(kept)?;
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

/// A directory that is not there yet is not one that this could help with.
fn is_writable(dir: &Path) -> bool {
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    let access = Access::WRITE_OK | Access::EXEC_OK;
    accessat(CWD, dir, access, AtFlags::EACCESS) != Err(Errno::ACCESS)
}

/// Takes all but `kept` from what a program that this one starts could have.
fn bound(kept: CapabilitySet) -> Result<(), Errno> {
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        match capability_is_in_bounding_set(one) {
            Ok(true) if !kept.contains(one) => remove_capability_from_bounding_set(one)?,
            Ok(_) => {}
            // Beyond the last one that this kernel knows.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
