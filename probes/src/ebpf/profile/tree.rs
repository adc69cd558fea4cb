//! The call tree of all sampled stacks.

use std::collections::BTreeMap;
use std::collections::HashMap;

use serde::Serialize;

use super::kallsyms::Kallsyms;
use super::modules::Module;
use super::modules::Modules;
use super::modules::Place;
use crate::symbols::Answer;
use crate::symbols::MAX_NAME;
use crate::symbols::Request;
use crate::symbols::Symbols;
use crate::symbols::boundary;

/// A place by the number of its module.
pub type Frame = (u32, Place);

/// The most nodes, up to 7 MB: a minute of MySQL has 4,000, later ones have ever fewer new ones.
/// Then a stack with a new node counts as unknown.
const MAX_NODES: usize = 1 << 17;

/// The frame of addresses in no known place.
pub const UNKNOWN: Frame = (Modules::UNKNOWN, Place::Module);

/// The nodes of the call tree. A node's parent has a lower number.
#[derive(Debug, Default)]
pub struct Tree {
    frames: Vec<Frame>,
    frame_numbers: HashMap<Frame, u32>,
    nodes: Vec<(Option<u32>, u32)>,
    node_numbers: HashMap<(Option<u32>, u32), u32>,
}

/// The content of `stacks.json`.
#[derive(Debug, Serialize)]
pub struct Stacks<'a> {
    /// The sampled event.
    pub event: &'static str,
    /// Samples per second and CPU.
    pub frequency_hz: u64,
    /// Samples that did not fit into the ring buffer.
    pub lost: u64,
    /// Why kernel frames have no symbols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// The modules.
    pub modules: Vec<ModuleEntry<'a>>,
    /// Module and symbol of each frame.
    pub frames: Vec<(u32, Option<String>)>,
    /// Parent (or -1) and frame of each node.
    pub nodes: Vec<(i64, u32)>,
}

/// A module in `stacks.json`.
#[derive(Debug, Serialize)]
pub struct ModuleEntry<'a> {
    /// Its path, or a name in brackets.
    pub path: &'a str,
    /// Its build ID.
    pub build_id: Option<&'a str>,
}

impl Tree {
    /// The node of a stack, whose frames come from the outermost one.
    pub fn node(&mut self, stack: impl Iterator<Item = Frame>) -> Option<u32> {
        let mut node = None;
        for frame in stack {
            match self.child(node, frame, MAX_NODES) {
                Some(child) => node = Some(child),
                None => return self.child(None, UNKNOWN, MAX_NODES + 1),
            }
        }
        node
    }

    /// The child of a node with this frame; `None` if it is new and there are `limit` nodes.
    fn child(&mut self, parent: Option<u32>, frame: Frame, limit: usize) -> Option<u32> {
        let known = self.frame_numbers.get(&frame).copied();
        if let Some(child) = known.and_then(|number| self.node_numbers.get(&(parent, number))) {
            return Some(*child);
        }
        if self.nodes.len() >= limit {
            return None;
        }
        let number = known.unwrap_or(self.frames.len() as u32);
        if known.is_none() {
            self.frames.push(frame);
            self.frame_numbers.insert(frame, number);
        }
        let child = self.nodes.len() as u32;
        self.nodes.push((parent, number));
        self.node_numbers.insert((parent, number), child);
        Some(child)
    }

    /// Module and name of every frame. A function whose name cannot be read has its address, an
    /// address whose function cannot be read its offset, as perf prints them (`mysqld+0x1f3a0`).
    pub fn names(
        &self,
        modules: &[Module],
        kernel: &Kallsyms,
        symbols: &Symbols,
    ) -> Vec<(u32, Option<String>)> {
        let mut functions: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (module, place) in &self.frames {
            if let Place::Function(address) = place {
                functions.entry(*module).or_default().push(*address);
            }
        }
        let mut names: HashMap<Frame, String> = HashMap::new();
        for (module, mut functions) in functions {
            functions.sort_unstable();
            let named = |(function, name)| ((module, Place::Function(function)), name);
            if module == Modules::KERNEL {
                names.extend(kernel.names(functions.into_iter()).into_iter().map(named));
            } else {
                let found = read_names(symbols, module, &functions).into_iter();
                let found = functions.into_iter().zip(found);
                names.extend(found.filter_map(|(function, name)| Some(named((function, name?)))));
            }
        }
        let name = |frame: &Frame| match (names.remove(frame), frame.1) {
            (None, Place::Function(place) | Place::Offset(place)) => {
                let path = modules
                    .get(frame.0 as usize)
                    .map_or("", |module| module.path.as_str());
                let file = path.rsplit('/').next().unwrap_or(path);
                Some(format!("{file}+{place:#x}"))
            }
            (name, _) => name,
        };
        let names: Vec<_> = self.frames.iter().map(name).collect();
        self.frames.iter().map(|(module, _)| *module).zip(names).collect()
    }

    /// Parent (or -1) and frame of each node.
    pub fn nodes(&self) -> Vec<(i64, u32)> {
        self.nodes
            .iter()
            .map(|(parent, frame)| (parent.map_or(-1, i64::from), *frame))
            .collect()
    }
}

/// The names of functions of a module; none if they cannot be read.
fn read_names(symbols: &Symbols, module: u32, functions: &[u64]) -> Vec<Option<String>> {
    let request = Request::Names {
        module,
        functions: functions.to_vec(),
    };
    let mut names = match symbols.ask::<Vec<Option<String>>>(&request) {
        Answer::Ready(names, _) => names,
        Answer::Later | Answer::Busy | Answer::Failed(_) => vec![],
    };
    for name in names.iter_mut().flatten() {
        name.truncate(boundary(name, MAX_NAME));
    }
    names.resize(functions.len(), None);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_with_the_same_callers_share_nodes() {
        let mut tree = Tree::default();
        let function = |address| (2, Place::Function(address));
        let (main, work, read) = (function(1), function(2), (0, Place::Module));
        assert_eq!(tree.node([].into_iter()), None);
        let first = tree.node([main, work].into_iter());
        assert_eq!(tree.node([main, work].into_iter()), first);
        let below = tree.node([main, work, read].into_iter()).unwrap();
        let recursive = tree.node([main, work, work].into_iter()).unwrap();
        assert_eq!(tree.nodes(), [(-1, 0), (0, 1), (1, 2), (1, 1)]);
        assert_eq!((first, below, recursive), (Some(1), 2, 3));
    }

    #[test]
    fn stacks_beyond_the_limit_are_unknown() {
        let mut tree = Tree::default();
        let function = |address| (2, Place::Function(address));
        let known = tree.node([function(1), function(2)].into_iter());
        for offset in 0..2 * MAX_NODES as u64 {
            assert!(tree.node([(3, Place::Offset(offset))].into_iter()).is_some());
        }
        let nodes = tree.nodes();
        assert_eq!(nodes.len(), MAX_NODES + 1);
        assert_eq!(tree.node([function(1), function(2)].into_iter()), known);
        let new = tree.node([function(1), function(3)].into_iter()).unwrap();
        let (parent, frame) = nodes[new as usize];
        assert_eq!((parent, tree.frames[frame as usize]), (-1, UNKNOWN));
    }
}
