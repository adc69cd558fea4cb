//! Converts options into the engine's plan and the error policy.

use std::time::Duration;

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use crate::driver::Ignored;
use crate::engine::Plan;
use crate::engine::Reconnects;
use crate::engine::schedule::Rate;
use crate::options::Common;
use crate::options::LONGEST_SECONDS;
use crate::options::Values;
use crate::verb::Verb;

/// Six times the default of innodb_lock_wait_timeout: no statement of a run waits that long on a
/// working server.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

fn span(seconds: f64) -> Option<Duration> {
    (seconds > 0.0).then(|| Duration::from_secs_f64(seconds))
}

/// Makes the plan; `rate` still counts operations.
///
/// # Errors
/// The invalid option.
pub fn plan(values: &Values, seed: u64) -> Result<Plan> {
    let options: Common = values.read()?;
    let [threads] = options.threads[..] else {
        bail!("internal error: --threads is a list");
    };
    let events = (options.events > 0).then_some(options.events);
    // The default of --time does not limit a fixed number of events.
    let limited = events.is_none() || values.given("time")?;
    let rate = Rate {
        per_second: options.rate,
        arrivals: options.arrivals,
        seed,
    };
    Ok(Plan {
        threads,
        time: span(options.time).filter(|_| limited),
        events,
        paused: options.paused,
        warmup: span(options.warmup_time),
        ramp: span(options.ramp_time),
        rate: (options.rate > 0.0).then_some(rate),
        undo: options.compat,
        reconnects: Reconnects {
            every: options.reconnect,
            timeout_ns: (options.reconnect_timeout * 1e9) as i64,
        },
        init_timeout: Duration::from_secs_f64(options.thread_init_timeout),
        disconnect_after: disconnect_after(&options.forced_shutdown)?,
    })
}

/// Time limit of a statement. By default it applies to `run` only: the other verbs read whole
/// tables.
pub fn read_timeout(verb: Verb, options: &Common) -> Option<Duration> {
    match options.mysql_read_timeout {
        Some(seconds) => span(seconds),
        None => (verb == Verb::Run).then_some(READ_TIMEOUT),
    }
}

fn disconnect_after(text: &str) -> Result<Option<Duration>> {
    if text == "off" {
        return Ok(None);
    }
    let seconds = text.parse::<f64>().ok();
    match seconds.filter(|seconds| (0.0..=LONGEST_SECONDS).contains(seconds)) {
        Some(seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
        None => bail!("--forced-shutdown={text} is not a number of seconds or off"),
    }
}

/// Parses `--mysql-ignore-errors`.
///
/// # Errors
/// The word that is not an error number.
pub fn ignored(text: &str) -> Result<Ignored> {
    let number = |word: &str| {
        let wrong = || format!("--mysql-ignore-errors={text}: `{word}` is not an error number, all or none");
        word.trim().parse().with_context(wrong)
    };
    Ok(match text {
        "all" => Ignored::All,
        "none" => Ignored::These(Vec::new()),
        _ => {
            let words = text.split(',').filter(|word| !word.is_empty());
            Ignored::These(words.map(number).collect::<Result<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::schedule::Arrivals;
    use crate::options::COMMON;

    fn values(given: &[(&str, &str)]) -> Values {
        Values::defaults(&[COMMON], given)
    }

    #[test]
    fn a_count_of_events_has_no_limit_of_time_unless_it_is_given() {
        let time = |given: &[(&str, &str)]| plan(&values(given), 1).unwrap().time;
        assert_eq!(time(&[]), Some(Duration::from_secs(10)));
        assert_eq!(time(&[("events", "5")]), None);
        assert_eq!(
            time(&[("events", "5"), ("time", "3")]),
            Some(Duration::from_secs(3))
        );
        assert_eq!(time(&[("time", "0")]), None);
        assert!(plan(&values(&[("threads", "1,4")]), 1).is_err());
    }

    #[test]
    fn a_rate_of_zero_is_a_closed_loop() {
        assert_eq!(plan(&values(&[]), 1).unwrap().rate, None);
        let open = plan(&values(&[("rate", "250.5"), ("arrivals", "constant")]), 7).unwrap();
        let expected = Rate {
            per_second: 250.5,
            arrivals: Arrivals::Constant,
            seed: 7,
        };
        assert_eq!(open.rate, Some(expected));
    }

    #[test]
    fn ignored_errors_are_numbers_or_all_or_none() {
        assert!(ignored("all").unwrap().contains(1) && !ignored("none").unwrap().contains(1213));
        assert!(ignored("1213, 1205").unwrap().contains(1205));
        assert!(
            ignored("1213,deadlock")
                .unwrap_err()
                .to_string()
                .contains("`deadlock`")
        );
        let forced = |text| plan(&values(&[("forced-shutdown", text)]), 1).map(|plan| plan.disconnect_after);
        assert_eq!(forced("off").unwrap(), None);
        assert_eq!(forced("2").unwrap(), Some(Duration::from_secs(2)));
        assert!(forced("soon").is_err());
    }
}
