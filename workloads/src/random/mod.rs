//! Random numbers: a seeded generator per thread, sysbench's distributions of keys, and unique ids.
//! One seed gives the same stream for each thread, independent of scheduling.

mod keys;
mod rng;
mod unique;

use serde::Deserialize;

use crate::options::options;
pub use keys::Distribution;
pub use keys::Keys;
pub use rng::Rng;
pub use unique::Unique;

options! {
    /// Options of every workload that draws keys.
    pub OPTIONS, Options;
    rand_type: RandType = Choice(&["special", "uniform", "gaussian", "pareto", "zipfian"])
        .default("special")
        .help("distribution of keys; special is the default of sysbench 1.0, uniform that of later versions"),
    rand_spec_iter: u32 = Int(1, 1000)
        .default("12")
        .help("uniform random numbers per draw of gaussian and special"),
    rand_spec_pct: f64 = Int(1, 100)
        .default("1")
        .help("special: percentage of hot keys"),
    rand_spec_res: f64 = Int(0, 99)
        .default("75")
        .help("special: percentage of draws of hot keys"),
    rand_pareto_h: f64 = Number(0.001, 0.999)
        .default("0.2")
        .help("parameter h of pareto"),
    rand_zipfian_exp: f64 = Number(0.0, 20.0)
        .default("0.8")
        .help("exponent of zipfian"),
    scramble: bool = Flag
        .default("off")
        .help("spread the hot keys over the whole table; in sysbench they are adjacent, on few pages"),
}

/// `--rand-type`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RandType {
    Uniform,
    Gaussian,
    Special,
    Pareto,
    Zipfian,
}
