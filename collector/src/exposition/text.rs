//! Writes the text formats OpenMetrics 1.0 and Prometheus 0.0.4, and selects one by the header
//! `Accept`.

use super::families::Families;
use super::families::Family;
use super::families::Kind;
use super::families::escape;
use super::unit;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus text 0.0.4.
    Prometheus,
}

impl Format {
    /// The preferred format of a header `Accept` (RFC 9110 §12.5.1); Prometheus text if it names
    /// neither.
    pub fn accepted(accept: &str) -> Self {
        let quality = |is_format: fn(&str, Option<&str>) -> bool| {
            let ranges = accept.split(',').filter_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                let media = parts.next()?;
                let (mut version, mut quality) = (None, 1.0);
                for part in parts {
                    match part.split_once('=') {
                        Some(("version", value)) => version = Some(value),
                        Some(("q", value)) => quality = value.parse().unwrap_or(0.0),
                        _ => {}
                    }
                }
                is_format(media, version).then_some(quality)
            });
            ranges.fold(0.0_f64, f64::max)
        };
        let open = quality(|media, version| {
            media == "application/openmetrics-text" && version.is_none_or(|version| version == "1.0.0")
        });
        let plain = quality(|media, _| media == "text/plain");
        if open > 0.0 && open >= plain {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// The header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// All families as text.
    pub fn write(self, families: &Families) -> String {
        let mut text = String::with_capacity(families.iter().map(|family| family.samples.len() + 200).sum());
        for family in families.iter() {
            self.head(family, &mut text);
            text.push_str(&family.samples);
        }
        if self == Self::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }

    fn head(self, family: &Family, text: &mut String) {
        let (name, word) = match (self, family.kind) {
            (Self::Prometheus, Kind::Counter) => (&*family.name, "counter"),
            (Self::Prometheus, Kind::Info) => (&*family.name, "gauge"),
            (Self::Prometheus, Kind::Unknown) => (&*family.name, "untyped"),
            (Self::OpenMetrics, Kind::Counter) => (without(&family.name, "_total"), "counter"),
            (Self::OpenMetrics, Kind::Info) => (without(&family.name, "_info"), "info"),
            (Self::OpenMetrics, Kind::Unknown) => (&*family.name, "unknown"),
            (_, Kind::Gauge) => (&*family.name, "gauge"),
            (_, Kind::Histogram) => (&*family.name, "histogram"),
        };
        let mut line = |keyword: &str, rest: &str, quotes: bool| {
            text.push_str("# ");
            text.push_str(keyword);
            text.push(' ');
            text.push_str(name);
            text.push(' ');
            escape(rest, quotes, text);
            text.push('\n');
        };
        line("HELP", &family.help, self == Self::OpenMetrics);
        line("TYPE", word, false);
        if self == Self::OpenMetrics
            && family.kind != Kind::Info
            && let Some(unit) = unit::of_name(name)
        {
            line("UNIT", unit, false);
        }
    }
}

fn without<'a>(name: &'a str, suffix: &str) -> &'a str {
    name.strip_suffix(suffix).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::families::Number;

    #[test]
    fn the_accept_header_selects_the_format() {
        let of = Format::accepted;
        assert_eq!(of(""), Format::Prometheus);
        assert_eq!(of("*/*"), Format::Prometheus);
        assert_eq!(of("application/openmetrics-text"), Format::OpenMetrics);
        // The headers of Prometheus 2.42 and 3.5, and of a client that only supports an older
        // draft.
        assert_eq!(
            of(
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
            ),
            Format::OpenMetrics
        );
        assert_eq!(
            of("text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5"),
            Format::Prometheus
        );
        assert_eq!(
            of("application/openmetrics-text; version=0.0.1"),
            Format::Prometheus
        );
    }

    #[test]
    fn special_characters_are_escaped() {
        let mut families = Families::default();
        let family = families.family("x_seconds_total", Kind::Counter, "a \"b\" \\ c\nd");
        family.sample([("device", b"a\"\\\n\xff".as_slice())], Number::Double(0.5));
        family.sample([], Number::Uint(u64::MAX));
        let samples =
            "x_seconds_total{device=\"a\\\"\\\\\\n\u{fffd}\"} 0.5\nx_seconds_total 18446744073709551615\n";
        assert_eq!(
            Format::OpenMetrics.write(&families),
            format!(
                "# HELP x_seconds a \\\"b\\\" \\\\ c\\nd\n# TYPE x_seconds counter\n# UNIT x_seconds seconds\n{samples}# EOF\n"
            )
        );
        assert_eq!(
            Format::Prometheus.write(&families),
            format!("# HELP x_seconds_total a \"b\" \\\\ c\\nd\n# TYPE x_seconds_total counter\n{samples}")
        );
    }
}
