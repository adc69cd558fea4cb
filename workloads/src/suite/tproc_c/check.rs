//! Checks the consistency conditions of TPC-C clause 3.3.2 for each warehouse. Conditions 10 and 12
//! relate the balance of a customer to orders and payments and cannot hold, because HammerDB adds
//! payments to the balance, delivers without a lock and loads delivered orders with an amount.
//! Condition 11 applies to the initial data.

use std::sync::Mutex;

use anyhow::Result;
use anyhow::bail;

use crate::lock::lock;
use crate::suite::for_each;
use crate::suite::number;
use crate::workload::Finding;
use crate::workload::Setup;

/// A rule, the names of the columns of its query, and the query for its violations in the warehouse
/// `{w}`: the columns of the first row are the place and the values.
type Rule = (&'static str, &'static [&'static str], &'static str);

const RULES: &[Rule] = &[
    (
        "1: w_ytd is the sum of d_ytd",
        &["w_id", "w_ytd", "sum of d_ytd"],
        "SELECT w_id, w_ytd, SUM(d_ytd) AS total FROM warehouse LEFT JOIN district ON d_w_id = w_id WHERE w_id = {w} \
         GROUP BY w_id, w_ytd HAVING NOT w_ytd <=> total",
    ),
    (
        "2: d_next_o_id - 1 is the highest o_id, and the highest no_o_id if orders wait",
        &["d_id", "d_next_o_id", "max o_id", "max no_o_id"],
        "SELECT d_id, d_next_o_id, (SELECT MAX(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS o, \
         (SELECT MAX(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id) AS n FROM district WHERE d_w_id = {w} \
         HAVING NOT d_next_o_id - 1 <=> o OR n <> d_next_o_id - 1",
    ),
    (
        "3: the numbers in new_order have no gaps",
        &["no_d_id", "rows", "lowest", "highest"],
        "SELECT no_d_id, COUNT(*) AS waiting, MIN(no_o_id) AS low, MAX(no_o_id) AS high FROM new_order WHERE no_w_id = {w} \
         GROUP BY no_d_id HAVING waiting <> high - low + 1",
    ),
    (
        "4: the sum of o_ol_cnt is the number of order lines of a district",
        &["d_id", "sum of o_ol_cnt", "order lines"],
        "SELECT d_id, (SELECT SUM(o_ol_cnt) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) AS expected, \
         (SELECT COUNT(*) FROM order_line WHERE ol_w_id = d_w_id AND ol_d_id = d_id) AS actual FROM district WHERE d_w_id = {w} \
         HAVING NOT expected <=> actual",
    ),
    (
        "5: o_carrier_id is null if and only if the order is in new_order",
        &["o_d_id", "o_id", "o_carrier_id", "no_o_id"],
        "(SELECT o_d_id, o_id, o_carrier_id, no_o_id FROM orders LEFT JOIN new_order \
         ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id WHERE o_w_id = {w} \
         AND (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) LIMIT 1) UNION ALL \
         (SELECT no_d_id, o_id, o_carrier_id, no_o_id FROM new_order LEFT JOIN orders \
         ON o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id WHERE no_w_id = {w} AND o_id IS NULL LIMIT 1)",
    ),
    (
        "6: o_ol_cnt is the number of lines of each order",
        &["o_d_id", "o_id", "o_ol_cnt", "order lines"],
        "SELECT o_d_id, o_id, o_ol_cnt, COUNT(ol_number) AS actual FROM orders LEFT JOIN order_line \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_w_id = {w} \
         GROUP BY o_w_id, o_d_id, o_id HAVING NOT o_ol_cnt <=> actual",
    ),
    (
        "7: ol_delivery_d is null if and only if o_carrier_id of the order is",
        &["o_d_id", "o_id", "ol_number", "o_carrier_id", "ol_delivery_d"],
        "SELECT o_d_id, o_id, ol_number, o_carrier_id, ol_delivery_d FROM orders JOIN order_line \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_w_id = {w} \
         AND (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (
        "8: w_ytd is the sum of h_amount",
        &["w_id", "w_ytd", "sum of h_amount"],
        "SELECT w_id, w_ytd, (SELECT SUM(h_amount) FROM history WHERE h_w_id = {w}) AS total FROM warehouse WHERE w_id = {w} \
         HAVING NOT w_ytd <=> total",
    ),
    (
        "9: d_ytd is the sum of h_amount of the district",
        &["d_id", "d_ytd", "sum of h_amount"],
        "SELECT d_id, d_ytd, total FROM district LEFT JOIN (SELECT h_d_id, SUM(h_amount) AS total FROM history \
         WHERE h_w_id = {w} GROUP BY h_d_id) AS paid ON h_d_id = d_id WHERE d_w_id = {w} AND NOT d_ytd <=> total",
    ),
    (
        "population: 10 districts, 30000 customers and 100000 stock rows per warehouse",
        &["districts", "customers", "stock rows"],
        "SELECT (SELECT COUNT(*) FROM district WHERE d_w_id = {w}) AS d, (SELECT COUNT(*) FROM customer WHERE c_w_id = {w}) AS c, \
         (SELECT COUNT(*) FROM stock WHERE s_w_id = {w}) AS s HAVING NOT (d = 10 AND c = 30000 AND s = 100000)",
    ),
];

/// Checks all warehouses, `--threads` at a time.
///
/// # Errors
/// An error of the server. A broken rule is a finding.
pub fn check(setup: &Setup<'_>) -> Result<Vec<Finding>> {
    let mut connection = setup.driver.connect()?;
    let Some(warehouses) = number(&connection.rows("SELECT MAX(w_id) FROM warehouse")?, 0) else {
        bail!("no warehouse to check: run `loadprint-load prepare tproc_c`");
    };
    // The first warehouse that breaks each rule.
    let places: Vec<Mutex<Option<(usize, String)>>> = RULES.iter().map(|_| Mutex::default()).collect();
    for_each(setup, warehouses, |connection, warehouse| {
        // All rules read the same snapshot.
        connection.query(b"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        connection.query(b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
        for ((_, columns, query), place) in RULES.iter().zip(&places) {
            let query = format!("{} LIMIT 1", query.replace("{w}", &warehouse.to_string()));
            let rows = connection.rows(&query)?;
            let mut place = lock(place);
            if let Some(row) = rows.first()
                && place.as_ref().is_none_or(|(first, _)| warehouse < *first)
            {
                let cells = columns.iter().zip(row);
                let words: Vec<String> = cells
                    .map(|(name, value)| format!("{name} {}", value.as_deref().unwrap_or("null")))
                    .collect();
                *place = Some((warehouse, words.join(", ")));
            }
        }
        connection.query(b"COMMIT")?;
        Ok(())
    })?;
    let findings = RULES.iter().zip(&places).map(|((rule, ..), place)| Finding {
        rule: (*rule).to_owned(),
        broken: lock(place)
            .take()
            .map(|(warehouse, text)| format!("warehouse {warehouse}: {text}")),
    });
    Ok(findings.collect())
}
