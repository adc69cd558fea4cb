//! Tables with columns: one family per column, or what node_exporter made of it.

use std::collections::HashMap;

use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;
use loadprint_recording::schema::Column;
use loadprint_recording::schema::Kind as Declared;
use loadprint_recording::schema::Unit;

use super::Sampled;
use super::families::Families;
use super::families::Kind;
use super::families::Number;
use super::generated_names;
use super::histogram;
use super::node_exporter;
use super::node_exporter::Rule;
use super::node_exporter::Take;
use super::node_exporter::Verdict;

type Label<'a> = (&'a str, &'a [u8]);

/// What a family's help says: the column's own, and where it is read.
pub fn help(column: &Column) -> String {
    format!("{} ({})", column.help, column.source)
}

/// Appends all columns of one table.
pub fn expose(sampled: &Sampled, families: &mut Families) {
    let columns = &sampled.schema.columns;
    let sums: Vec<_> = columns
        .iter()
        .filter(|column| column.kind == Declared::Histogram)
        .filter_map(|column| generated_names::sum_of(column, columns))
        .collect();
    for (place, column) in columns.iter().enumerate() {
        match column.kind {
            Declared::Info => {}
            Declared::Histogram => buckets(sampled, place, families),
            // It is the `_sum` of its histogram.
            Declared::Counter if sums.contains(&place) => {}
            Declared::Counter | Declared::Gauge => numbers(sampled, place, families),
        }
    }
    facts(sampled, families);
}

/// A column of numbers: each row under the first rule that takes it, else under the generated name.
fn numbers(sampled: &Sampled, place: usize, families: &mut Families) {
    let (rows, width) = (&sampled.outcome.rows, sampled.schema.columns.len());
    let column = &sampled.schema.columns[place];
    let descriptions = descriptions(sampled);
    let mut rest = vec![];
    for row in 0..rows.len() {
        let Value::Bits(bits) = rows.value(row, place, width) else {
            continue;
        };
        let value = Number::from_bits(bits, column.storage);
        let verdict = |rule: &Rule| rule.take.verdict(rows.entity(row));
        let rule =
            node_exporter::rules(sampled.name, &column.name).find(|rule| verdict(rule) != Verdict::Left);
        match rule {
            None => rest.push((row, value.scaled(column.unit))),
            Some(rule) if verdict(rule) == Verdict::Dropped => {}
            Some(rule) => {
                let unit = if rule.unscaled { Unit::One } else { column.unit };
                let mut labels: Vec<Label<'_>> = rule.labels.iter().copied().zip(rows.entity(row)).collect();
                labels.retain(|(name, _)| !name.is_empty());
                labels.extend(rule.fixed.map(|(name, value)| (name, value.as_bytes())));
                let line = rows.entity(row).next().unwrap_or_default();
                let described = descriptions.get(line).filter(|_| matches!(rule.take, Take::Cell));
                labels.extend(described.iter().flat_map(|(info, devices)| {
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
    if rest.is_empty() {
        return;
    }
    let name = generated_names::name(sampled.name, column);
    // Kernels that count one thing in two units have a column for each, of which a row has one.
    let before: Vec<_> = (0..place)
        .filter(|place| generated_names::name(sampled.name, &sampled.schema.columns[*place]) == name)
        .collect();
    let is_there = |row, place: &usize| rows.value(row, *place, width) != Value::Null;
    let family = families.family(&name, column.kind.into(), &help(column));
    for (row, value) in rest {
        if !before.iter().any(|place| is_there(row, place)) {
            family.sample(entity(sampled, row), value);
        }
    }
}

/// A column of histograms, with the sum from the column beside it.
fn buckets(sampled: &Sampled, place: usize, families: &mut Families) {
    let (rows, columns) = (&sampled.outcome.rows, &sampled.schema.columns);
    let column = &columns[place];
    let sum = generated_names::sum_of(column, columns);
    let name = generated_names::name(sampled.name, column);
    let family = families.family(&name, Kind::Histogram, &help(column));
    for row in 0..rows.len() {
        let Value::List(counts) = rows.value(row, place, columns.len()) else {
            continue;
        };
        let sum = sum.and_then(|place| match rows.value(row, place, columns.len()) {
            Value::Bits(bits) => Some(Number::from_bits(bits, columns[place].storage).scaled(column.unit)),
            _ => None,
        });
        let labels: Vec<_> = entity(sampled, row).collect();
        histogram::write(family, &labels, counts, sum, column.unit);
    }
}

/// The columns that hold words, as labels of one metric whose value is 1.
fn facts(sampled: &Sampled, families: &mut Families) {
    let (rows, columns) = (&sampled.outcome.rows, &sampled.schema.columns);
    let words: Vec<_> = (0..columns.len())
        .filter(|place| columns[*place].kind == Declared::Info)
        .collect();
    let name = format!("loadprint_{}_info", sampled.name);
    for row in 0..rows.len() {
        let facts = words
            .iter()
            .filter_map(|&place| match rows.value(row, place, columns.len()) {
                Value::Text(text) => Some((&*columns[place].name, text)),
                _ => None,
            });
        let facts: Vec<Label<'_>> = facts.collect();
        if !facts.is_empty() {
            families
                .family(
                    &name,
                    Kind::Info,
                    &format!("what is known in words of each row of {}", sampled.name),
                )
                .sample(entity(sampled, row).chain(facts), Number::Uint(1));
        }
    }
}

fn entity(sampled: &Sampled, row: usize) -> impl Iterator<Item = Label<'_>> {
    let names = sampled.schema.entity.iter().map(|name| &**name);
    names.zip(sampled.outcome.rows.entity(row))
}

/// Per interrupt line what node_exporter calls `info` and `devices`: for numbered lines the first word and the others.
fn descriptions(sampled: &Sampled) -> HashMap<&[u8], (String, String)> {
    let (rows, columns): (&Rows, _) = (&sampled.outcome.rows, &sampled.schema.columns);
    let Some(place) = columns.iter().position(|column| column.name == "description") else {
        return HashMap::new();
    };
    let described = |row| match rows.value(row, place, columns.len()) {
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
    (0..rows.len()).filter_map(described).collect()
}
