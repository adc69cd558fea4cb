//! Compares the metric reference with the declarations of the probes.
//!
//! `LOADPRINT_BLESS=1 cargo test --release -p loadprint-probes --test files reference` rewrites it.

use std::env;
use std::fs;
use std::path::Path;

use loadprint_probes::PROBES;
use loadprint_probes::reference;
use loadprint_recording::schema::Shape;

#[test]
fn metric_reference_matches_the_declarations() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let page = reference::markdown();
    if env::var_os("LOADPRINT_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let different = kept.lines().zip(page.lines()).find(|(kept, now)| kept != now);
    assert!(
        kept == page,
        "docs/metrics.md is not what the probes declare: {different:?}\n\
         LOADPRINT_BLESS=1 cargo test --release -p loadprint-probes --test files reference   rewrites it"
    );
}

#[test]
fn reference_has_every_column_and_metric() {
    let page = reference::markdown();
    for entry in PROBES {
        let start = page.find(&format!("\n## {}\n", entry.name)).unwrap();
        let rest = &page[start + 1..];
        let section = &rest[..rest.find("\n## ").unwrap_or(rest.len())];
        let declared = match entry.schema.shape {
            Shape::Metrics => &entry.schema.metrics,
            Shape::Table | Shape::Histogram => &entry.schema.columns,
        };
        for column in declared.iter() {
            assert!(
                section.contains(&format!("\n| `{}` |", column.name)),
                "{}.{}",
                entry.name,
                column.name
            );
        }
    }
}
