//! Checks the figures of a sysbench run for consistency: statements per event, rate and latency.
//! The exit status is not sufficient: it is 0 for runs that measured nothing.

use anyhow::Result;

use super::report::Block;
use crate::options::Values;

/// Tolerance of statements per event.
const STATEMENTS: f64 = 0.01;
/// Tolerance between threads / rate and the mean latency in a closed loop (Little's law).
const LATENCY: f64 = 0.02;

/// Warnings, one line each.
pub fn flags(block: &Block, seconds: f64, expected: &Expected) -> Vec<String> {
    let mut flags = Vec::new();
    let (Some(events), Some(queries)) = (block.events.filter(|events| *events > 0), block.queries) else {
        return vec!["sysbench counted no events in the window".to_owned()];
    };
    let (count, queries) = (events as f64, queries as f64);
    if let Some(statements) = expected.statements
        && (queries / count / statements - 1.0).abs() > STATEMENTS
    {
        flags.push(format!(
            "{:.2} statements per event instead of {statements}: sysbench also counts statements of failed events \
             ({} ignored errors)",
            queries / count,
            block.errors.unwrap_or(0)
        ));
    }
    if let Some(sum) = block.sum.filter(|_| expected.closed_loop) {
        let (mean, by_rate) = (sum / count, expected.threads as f64 * 1000.0 * seconds / count);
        if (by_rate / mean - 1.0).abs() > LATENCY {
            flags.push(format!(
                "mean latency {mean:.3} ms, but {} threads at {:.1} events/s imply {by_rate:.3} ms: threads were idle, or the run \
                 has too few events",
                expected.threads,
                count / seconds
            ));
        }
    }
    if let Some(wanted) = expected.seconds
        && seconds < wanted * 0.98
    {
        flags.push(format!(
            "the measurement took {seconds:.2} s instead of {wanted} s"
        ));
    }
    flags
}

/// Expected figures, from the options.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// Client statements of an event, if they are fixed.
    pub statements: Option<f64>,
    /// Number of threads.
    pub threads: usize,
    /// True without --rate.
    pub closed_loop: bool,
    /// Length; `None` if a number of events ends the run.
    pub seconds: Option<f64>,
}

/// Client statements of one event of a script (src/lua/oltp_common.lua and its callers).
///
/// # Errors
/// None for a workload with these options.
pub fn statements(script: &str, values: &Values) -> Result<Option<f64>> {
    let transaction = || -> Result<usize> { Ok(if values.flag("skip-trx")? { 0 } else { 2 }) };
    let reads = || -> Result<usize> {
        let mut ranges = 0;
        if values.flag("range-selects")? {
            for name in ["simple-ranges", "sum-ranges", "order-ranges", "distinct-ranges"] {
                ranges += values.count(name)?;
            }
        }
        Ok(values.count("point-selects")? + ranges)
    };
    let writes = || -> Result<usize> {
        let updates = values.count("index-updates")? + values.count("non-index-updates")?;
        Ok(updates + 2 * values.count("delete-inserts")?)
    };
    Ok(match script {
        "oltp_read_write" => Some(transaction()? + reads()? + writes()?),
        "oltp_read_only" => Some(transaction()? + reads()?),
        "oltp_write_only" => Some(transaction()? + writes()?),
        // An event appends a row to a buffer; most events send no statement.
        "bulk_insert" => None,
        _ => Some(1),
    }
    .map(|count| count as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Block {
        Block {
            events: Some(1000),
            queries: Some(20_000),
            sum: Some(3998.0),
            ..Block::default()
        }
    }

    const EXPECTED: Expected = Expected {
        statements: Some(20.0),
        threads: 2,
        closed_loop: true,
        seconds: Some(2.0),
    };

    #[test]
    fn consistent_figures_raise_no_flag() {
        assert_eq!(flags(&block(), 2.0, &EXPECTED), Vec::<String>::new());
    }

    #[test]
    fn each_rule_has_its_flag() {
        let flagged =
            |block: &Block, seconds: f64, expected: &Expected| flags(block, seconds, expected).join("\n");
        let more = Block {
            queries: Some(20_300),
            ..block()
        };
        assert!(flagged(&more, 2.0, &EXPECTED).starts_with("20.30 statements per event"));
        let idle = Block {
            sum: Some(3800.0),
            ..block()
        };
        assert!(flagged(&idle, 2.0, &EXPECTED).starts_with("mean latency 3.800 ms, but 2 threads"));
        let open = Expected {
            closed_loop: false,
            ..EXPECTED
        };
        assert_eq!(flagged(&idle, 2.0, &open), "");
        let short = Expected {
            closed_loop: false,
            seconds: Some(10.0),
            ..EXPECTED
        };
        assert_eq!(
            flagged(&block(), 2.0, &short),
            "the measurement took 2.00 s instead of 10 s"
        );
        let none = Block {
            events: Some(0),
            ..block()
        };
        assert!(flagged(&none, 2.0, &EXPECTED).contains("no events"));
    }
}
