//! Generates ARM records into buffers, with random values of fixed sizes and cardinalities.

use std::array;

use super::scenario::Mix;
use super::scenario::Scenario;
use crate::random::Rng;

/// A correlator.
pub type Correlator = [u8; 16];

/// A record: its columns in `arm_tran`, and the numbers of its detail rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// def_id, app_id, user_id, start_us, resp_ns, status.
    pub numbers: [i64; 6],
    pub corr: Correlator,
    pub parent_corr: Option<Correlator>,
    pub metrics: usize,
    pub contexts: usize,
}

/// A buffer: records, and the detail rows of all records in order.
#[derive(Debug, Default)]
pub struct Buffer {
    pub records: Vec<Record>,
    pub metrics: Vec<i64>,
    pub contexts: Vec<[u8; 32]>,
}

impl Buffer {
    /// Rows of the buffer in all tables.
    pub fn rows(&self) -> usize {
        self.records.len() + self.metrics.len() + self.contexts.len()
    }

    /// Each record with its metrics and context values.
    pub fn each(&self) -> impl Iterator<Item = (&Record, &[i64], &[[u8; 32]])> {
        let (mut metrics, mut contexts) = (self.metrics.as_slice(), self.contexts.as_slice());
        self.records.iter().map(move |record| {
            let (record_metrics, rest) = metrics.split_at(record.metrics);
            metrics = rest;
            let (values, rest) = contexts.split_at(record.contexts);
            contexts = rest;
            (record, record_metrics, values)
        })
    }
}

/// The limit of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// A number of records.
    Records(usize),
    /// A number of bytes; a buffer has at least one record.
    Bytes(usize),
}

/// Generates records.
#[derive(Debug)]
pub struct Source {
    mix: Mix,
    full: Full,
    /// Drawn for the previous buffer, which had no room for it.
    next: Option<Scenario>,
    rng: Rng,
    now_us: i64,
}

impl Source {
    /// Draws from `rng`. The time of the first record is fixed, so that the same seed gives the
    /// same rows.
    pub fn new(mix: Mix, full: Full, rng: Rng) -> Self {
        Self {
            mix,
            full,
            next: None,
            rng,
            now_us: 1_700_000_000_000_000,
        }
    }

    /// Fills a buffer with at most `limit` records.
    pub fn fill(&mut self, buffer: &mut Buffer, limit: usize) {
        buffer.records.clear();
        buffer.metrics.clear();
        buffer.contexts.clear();
        let mut bytes = 0;
        while buffer.records.len() < limit {
            let scenario = match self.next.take() {
                Some(scenario) => scenario,
                None => self.mix.draw(&mut self.rng),
            };
            bytes += scenario.record_bytes();
            let full = match self.full {
                Full::Records(records) => buffer.records.len() == records,
                Full::Bytes(room) => bytes > room && !buffer.records.is_empty(),
            };
            if full {
                self.next = Some(scenario);
                return;
            }
            let record = self.record(scenario);
            buffer.records.push(record);
            for _ in 0..scenario.metrics {
                buffer.metrics.push(self.rng.uniform(0, 1_000_000_000));
            }
            for _ in 0..scenario.contexts {
                buffer.contexts.push(hexadecimal(&correlator(&mut self.rng)));
            }
        }
    }

    fn record(&mut self, scenario: Scenario) -> Record {
        let rng = &mut self.rng;
        self.now_us += rng.uniform(0, 100);
        Record {
            numbers: [
                rng.uniform(1, 50),
                rng.uniform(1, 10),
                rng.uniform(1, 1000),
                self.now_us,
                rng.uniform(100_000, 100_000_000),
                // ARM 4.0: 0 good, 1 aborted, 2 failed.
                if rng.unit() < 0.98 { 0 } else { rng.uniform(1, 2) },
            ],
            corr: correlator(rng),
            parent_corr: scenario.parent.then(|| correlator(rng)),
            metrics: scenario.metrics,
            contexts: scenario.contexts,
        }
    }
}

/// The digits of a correlator.
pub fn hexadecimal(bytes: &Correlator) -> [u8; 32] {
    let digit = |place: usize| b"0123456789abcdef"[usize::from(bytes[place / 2] >> (4 - place % 2 * 4) & 15)];
    array::from_fn(digit)
}

fn correlator(rng: &mut Rng) -> Correlator {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&rng.bits().to_be_bytes());
    bytes[8..].copy_from_slice(&rng.bits().to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Values;
    use crate::suite::arm::OPTIONS;
    use crate::suite::arm::scenario::SCENARIOS;

    fn filled(mix: Mix, full: Full) -> Buffer {
        let mut buffer = Buffer::default();
        let mut source = Source::new(mix, full, Rng::new(1, 1));
        source.fill(&mut buffer, 3);
        source.fill(&mut buffer, usize::MAX);
        buffer
    }

    #[test]
    fn buffers_have_the_record_counts_of_the_study() {
        let sizes = SCENARIOS.map(|scenario| filled(Mix::only(scenario), Full::Bytes(196_608)).records.len());
        assert_eq!(sizes, [2048, 1755, 1170, 1365, 585, 341, 186]);
        assert_eq!(
            filled(Mix::only(SCENARIOS[6]), Full::Bytes(200)).records.len(),
            1,
            "never an empty buffer"
        );
    }

    #[test]
    fn a_buffer_contains_the_details_of_each_record() {
        for scenario in SCENARIOS {
            let buffer = filled(Mix::only(scenario), Full::Records(7));
            assert_eq!(buffer.records.len(), 7);
            assert_eq!(buffer.rows(), 7 * (1 + scenario.metrics + scenario.contexts));
            for (record, metrics, contexts) in buffer.each() {
                assert_eq!(record.parent_corr.is_some(), scenario.parent);
                assert_eq!(
                    (metrics.len(), contexts.len()),
                    (scenario.metrics, scenario.contexts)
                );
            }
        }
    }

    #[test]
    fn a_record_without_room_is_the_first_of_the_next_buffer() {
        let mix = Mix::of(&Values::defaults(&[OPTIONS], &[("mix", "simple:1,ctx20:1")])).unwrap();
        let mut source = Source::new(mix.clone(), Full::Bytes(2000), Rng::new(3, 3));
        let (mut split, mut whole) = (Vec::new(), Buffer::default());
        let mut buffer = Buffer::default();
        while split.len() < 100 {
            source.fill(&mut buffer, usize::MAX);
            split.extend_from_slice(&buffer.records);
        }
        Source::new(mix, Full::Records(100), Rng::new(3, 3)).fill(&mut whole, 100);
        let with_contexts = |records: &[Record]| {
            records[..100]
                .iter()
                .filter(|record| record.contexts == 20)
                .count()
        };
        assert!(
            (30..70).contains(&with_contexts(&split)) && (30..70).contains(&with_contexts(&whole.records))
        );
        assert!(split.iter().all(|record| record.contexts % 20 == 0));
    }
}
