//! ARM records and the buffers they travel in. The values are random, their sizes and cardinalities fixed.

use crate::random::Rng;

/// What a record carries beside its fixed columns.
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

const fn scenario(name: &'static str, parent: bool, metrics: usize, contexts: usize) -> Scenario {
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

    /// Records in a buffer of so many bytes, at least one.
    pub const fn records_in(self, bytes: usize) -> usize {
        let records = bytes / self.record_bytes();
        if records == 0 { 1 } else { records }
    }
}

/// Rows of `arm_tran_def`, `arm_metric_def` and `arm_ctx_def`.
pub const DEFINITIONS: [(&str, usize); 3] =
    [("arm_tran_def", 50), ("arm_metric_def", 3), ("arm_ctx_def", 20)];

/// A correlator.
pub type Correlator = [u8; 16];

/// The fixed part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    pub def_id: i64,
    pub app_id: i64,
    pub user_id: i64,
    pub start_us: i64,
    pub resp_ns: i64,
    pub status: i64,
    pub corr: Correlator,
    pub parent_corr: Option<Correlator>,
}

/// A buffer: records with their detail rows, `metrics` and `contexts` of the scenario per record.
#[derive(Debug, Default)]
pub struct Buffer {
    pub records: Vec<Record>,
    pub metrics: Vec<i64>,
    pub contexts: Vec<[u8; 32]>,
}

/// Makes records.
#[derive(Debug)]
pub struct Source {
    scenario: Scenario,
    rng: Rng,
    now_us: i64,
}

impl Source {
    /// The stream of `rng`; the first record starts at a fixed moment, so that the same seed gives the same rows.
    pub fn new(scenario: Scenario, rng: Rng) -> Self {
        Self {
            scenario,
            rng,
            now_us: 1_700_000_000_000_000,
        }
    }

    /// Fills a buffer with so many records.
    pub fn fill(&mut self, buffer: &mut Buffer, records: usize) {
        buffer.records.clear();
        buffer.metrics.clear();
        buffer.contexts.clear();
        for _ in 0..records {
            let record = self.record();
            buffer.records.push(record);
            for _ in 0..self.scenario.metrics {
                buffer.metrics.push(self.rng.uniform(0, 1_000_000_000));
            }
            for _ in 0..self.scenario.contexts {
                let mut value = [0; 32];
                self.hexadecimal(&mut value);
                buffer.contexts.push(value);
            }
        }
    }

    fn record(&mut self) -> Record {
        let rng = &mut self.rng;
        self.now_us += rng.uniform(0, 100);
        Record {
            def_id: rng.uniform(1, 50),
            app_id: rng.uniform(1, 10),
            user_id: rng.uniform(1, 1000),
            start_us: self.now_us,
            resp_ns: rng.uniform(100_000, 100_000_000),
            // ARM 4.0: 0 good, 1 aborted, 2 failed.
            status: if rng.unit() < 0.98 { 0 } else { rng.uniform(1, 2) },
            corr: correlator(rng),
            parent_corr: self.scenario.parent.then(|| correlator(rng)),
        }
    }

    fn hexadecimal(&mut self, text: &mut [u8; 32]) {
        for (position, byte) in correlator(&mut self.rng).iter().enumerate() {
            text[position * 2] = HEX[usize::from(byte >> 4)];
            text[position * 2 + 1] = HEX[usize::from(byte & 15)];
        }
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn correlator(rng: &mut Rng) -> Correlator {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&rng.bits().to_be_bytes());
    bytes[8..].copy_from_slice(&rng.bits().to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_sizes_are_those_of_the_record_model() {
        let sizes = SCENARIOS.map(|scenario| scenario.records_in(196_608));
        assert_eq!(sizes, [2048, 1755, 1170, 1365, 585, 341, 186]);
    }

    #[test]
    fn a_buffer_holds_the_details_of_each_record() {
        for scenario in SCENARIOS {
            let mut buffer = Buffer::default();
            let mut source = Source::new(scenario, Rng::new(1, 1));
            source.fill(&mut buffer, 3);
            source.fill(&mut buffer, 7);
            assert_eq!(buffer.records.len(), 7);
            assert_eq!(buffer.metrics.len(), 7 * scenario.metrics);
            assert_eq!(buffer.contexts.len(), 7 * scenario.contexts);
            assert!(
                buffer
                    .records
                    .iter()
                    .all(|record| record.parent_corr.is_some() == scenario.parent)
            );
        }
    }
}
