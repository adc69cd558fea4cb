//! The call tree of all sampled stacks.

use std::collections::HashMap;

use blazesym::symbolize::Symbolizer;
use serde::Serialize;

use super::kallsyms::Kallsyms;
use super::modules::Modules;

/// A function by its module and first address; `None` for addresses without a symbol.
pub type Frame = (u32, Option<u64>);

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
            let frames = &mut self.frames;
            let frame = *self.frame_numbers.entry(frame).or_insert_with(|| {
                frames.push(frame);
                frames.len() as u32 - 1
            });
            let nodes = &mut self.nodes;
            let child = *self.node_numbers.entry((node, frame)).or_insert_with(|| {
                nodes.push((node, frame));
                nodes.len() as u32 - 1
            });
            node = Some(child);
        }
        node
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
            let named = |(function, name)| ((number, Some(function)), name);
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
}
