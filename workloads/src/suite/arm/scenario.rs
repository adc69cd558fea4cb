//! The scenarios of ARM records: how many detail rows each record has.

/// The details of a record in addition to its fixed columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// As on the command line.
    pub name: &'static str,
    /// A parent correlator.
    pub parent: bool,
    /// Rows in `arm_metric`.
    pub metrics: usize,
    /// Rows in `arm_ctx`.
    pub contexts: usize,
}

/// A scenario of this name.
pub const fn scenario(name: &'static str, parent: bool, metrics: usize, contexts: usize) -> Scenario {
    Scenario {
        name,
        parent,
        metrics,
        contexts,
    }
}

/// The seven scenarios of the study.
pub const SCENARIOS: [Scenario; 7] = [
    scenario("simple", false, 0, 0),
    scenario("parent", true, 0, 0),
    scenario("metrics", false, 3, 0),
    scenario("ctx1", false, 0, 1),
    scenario("ctx5", false, 0, 5),
    scenario("ctx10", false, 0, 10),
    scenario("ctx20", false, 0, 20),
];

impl Scenario {
    /// Size of a record in a buffer.
    pub const fn record_bytes(self) -> usize {
        96 + 16 * self.parent as usize + 24 * self.metrics + 48 * self.contexts
    }
}
