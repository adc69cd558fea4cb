//! One odd value, line or name costs its cell or line, never the table: every number of every
//! corpus text is replaced by values that are none.

use std::collections::BTreeMap;

use loadprint_probes::procfs::softnet;
use loadprint_recording::rows::Rows;
use loadprint_recording::rows::Value;

use crate::fuzz::seeds;
use crate::parsers::PARSERS;
use crate::parsers::Parser;

/// Parsers of kernel text; the others read binary files, or addresses that have to be right.
fn of_kernel() -> impl Iterator<Item = &'static Parser> {
    let others = [
        "elf",
        "symbol_name",
        "process_maps",
        "program_fdinfo",
        "nvme_amazon",
    ];
    PARSERS
        .iter()
        .filter(move |parser| !others.contains(&parser.name))
}

/// Cells by entity, and the number of odd cells and lines; `None` if the text is refused.
type Read = (BTreeMap<Vec<String>, Vec<String>>, u64, u64);

fn read(parser: &Parser, text: &[u8]) -> Option<Read> {
    let mut rows = Rows::default();
    (parser.make)()(text, &mut rows).ok()?;
    assert!(rows.has_width(parser.width));
    let cell = |row, column| match rows.value(row, column, parser.width) {
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    };
    let row = |row| {
        let entity = rows
            .entity(row)
            .map(|part| String::from_utf8_lossy(part).into_owned());
        (
            entity.collect(),
            (0..parser.width).map(|column| cell(row, column)).collect(),
        )
    };
    let cells = (0..rows.len()).map(row).collect();
    Some((cells, rows.odd().cells, rows.odd().lines))
}

/// The places of the words that are numbers, each with the first word of its line; without the one at
/// place `name_of_row`.
fn numbers(text: &str, name_of_row: Option<usize>) -> Vec<(usize, usize, &str)> {
    let mut found = vec![];
    for line in text.split_inclusive('\n') {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let name = line.split(':').next().unwrap_or_default().trim();
        let words = line.split_ascii_whitespace().enumerate().filter(|(place, word)| {
            Some(*place) != name_of_row && word.bytes().all(|byte| byte.is_ascii_digit())
        });
        found.extend(words.map(|(_, word)| {
            let at = word.as_ptr() as usize - line.as_ptr() as usize;
            (start + at, start + at + word.len(), name)
        }));
    }
    found
}

/// Rows that two reads do not share.
fn changed(before: &Read, after: &Read) -> Vec<Vec<String>> {
    let rows = before.0.keys().chain(after.0.keys());
    let mut changed: Vec<_> = rows
        .filter(|row| before.0.get(*row) != after.0.get(*row))
        .cloned()
        .collect();
    changed.sort();
    changed.dedup();
    changed
}

#[test]
fn an_odd_number_costs_its_cell() {
    for parser in of_kernel() {
        // Sums: the row of the line, those over its sets, and those of the CPUs.
        let is_matrix = ["interrupts", "softirqs"].contains(&parser.name);
        let name_of_row = (parser.name == "softnet").then_some(softnet::CPU);
        for text in seeds(parser)
            .into_iter()
            .filter_map(|text| String::from_utf8(text).ok())
        {
            let Some(whole) = read(parser, text.as_bytes()) else {
                continue;
            };
            for (start, end, name) in numbers(&text, name_of_row) {
                for odd in [
                    "-1",
                    "18446744073709551615",
                    "9223372036854775808",
                    "99999999999999999999",
                    "word",
                    "1e9",
                    "0x5",
                ] {
                    let text = format!("{}{odd}{}", &text[..start], &text[end..]);
                    let place = format!("{}: {odd} in the line of {name}:\n{text}", parser.name);
                    let found = read(parser, text.as_bytes()).unwrap_or_else(|| panic!("refused: {place}"));
                    let mut changed = changed(&whole, &found);
                    if is_matrix {
                        changed.retain(|row| row[0] != name && row[0] != "all");
                        assert!(changed.is_empty(), "{changed:?} {place}");
                        continue;
                    }
                    assert!(changed.len() <= 1, "{changed:?} {place}");
                    // A memory device without I/O has no row.
                    if let Some(row) = changed.first()
                        && let Some(before) = whole.0.get(row)
                    {
                        let after = found.0.get(row);
                        let after = after.unwrap_or_else(|| panic!("{row:?} is lost: {place}"));
                        let cells: Vec<_> = (0..parser.width)
                            .filter(|cell| before[*cell] != after[*cell])
                            .collect();
                        assert_eq!(cells.len(), 1, "{place}");
                        if after[cells[0]] == "Null" {
                            assert_eq!((found.1, found.2), (whole.1 + 1, whole.2), "{place}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn missing_and_further_words_cost_their_line() {
    for parser in of_kernel() {
        for text in seeds(parser)
            .into_iter()
            .filter_map(|text| String::from_utf8(text).ok())
        {
            let Some(whole) = read(parser, text.as_bytes()) else {
                continue;
            };
            let lines: Vec<_> = text.lines().collect();
            for (start, end, _) in numbers(&text, None) {
                let line = text[..start].matches('\n').count();
                let without = format!("{}{}", &text[..start], &text[end..]);
                // Names and numbers of snmp are a pair of lines.
                if let Some(found) = read(parser, without.as_bytes()) {
                    assert!(
                        found.0.len() + 40 >= whole.0.len(),
                        "{}: {line} {:?}",
                        parser.name,
                        lines[line]
                    );
                } else {
                    assert!(
                        lines.len() <= 2,
                        "{}: refused without a word of line {line}: {without}",
                        parser.name
                    );
                }
            }
            let blank = format!("{text}\n \n:\n");
            assert!(
                read(parser, blank.as_bytes()).is_some(),
                "{}: blank lines:\n{blank}",
                parser.name
            );
        }
    }
}

fn entities(parser: &str, text: &str) -> (Vec<String>, String) {
    let parser = PARSERS.iter().find(|each| each.name == parser).unwrap();
    let mut rows = Rows::default();
    (parser.make)()(text.as_bytes(), &mut rows).unwrap();
    let name = |row| {
        rows.entity(row)
            .map(|part| String::from_utf8_lossy(part).into_owned())
    };
    let names = (0..rows.len()).map(|row| name(row).collect::<Vec<_>>().join(" "));
    (names.collect(), rows.odd().to_string())
}

#[test]
fn lines_of_other_architectures_and_names_with_colons() {
    let heads = "Inter-|   Receive\n face |bytes\n";
    let counts = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
    let (names, _) = entities(
        "nic",
        &format!("{heads}  eth0:{counts}team0:1:{counts}a b:{counts}"),
    );
    assert_eq!(names, ["eth0", "team0:1", "a b"]);
    let (names, odd) = entities(
        "interrupts",
        "       CPU0       CPU1\n 24:  5  6  GICv3  27 Level  arch_timer\nFIQ:              usb_fiq\nErr:          7\nBAD: 8\n",
    );
    assert_eq!(
        names,
        [
            "24 all",
            "24 server",
            "24 load",
            "Err all",
            "BAD all",
            "all 0",
            "all 1"
        ]
    );
    assert_eq!(odd, "1 line (line 3: a name without counts)");
    let (names, odd) = entities(
        "cpu",
        "cpu  1 2 3 4\ncpu0 1 2 3 4\ncpux 1\nprocesses -2045677862\n",
    );
    assert_eq!(names, ["0", "all"]);
    assert_eq!(odd, "1 cell, 1 line (line 3: no number of a CPU)");
}
