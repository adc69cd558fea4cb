//! The call tree of all sampled stacks.

use std::collections::HashMap;

use blazesym::symbolize::Symbolizer;
use serde::Serialize;

use super::kallsyms::Kallsyms;
use super::modules::Modules;

/// A function by its module and first address; `None` for addresses without a symbol.
pub type Frame = (u32, Option<u64>);

/// The most nodes, up to 7 MB: a minute of MySQL has 4,000, later ones have ever fewer new ones.
/// Then a stack with a new node counts as unknown.
const MAX_NODES: usize = 1 << 17;

/// The longest name of a symbol in characters: expanded C++ templates have no limit.
const MAX_NAME: usize = 1000;

/// The frame of addresses in no known place.
pub const UNKNOWN: Frame = (Modules::UNKNOWN, None);

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

    /// The names of all frames.
    pub fn names(&self, modules: &Modules, kernel: &Kallsyms) -> Vec<(u32, Option<String>)> {
        let mut names: HashMap<Frame, String> = HashMap::new();
        let symbolizer = Symbolizer::builder()
            .enable_code_info(false)
            .enable_inlined_fns(false)
            .build();
        for (number, module) in (0..).zip(modules.list()) {
            let mut functions: Vec<u64> = self
                .frames
                .iter()
                .filter(|(of_frame, _)| *of_frame == number)
                .filter_map(|(_, function)| *function)
                .collect();
            functions.sort_unstable();
            let named = |(function, mut name): (u64, String)| {
                if name.len() > MAX_NAME {
                    name = name.chars().take(MAX_NAME).collect();
                }
                ((number, Some(function)), name)
            };
            if number == Modules::KERNEL {
                names.extend(kernel.names(functions.into_iter()).into_iter().map(named));
            } else {
                let found = module.names(&symbolizer, &functions).into_iter();
                let found = functions.into_iter().zip(found);
                names.extend(found.filter_map(|(function, name)| Some(named((function, name?)))));
            }
        }
        self.frames
            .iter()
            .map(|frame| (frame.0, names.get(frame).cloned()))
            .collect()
    }

    /// Parent (or -1) and frame of each node.
    pub fn nodes(&self) -> Vec<(i64, u32)> {
        self.nodes
            .iter()
            .map(|(parent, frame)| (parent.map_or(-1, i64::from), *frame))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_with_the_same_callers_share_nodes() {
        let mut tree = Tree::default();
        let (main, work, read) = ((2, Some(1)), (2, Some(2)), (0, None));
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
        let known = tree.node([(2, Some(1)), (2, Some(2))].into_iter());
        for function in 0..2 * MAX_NODES as u64 {
            assert!(tree.node([(3, Some(function))].into_iter()).is_some());
        }
        let nodes = tree.nodes();
        assert_eq!(nodes.len(), MAX_NODES + 1);
        assert_eq!(tree.node([(2, Some(1)), (2, Some(2))].into_iter()), known);
        let new = tree.node([(2, Some(1)), (2, Some(3))].into_iter()).unwrap();
        let (parent, frame) = nodes[new as usize];
        assert_eq!((parent, tree.frames[frame as usize]), (-1, UNKNOWN));
    }
}
