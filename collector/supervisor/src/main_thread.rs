//! The part of the daemon that jobs change: the shared state, and state.json with its resources.

use std::sync::Arc;

use anyhow::Result;

use crate::groups::Group;
use crate::state::Shared;
use crate::state_dir::OwnedResources;
use crate::state_dir::StateDir;

/// The state of the main thread.
#[derive(Debug)]
pub struct MainThread<'a> {
    pub shared: Arc<Shared>,
    pub dir: &'a StateDir,
    pub boot_id: String,
    /// The group of all processes.
    pub group: &'a Group,
    /// How many processes it has started.
    pub started: u64,
    pub namespaces_created: u32,
}

impl MainThread<'_> {
    /// Writes the resources that the next `start` must remove if this supervisor and its guard are
    /// killed.
    pub fn write_resources(&self) -> Result<()> {
        let state = self.shared.lock();
        let resources = OwnedResources {
            boot_id: self.boot_id.clone(),
            group: self.group.path().to_owned(),
            pid: std::process::id(),
            mounts: state.mounts.clone(),
            interfaces: state
                .namespaces
                .iter()
                .map(|netns| netns.host_interface.clone())
                .collect(),
            interrupts: state.interrupts.clone(),
            owned: state.owned.clone(),
        };
        drop(state);
        self.dir.write_json("state.json", &resources)
    }
}
