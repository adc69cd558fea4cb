//! Random numbers: a seeded generator per thread, sysbench's distributions of keys, and unique ids.
//! One seed gives the same stream for each thread, independent of scheduling.

mod keys;
mod rng;
mod scramble;
mod unique;
mod zipf;

use crate::options::Kind;
use crate::options::OptionSpec;
pub use keys::Distribution;
pub use keys::Keys;
pub use rng::Rng;
pub use unique::Unique;

/// Options of every workload that draws keys.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "rand-type",
        Kind::Choice(&["special", "uniform", "gaussian", "pareto", "zipfian"]),
        Some("special"),
        "distribution of keys; special is the default of sysbench 1.0, uniform that of later versions",
    ),
    OptionSpec::new(
        "rand-spec-iter",
        Kind::Int(1, 1000),
        Some("12"),
        "uniform random numbers per draw of gaussian and special",
    ),
    OptionSpec::new(
        "rand-spec-pct",
        Kind::Int(1, 100),
        Some("1"),
        "special: percentage of hot keys",
    ),
    OptionSpec::new(
        "rand-spec-res",
        Kind::Int(0, 99),
        Some("75"),
        "special: percentage of draws of hot keys",
    ),
    OptionSpec::new(
        "rand-pareto-h",
        Kind::Number(0.001, 0.999),
        Some("0.2"),
        "parameter h of pareto",
    ),
    OptionSpec::new(
        "rand-zipfian-exp",
        Kind::Number(0.0, 20.0),
        Some("0.8"),
        "exponent of zipfian",
    ),
    OptionSpec::new(
        "scramble",
        Kind::Flag,
        Some("off"),
        "spread the hot keys over the whole table; in sysbench they are adjacent, on few pages",
    ),
];
