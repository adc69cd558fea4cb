//! Checks before a run that the database has the tables, columns, warehouses and procedures; errors
//! contain the fix.

use anyhow::Result;
use anyhow::bail;

use super::given_warehouses;
use super::load::cell;
use super::procedures;
use super::procedures::Origin;
use super::tables::TABLES;
use crate::driver::Connection;
use crate::options::Values;

/// Columns that the statements use and that other schemas may lack.
const COLUMNS: [(&str, &str); 9] = [
    ("warehouse", "w_id,w_ytd,w_tax,w_name"),
    ("district", "d_id,d_w_id,d_ytd,d_tax,d_next_o_id,d_name"),
    (
        "customer",
        "c_id,c_d_id,c_w_id,c_first,c_last,c_credit,c_discount,c_balance,c_ytd_payment,c_payment_cnt,c_delivery_cnt,c_data",
    ),
    (
        "history",
        "h_c_id,h_c_d_id,h_c_w_id,h_d_id,h_w_id,h_date,h_amount,h_data",
    ),
    ("item", "i_id,i_name,i_price,i_data"),
    (
        "stock",
        "s_i_id,s_w_id,s_quantity,s_dist_01,s_dist_10,s_ytd,s_order_cnt,s_remote_cnt,s_data",
    ),
    (
        "orders",
        "o_id,o_w_id,o_d_id,o_c_id,o_carrier_id,o_ol_cnt,o_all_local,o_entry_d",
    ),
    ("new_order", "no_w_id,no_d_id,no_o_id"),
    (
        "order_line",
        "ol_w_id,ol_d_id,ol_o_id,ol_number,ol_i_id,ol_delivery_d,ol_amount,ol_supply_w_id,ol_quantity,ol_dist_info",
    ),
];

/// Refuses unsuitable data; warns on standard error about unexpected results.
///
/// # Errors
/// One line with the fix.
pub fn preflight(values: &Values, threads: usize, connection: &mut dyn Connection) -> Result<()> {
    let strict = values.flag("strict")?;
    columns(connection, strict)?;
    let rows = connection.rows("SELECT MAX(w_id) FROM warehouse")?;
    let present: i64 = cell(&rows).unwrap_or("0").parse()?;
    if present == 0 {
        bail!("table warehouse is empty: run `loadprint-load cleanup tproc_c` and `prepare tproc_c`");
    }
    if let Some(given) = given_warehouses(values)?
        && given > present
    {
        bail!(
            "--warehouses={given}, but the database has {present}: lower it, or run `loadprint-load cleanup tproc_c` and \
             `prepare tproc_c --warehouses={given}`"
        );
    }
    let used = given_warehouses(values)?.unwrap_or(present);
    if usize::try_from(used)? < threads {
        eprintln!(
            "loadprint-load: warning: {threads} threads on {used} warehouses: threads share warehouses and wait for row locks of each \
             other; HammerDB recommends several warehouses per virtual user"
        );
    }
    procedures_fit(connection, strict)
}

fn columns(connection: &mut dyn Connection, strict: bool) -> Result<()> {
    let rows = connection.rows(
        "SELECT LOWER(TABLE_NAME), LOWER(COLUMN_NAME), LOWER(DATA_TYPE) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()",
    )?;
    let text = |row: &[Option<String>], column: usize| row.get(column).cloned().flatten().unwrap_or_default();
    let kind = |table: &str, column: &str| {
        rows.iter()
            .find(|row| text(row, 0) == table && text(row, 1) == column)
            .map(|row| text(row, 2))
    };
    let missing: Vec<&str> = TABLES
        .into_iter()
        .filter(|table| !rows.iter().any(|row| text(row, 0) == *table))
        .collect();
    if !missing.is_empty() {
        bail!(
            "the database has no table {}: run `loadprint-load prepare tproc_c` with the same --mysql-db",
            missing.join(", ")
        );
    }
    for (table, names) in COLUMNS {
        if let Some(name) = names.split(',').find(|name| kind(table, name).is_none()) {
            bail!(
                "table {table} has no column {name} and does not belong to TPROC-C: give another --mysql-db"
            );
        }
    }
    if strict && kind("order_line", "ol_amount").as_deref() != Some("decimal") {
        bail!(
            "--strict: the data were loaded without it (ol_amount has no cents): run `loadprint-load cleanup tproc_c` and \
             `prepare tproc_c --strict`"
        );
    }
    Ok(())
}

fn procedures_fit(connection: &mut dyn Connection, strict: bool) -> Result<()> {
    match procedures::origin(connection)? {
        Ok(Origin::Ours { strict: created }) if created == strict => Ok(()),
        Ok(Origin::Ours { strict: created }) => {
            let (created, fix) = if created {
                ("with", "give")
            } else {
                ("without", "leave out")
            };
            bail!(
                "the procedures were created {created} --strict: {fix} --strict, or run cleanup and prepare again"
            )
        }
        Ok(Origin::Foreign) if strict => bail!(
            "--strict: another tool created the procedures: run `loadprint-load cleanup tproc_c` and `prepare tproc_c --strict`"
        ),
        Ok(Origin::Foreign) => {
            eprintln!(
                "loadprint-load: warning: another tool (HammerDB?) created the procedures: they do not report the 1 % of new orders that \
                 they roll back, so that `events` includes these; nopm and tpm are exact"
            );
            Ok(())
        }
        Err(missing) => bail!(
            "the database has no procedure {}: run `loadprint-load cleanup tproc_c` and `prepare tproc_c`",
            missing.join(", ")
        ),
    }
}
