//! Parses the output of sysbench 1.0.20 and 1.1: interval lines, checkpoint and final reports, the
//! histogram, FATAL lines (formats of src/sysbench.c and src/db_driver.c).

use super::super::outcome::short;

/// A block of totals; `None` where a value is not printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Block {
    pub reads: Option<u64>,
    pub writes: Option<u64>,
    pub others: Option<u64>,
    pub queries: Option<u64>,
    pub events: Option<u64>,
    pub errors: Option<u64>,
    pub reconnects: Option<u64>,
    /// `total time` (1.0: since the start of the threads) or `time elapsed` (1.1: of the window).
    pub seconds: Option<f64>,
    pub min: Option<f64>,
    pub avg: Option<f64>,
    pub max: Option<f64>,
    /// The requested percentile.
    pub percentile: Option<(u32, f64)>,
    /// Sum of all latencies, milliseconds.
    pub sum: Option<f64>,
}

/// One interval line.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    pub second: u64,
    pub threads: u64,
    /// Per second.
    pub events: f64,
    /// Per second; `None` for scripts without statements.
    pub queries: Option<[f64; 4]>,
    pub percentile: f64,
    pub errors: Option<f64>,
    pub reconnects: Option<f64>,
}

/// Meaning of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// The threads run.
    Started,
    /// 1.1: the threads run, and the window starts after the warm-up.
    WarmingUp,
    /// An interval has ended.
    Interval(Interval),
    /// 1.0: the counters were just reset.
    Checkpoint,
    /// The threads have ended.
    Final,
    /// Any other line.
    Other,
}

/// Parses the output line by line.
#[derive(Debug, Default)]
pub struct Report {
    /// The block before the window.
    pub checkpoint: Option<Block>,
    /// The block of the window.
    pub last: Option<Block>,
    /// Milliseconds and counts.
    pub histogram: Vec<(f64, u64)>,
    /// The first FATAL or ALERT lines.
    pub fatal: Vec<String>,
    ends_with_checkpoint: bool,
}

impl Report {
    /// Parses the next line.
    pub fn parse_line(&mut self, line: &str) -> Mark {
        // Output of several threads may be mixed in one line.
        if let Some(at) = line.find("FATAL: ").or_else(|| line.find("ALERT: ")) {
            if self.fatal.len() < 8 {
                self.fatal.push(short(&line[at..]));
            }
            return Mark::Other;
        }
        if line == "Threads started!" {
            return Mark::Started;
        }
        if line.starts_with("Warming up for ") {
            return Mark::WarmingUp;
        }
        if line.starts_with("[ ") {
            if line.ends_with("Checkpoint report:") {
                self.ends_with_checkpoint = true;
                return Mark::Checkpoint;
            }
            return interval(line).map_or(Mark::Other, Mark::Interval);
        }
        if line.starts_with("Latency histogram") {
            return Mark::Final;
        }
        if line == "SQL statistics:" {
            let block = Some(Block::default());
            if std::mem::take(&mut self.ends_with_checkpoint) {
                self.checkpoint = block;
                return Mark::Other;
            }
            let first = self.last.is_none() && self.histogram.is_empty();
            self.last = block;
            return if first { Mark::Final } else { Mark::Other };
        }
        if let Some(bucket) = bucket(line) {
            self.histogram.push(bucket);
        } else if let Some(block) = self.last.as_mut().or(self.checkpoint.as_mut()) {
            block.parse_line(line);
        }
        Mark::Other
    }
}

impl Block {
    fn parse_line(&mut self, line: &str) {
        let Some((name, value)) = line.split_once(':') else {
            return;
        };
        let (name, value_text) = (name.trim(), value.split_whitespace().next().unwrap_or_default());
        let count = value_text.parse::<u64>().ok();
        let number = value_text.trim_end_matches('s').parse::<f64>().ok();
        match name {
            "read" => self.reads = count,
            "write" => self.writes = count,
            "other" => self.others = count,
            "total" => self.queries = count,
            "transactions" => self.events = count,
            "ignored errors" => self.errors = count,
            "reconnects" => self.reconnects = count,
            "total time" | "time elapsed" => self.seconds = number,
            "total number of events" => self.events = count,
            "min" => self.min = number,
            "avg" => self.avg = number,
            "max" => self.max = number,
            "sum" => self.sum = number,
            _ => {
                let rank = name
                    .strip_suffix("th percentile")
                    .and_then(|rank| rank.parse().ok());
                self.percentile = rank.zip(number).or(self.percentile);
            }
        }
    }
}

/// `[ 4s ] thds: 2 tps: 1449.98 qps: 28996.82 (r/w/o: 20296.95/5799.91/2899.96) lat (ms,95%): 2.11
/// err/s: 0.00 reconn/s: 0.00`, and `[ 4s ] thds: 2 eps: 10.00 lat (ms,95%): 2.11` of scripts
/// without statements.
fn interval(line: &str) -> Option<Interval> {
    let (second, rest) = line.strip_prefix("[ ")?.split_once("s ] thds: ")?;
    let after = |name: &str| -> Option<&str> {
        let (_, behind) = rest.split_once(name)?;
        behind.trim_start_matches([':', ' ']).split([' ', ')']).next()
    };
    let number = |name: &str| {
        let value = after(name)?.parse::<f64>().ok();
        value.filter(|value| value.is_finite())
    };
    let queries = (|| {
        let mut each = after("r/w/o")?.split('/').map(str::parse::<f64>);
        Some([
            number("qps")?,
            each.next()?.ok()?,
            each.next()?.ok()?,
            each.next()?.ok()?,
        ])
    })();
    Some(Interval {
        second: second.parse().ok()?,
        threads: rest.split(' ').next()?.parse().ok()?,
        events: number("tps").or_else(|| number("eps"))?,
        queries,
        percentile: number("%)")?,
        errors: number("err/s"),
        reconnects: number("reconn/s"),
    })
}

/// `       1.506 |****************                         1234`
fn bucket(line: &str) -> Option<(f64, u64)> {
    let (value, rest) = line.split_once(" |")?;
    let count = rest.split_whitespace().next_back()?.trim_start_matches('*');
    Some((value.trim().parse().ok()?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V10: &str = include_str!("../../../../tests/fixtures/external/sysbench-1.0.20-checkpoint.txt");
    const V11: &str = include_str!("../../../../tests/fixtures/external/sysbench-1.1.0-warmup.txt");

    fn read(text: &str) -> (Report, Vec<Mark>) {
        let mut report = Report::default();
        let marks = text
            .lines()
            .map(|line| report.parse_line(line))
            .filter(|mark| *mark != Mark::Other)
            .collect();
        (report, marks)
    }

    #[test]
    fn only_the_block_after_the_checkpoint_is_the_window_of_1_0() {
        let (report, marks) = read(V10);
        let (checkpoint, last) = (report.checkpoint.unwrap(), report.last.unwrap());
        assert_eq!(
            (checkpoint.events, checkpoint.seconds),
            (Some(1356), Some(2.0001))
        );
        assert_eq!(
            (last.events, last.queries, last.seconds),
            (Some(4667), Some(93311), Some(6.0040))
        );
        assert_eq!(
            (last.reads, last.writes, last.others),
            (Some(65314), Some(18665), Some(9332))
        );
        assert_eq!(
            (last.min, last.avg, last.max),
            (Some(0.81), Some(1.71), Some(13.84))
        );
        assert_eq!((last.percentile, last.sum), (Some((95, 3.68)), Some(7999.05)));
        let counted: u64 = report.histogram.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 4667);
        assert_eq!(
            marks
                .iter()
                .filter(|mark| matches!(mark, Mark::Interval(_)))
                .count(),
            6
        );
        let place = |wanted: &Mark| marks.iter().position(|mark| mark == wanted).unwrap();
        assert!(
            place(&Mark::Started) < place(&Mark::Checkpoint)
                && place(&Mark::Checkpoint) < place(&Mark::Final)
        );
        assert_eq!(marks.iter().filter(|mark| **mark == Mark::Final).count(), 1);
    }

    #[test]
    fn the_format_of_1_1_is_parsed() {
        let (report, marks) = read(V11);
        let last = report.last.unwrap();
        assert_eq!(
            (last.events, last.queries, last.seconds),
            (Some(3784), Some(75660), Some(4.0036))
        );
        assert!(report.checkpoint.is_none() && marks.contains(&Mark::WarmingUp));
        let Some(Mark::Interval(first)) = marks.iter().find(|mark| matches!(mark, Mark::Interval(_))) else {
            panic!("no interval")
        };
        assert_eq!((first.second, first.threads, first.events), (1, 2, 843.87));
        assert_eq!(first.queries, Some([16888.98, 11823.45, 3377.13, 1688.40]));
        assert_eq!(
            (first.percentile, first.errors, first.reconnects),
            (6.32, Some(0.0), Some(0.0))
        );
    }

    #[test]
    fn other_lines_in_brackets_and_errors_in_mid_line() {
        let (mut report, _) = read("");
        assert_eq!(
            report.parse_line("[ 2s ] queue length: 0, concurrency: 0"),
            Mark::Other
        );
        report.parse_line("(419,419),(420,4FATAL: `thread_run' function failed: bulk_insert.lua:38");
        assert_eq!(
            report.fatal,
            ["FATAL: `thread_run' function failed: bulk_insert.lua:38"]
        );
        let Mark::Interval(plain) = report.parse_line("[ 1s ] thds: 4 eps: 99.50 lat (ms,95%): 1.25") else {
            panic!("no interval")
        };
        assert_eq!(
            (plain.events, plain.queries, plain.percentile),
            (99.5, None, 1.25)
        );
    }
}
