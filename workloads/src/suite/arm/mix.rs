//! The scenarios of a run: one scenario, a custom one, or a weighted mix drawn record by record.

use anyhow::Context;
use anyhow::Result;
use anyhow::bail;

use super::scenario::SCENARIOS;
use super::scenario::Scenario;
use super::scenario::scenario;
use crate::options::Values;
use crate::random::Rng;

/// Scenarios with their weights.
#[derive(Debug, Clone)]
pub struct Mix {
    label: String,
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

    /// From `--mix`, or `--scenario` with one name.
    pub fn of(values: &Values) -> Result<Self> {
        let custom = custom(values)?;
        if let Some(text) = values.text("mix")? {
            if values.given("scenario")? {
                bail!("--mix and --scenario exclude each other: give one of them");
            }
            return Self::parse(text, Some(custom));
        }
        match scenarios(values)?.as_slice() {
            [name] => Ok(Self::only(find(name, Some(custom)).with_context(unknown(name))?)),
            _ => bail!("--scenario: one scenario per run"),
        }
    }

    /// Parses `simple:50,ctx5:50`; the default weight is 1.
    pub fn parse(text: &str, custom: Option<Scenario>) -> Result<Self> {
        let mut parts = Vec::new();
        let mut sum = 0;
        for word in text.split(',').map(str::trim) {
            let (name, weight) = word.split_once(':').unwrap_or((word, "1"));
            let scenario =
                find(name, custom).with_context(|| format!("--mix={text}: {}", unknown(name)()))?;
            match weight.parse::<i32>() {
                Ok(weight) if weight > 0 => sum += i64::from(weight),
                _ => bail!("--mix={text}: `{weight}` is not a weight: give an integer from 1"),
            }
            if parts.iter().any(|(part, _): &(Scenario, i64)| part.name == name) {
                bail!("--mix={text}: {name} is given twice");
            }
            parts.push((scenario, sum));
        }
        Ok(Self {
            label: text.to_owned(),
            parts,
        })
    }

    /// As given on the command line.
    pub fn label(&self) -> &str {
        &self.label
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

/// The names in `--scenario`; `all` stands for the seven of the study.
pub fn scenarios(values: &Values) -> Result<Vec<String>> {
    let text = values.text("scenario")?.unwrap_or_default();
    if text == "all" {
        return Ok(SCENARIOS
            .iter()
            .map(|scenario| scenario.name.to_owned())
            .collect());
    }
    let custom = custom(values)?;
    let name = |word: &str| {
        let name = word.trim();
        find(name, Some(custom)).with_context(unknown(name))?;
        Ok(name.to_owned())
    };
    text.split(',').map(name).collect()
}

/// The scenarios that `--scenario` names.
pub fn named(values: &Values) -> Result<Vec<Scenario>> {
    let custom = custom(values)?;
    let names = scenarios(values)?;
    names
        .iter()
        .map(|name| find(name, Some(custom)).with_context(unknown(name)))
        .collect()
}

fn custom(values: &Values) -> Result<Scenario> {
    Ok(scenario(
        "custom",
        values.flag("parent")?,
        values.count("metrics")?,
        values.count("contexts")?,
    ))
}

fn find(name: &str, custom: Option<Scenario>) -> Option<Scenario> {
    let known = SCENARIOS.iter().copied().chain(custom);
    known.into_iter().find(|scenario| scenario.name == name)
}

fn unknown(name: &str) -> impl Fn() -> String {
    let known: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    let message = format!(
        "`{name}` is not a scenario: give {}, custom or all",
        known.join(", ")
    );
    move || message.clone()
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
        let values = Values::defaults(&[OPTIONS], &[("scenario", "all")]);
        assert_eq!(scenarios(&values).unwrap().len(), 7);
        let values = Values::defaults(&[OPTIONS], &[("scenario", "ctx1, custom")]);
        assert_eq!(scenarios(&values).unwrap(), ["ctx1", "custom"]);
    }
}
