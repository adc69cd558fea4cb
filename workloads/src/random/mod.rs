//! Random numbers: a seeded generator per thread, sysbench's distributions of keys, and unique ids.
//! One seed gives the same stream for each thread, independent of scheduling.

mod keys;
mod rng;
mod unique;

use crate::options::OptionSpec;
pub use keys::Distribution;
pub use keys::Keys;
pub use rng::Rng;
pub use unique::Unique;

/// Options of every workload that draws keys.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec::choice(
        "rand-type",
        &["special", "uniform", "gaussian", "pareto", "zipfian"],
    )
    .default("special")
    .help("distribution of keys; special is the default of sysbench 1.0, uniform that of later versions"),
    OptionSpec::int("rand-spec-iter", 1, 1000)
        .default("12")
        .help("uniform random numbers per draw of gaussian and special"),
    OptionSpec::int("rand-spec-pct", 1, 100)
        .default("1")
        .help("special: percentage of hot keys"),
    OptionSpec::int("rand-spec-res", 0, 99)
        .default("75")
        .help("special: percentage of draws of hot keys"),
    OptionSpec::number("rand-pareto-h", 0.001, 0.999)
        .default("0.2")
        .help("parameter h of pareto"),
    OptionSpec::number("rand-zipfian-exp", 0.0, 20.0)
        .default("0.8")
        .help("exponent of zipfian"),
    OptionSpec::flag("scramble")
        .default("off")
        .help("spread the hot keys over the whole table; in sysbench they are adjacent, on few pages"),
];
