//! Exports tables with columns: one family per column, or the families that node_exporter has
//! instead.

use std::collections::HashMap;

use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Kind as Declared;
use loadprint_recording::schema::Unit;

use super::SampledProbe;
use super::families::Families;
use super::families::Kind;
use super::families::Number;
use super::generated_names;
use super::histogram;
use super::node_exporter;
use super::node_exporter::Match;
use super::node_exporter::RowFilter;
use super::node_exporter::Rule;

type Label<'a> = (&'a str, &'a [u8]);

/// The help text of a family: the column's help and its source.
pub fn help(column: &Column) -> String {
    format!("{} ({})", column.help, column.source)
}

/// Appends all columns of one table.
pub fn expose(sampled: &SampledProbe, families: &mut Families) {
    let columns = &sampled.schema.columns;
    let sums: Vec<_> = columns
        .iter()
        .filter(|column| column.kind == Declared::Histogram)
        .filter_map(|column| generated_names::sum_of(column, columns))
        .collect();
    for (index, column) in columns.iter().enumerate() {
        match column.kind {
            Declared::Info => {}
            Declared::Histogram => buckets(sampled, index, families),
            // Exported as the `_sum` of its histogram.
            Declared::Counter if sums.contains(&index) => {}
            Declared::Counter | Declared::Gauge => numbers(sampled, index, families),
        }
    }
    facts(sampled, families);
}

/// Exports a column of numbers: each row by the first rule that applies, else under the generated
/// name.
fn numbers(sampled: &SampledProbe, index: usize, families: &mut Families) {
    let (rows, width) = (&sampled.outcome.rows, sampled.schema.columns.len());
    let column = &sampled.schema.columns[index];
    let descriptions = descriptions(sampled);
    let mut without_rule = vec![];
    for row in 0..rows.len() {
        let Value::Bits(bits) = rows.value(row, index, width) else {
            continue;
        };
        let value = Number::from_bits(bits, column.storage);
        let matched = |rule: &Rule| rule.filter.matches(rows.entity(row));
        let rule = node_exporter::rules(sampled.name, &column.name).find(|rule| matched(rule) != Match::No);
        match rule {
            None => without_rule.push((row, value.scaled(column.unit))),
            Some(rule) if matched(rule) == Match::Drop => {}
            Some(rule) => {
                let unit = if rule.unscaled { Unit::One } else { column.unit };
                let mut labels: Vec<Label<'_>> = rule.labels.iter().copied().zip(rows.entity(row)).collect();
                labels.retain(|(name, _)| !name.is_empty());
                labels.extend(rule.fixed.map(|(name, value)| (name, value.as_bytes())));
                let line = rows.entity(row).next().unwrap_or_default();
                let description = descriptions
                    .get(line)
                    .filter(|_| matches!(rule.filter, RowFilter::OneCpuOfLine));
                labels.extend(description.iter().flat_map(|(info, devices)| {
                    [("info", info.as_bytes()), ("devices", devices.as_bytes())]
                }));
                let help = if rule.help.is_empty() {
                    help(column)
                } else {
                    rule.help.to_owned()
                };
                families
                    .family(rule.name, column.kind.into(), &help)
                    .sample(labels, value.scaled(unit));
            }
        }
    }
    if without_rule.is_empty() {
        return;
    }
    let name = generated_names::name(sampled.name, column);
    // A quantity that kernels count in different units has one column for each unit; a row has a
    // value in one of them.
    let same_name: Vec<_> = (0..index)
        .filter(|other| generated_names::name(sampled.name, &sampled.schema.columns[*other]) == name)
        .collect();
    let has_value = |row, other: &usize| rows.value(row, *other, width) != Value::Null;
    let family = families.family(&name, column.kind.into(), &help(column));
    for (row, value) in without_rule {
        if !same_name.iter().any(|other| has_value(row, other)) {
            family.sample(entity(sampled, row), value);
        }
    }
}

/// Exports a column of histograms, with the sums of another column.
fn buckets(sampled: &SampledProbe, index: usize, families: &mut Families) {
    let (rows, columns) = (&sampled.outcome.rows, &sampled.schema.columns);
    let column = &columns[index];
    let sum = generated_names::sum_of(column, columns);
    let name = generated_names::name(sampled.name, column);
    let family = families.family(&name, Kind::Histogram, &help(column));
    for row in 0..rows.len() {
        let Value::List(counts) = rows.value(row, index, columns.len()) else {
            continue;
        };
        let sum = sum.and_then(|sum| match rows.value(row, sum, columns.len()) {
            Value::Bits(bits) => Some(Number::from_bits(bits, columns[sum].storage).scaled(column.unit)),
            _ => None,
        });
        let labels: Vec<_> = entity(sampled, row).collect();
        histogram::write(family, &labels, counts, sum, column.unit);
    }
}

/// Exports the text columns as labels of one metric with the value 1.
fn facts(sampled: &SampledProbe, families: &mut Families) {
    let (rows, columns) = (&sampled.outcome.rows, &sampled.schema.columns);
    let texts: Vec<_> = (0..columns.len())
        .filter(|index| columns[*index].kind == Declared::Info)
        .collect();
    let name = format!("loadprint_{}_info", sampled.name);
    for row in 0..rows.len() {
        let facts = texts
            .iter()
            .filter_map(|&index| match rows.value(row, index, columns.len()) {
                Value::Text(text) => Some((&*columns[index].name, text)),
                _ => None,
            });
        let facts: Vec<Label<'_>> = facts.collect();
        if !facts.is_empty() {
            families
                .family(&name, Kind::Info, &format!("text columns of {}", sampled.name))
                .sample(entity(sampled, row).chain(facts), Number::Uint(1));
        }
    }
}

fn entity(sampled: &SampledProbe, row: usize) -> impl Iterator<Item = Label<'_>> {
    let names = sampled.schema.entity.iter().map(|name| &**name);
    names.zip(sampled.outcome.rows.entity(row))
}

/// node_exporter's labels `info` and `devices` by interrupt line: for numbered lines the first word
/// and the rest.
fn descriptions(sampled: &SampledProbe) -> HashMap<&[u8], (String, String)> {
    let (rows, columns): (&Rows, _) = (&sampled.outcome.rows, &sampled.schema.columns);
    let Some(index) = columns.iter().position(|column| column.name == "description") else {
        return HashMap::new();
    };
    let description = |row| match rows.value(row, index, columns.len()) {
        Value::Text(text) => {
            let line = rows.entity(row).next()?;
            let text = String::from_utf8_lossy(text);
            let mut words = text.split_whitespace();
            let first = if line.iter().all(u8::is_ascii_digit) {
                words.next().unwrap_or_default().to_owned()
            } else {
                words.by_ref().collect::<Vec<_>>().join(" ")
            };
            Some((line, (first, words.collect::<Vec<_>>().join(" "))))
        }
        _ => None,
    };
    (0..rows.len()).filter_map(description).collect()
}
