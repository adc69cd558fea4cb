//! The scenarios of ARM records, that is how many detail rows each has, and the weighted mix of them
//! that a run draws record by record.

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::Options;
use crate::options::Values;
use crate::random::Rng;

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

    /// The scenario of this name, with the details of `custom` by the options.
    fn find(name: &str, options: &Options) -> Result<Self> {
        let custom = scenario("custom", options.parent, options.metrics, options.contexts);
        let mut known = SCENARIOS.into_iter().chain([custom]);
        known.find(|scenario| scenario.name == name).with_context(|| {
            let known = SCENARIOS.map(|scenario| scenario.name).join(", ");
            format!("`{name}` is not a scenario: give {known}, custom or all")
        })
    }
}

/// The scenarios that `--scenario` names; `all` stands for the seven of the study.
pub fn named(options: &Options) -> Result<Vec<Scenario>> {
    match options.scenario.as_str() {
        "all" => Ok(SCENARIOS.to_vec()),
        text => text
            .split(',')
            .map(|word| Scenario::find(word.trim(), options))
            .collect::<Result<_>>()
            .with_context(|| format!("--scenario={text}")),
    }
}

/// Scenarios with their weights.
#[derive(Debug, Clone)]
pub struct Mix {
    /// As given on the command line.
    pub label: String,
    /// Each with the cumulative weight.
    parts: Vec<(Scenario, i64)>,
}

impl Mix {
    /// A mix of one scenario.
    pub fn only(scenario: Scenario) -> Self {
        Self {
            label: scenario.name.to_owned(),
            parts: vec![(scenario, 1)],
        }
    }

    /// From `--mix`, such as `simple:50,ctx5:50` with a default weight of 1, or `--scenario` with
    /// one name.
    pub fn of(values: &Values) -> Result<Self> {
        let options: Options = values.read()?;
        let Some(text) = &options.mix else {
            return match named(&options)?.as_slice() {
                [scenario] => Ok(Self::only(*scenario)),
                _ => bail!("--scenario: one scenario per run"),
            };
        };
        if values.given("scenario")? {
            bail!("--mix and --scenario exclude each other: give one of them");
        }
        let mut parts: Vec<(Scenario, i64)> = Vec::new();
        let mut sum = 0;
        for word in text.split(',').map(str::trim) {
            let (name, weight) = word.split_once(':').unwrap_or((word, "1"));
            let scenario = Scenario::find(name, &options).with_context(|| format!("--mix={text}"))?;
            match weight.parse::<i32>() {
                Ok(weight) if weight > 0 => sum += i64::from(weight),
                _ => bail!("--mix={text}: `{weight}` is not a weight: give an integer from 1"),
            }
            if parts.iter().any(|(part, _)| part.name == name) {
                bail!("--mix={text}: {name} is given twice");
            }
            parts.push((scenario, sum));
        }
        Ok(Self {
            label: text.clone(),
            parts,
        })
    }

    /// The scenarios.
    pub fn scenarios(&self) -> impl Iterator<Item = Scenario> {
        self.parts.iter().map(|(scenario, _)| *scenario)
    }

    /// The scenario of the next record. A single scenario needs no random number.
    pub fn draw(&self, rng: &mut Rng) -> Scenario {
        let (last, sum) = self.parts[self.parts.len() - 1];
        if self.parts.len() == 1 {
            return last;
        }
        let drawn = rng.uniform(1, sum);
        let part = self.parts.iter().find(|(_, upto)| drawn <= *upto);
        part.map_or(last, |(scenario, _)| *scenario)
    }

    /// The mean size of a record in a buffer.
    pub fn record_bytes(&self) -> f64 {
        let (mut before, mut bytes) = (0, 0.0);
        for (scenario, upto) in &self.parts {
            bytes += (upto - before) as f64 * scenario.record_bytes() as f64;
            before = *upto;
        }
        bytes / before as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::OPTIONS;
    use super::*;

    fn mix(given: &[(&str, &str)]) -> Result<Mix> {
        Mix::of(&Values::defaults(&[OPTIONS], given))
    }

    #[test]
    fn scenarios_are_drawn_by_weight_and_sizes_are_averaged() {
        let mix = mix(&[("mix", "simple:3,custom"), ("metrics", "2"), ("parent", "on")]).unwrap();
        assert!((mix.record_bytes() - (3.0 * 96.0 + 160.0) / 4.0).abs() < 1e-9);
        let mut rng = Rng::new(7, 7);
        let simple = (0..40_000)
            .filter(|_| mix.draw(&mut rng).name == "simple")
            .count();
        // Four standard deviations of a binomial with p = 3/4.
        assert!(simple.abs_diff(30_000) < 350, "{simple}");
    }

    #[test]
    fn an_invalid_word_is_reported() {
        for (given, part) in [
            (vec![("scenario", "ctx7")], "`ctx7` is not a scenario"),
            (vec![("mix", "simple:0")], "`0` is not a weight"),
            (vec![("mix", "simple,simple")], "twice"),
            (
                vec![("mix", "simple"), ("scenario", "ctx1")],
                "exclude each other",
            ),
        ] {
            let error = format!("{:#}", mix(&given).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn all_is_the_seven_scenarios_of_the_study() {
        let names = |text| {
            let values = Values::defaults(&[OPTIONS], &[("scenario", text)]);
            let scenarios = named(&values.read().unwrap()).unwrap();
            scenarios.iter().map(|scenario| scenario.name).collect::<Vec<_>>()
        };
        assert_eq!(names("all").len(), 7);
        assert_eq!(names("ctx1, custom"), ["ctx1", "custom"]);
    }
}
