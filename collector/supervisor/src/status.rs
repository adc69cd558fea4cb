//! Builds the status document for progress displays, which is written once a second.

use std::path::Path;
use std::process;

use serde_json::Value;
use serde_json::json;

use crate::netns::PEER_INTERFACE;
use crate::state::State;

/// Limit on the characters of `last_line`.
const LINE_LIMIT: usize = 400;

/// The current document.
pub fn document(state: &mut State, dir: &Path) -> Value {
    let processes: Vec<Value> = state
        .processes
        .iter_mut()
        .map(|process| {
            let mut entry = json!({"name": process.name, "pid": process.pid});
            process.state.describe(&mut entry);
            entry["cpus"] = json!(process.cpus.map(|cpus| cpus.to_string()));
            entry["placement"] = json!(process.placement);
            let line: String = process.stdout.last_line().chars().take(LINE_LIMIT).collect();
            entry["last_line"] = json!(line);
            entry
        })
        .collect();
    let namespaces: Vec<Value> = state
        .namespaces
        .iter()
        .map(|netns| json!({"name": netns.name, "host_interface": netns.host_interface, "peer_interface": PEER_INTERFACE}))
        .collect();
    json!({
        "pid": process::id(),
        "state_dir": dir,
        "started": humantime::format_rfc3339_millis(state.started).to_string(),
        "lease_left_s": state.lease_left().as_secs_f64().ceil(),
        "ending": state.ending,
        "ended": state.ending.filter(|_| state.ended),
        "left": state.left,
        "note": state.note,
        "processes": processes,
        "netns": namespaces,
        "mounts": state.resources.mounts,
        "owned": state.resources.owned,
    })
}
