//! Whether the database holds what the run needs: tables, columns, warehouses, procedures, each with its mend.

use anyhow::Result;
use anyhow::bail;

use super::given_warehouses;
use super::load::cell;
use super::procedures;
use super::procedures::Origin;
use super::tables::TABLES;
use crate::driver::Connection;
use crate::options::Values;

/// Columns that the statements name and an older or other schema may lack.
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

/// Refuses what cannot run; a line on standard error for what runs in another way than one may think.
///
/// # Errors
/// One line with the mend.
pub fn preflight(values: &Values, threads: usize, connection: &mut dyn Connection) -> Result<()> {
    let strict = values.flag("strict")?;
    columns(connection, strict)?;
    let rows = connection.rows("SELECT MAX(w_id) FROM warehouse")?;
    let there: i64 = cell(&rows).unwrap_or("0").parse()?;
    if there == 0 {
        bail!("table warehouse is empty: run `loadprint-load cleanup tproc_c` and `prepare tproc_c`");
    }
    if let Some(wanted) = given_warehouses(values)?
        && wanted > there
    {
        bail!(
            "--warehouses={wanted}, but the database has {there}: lower it, or run `loadprint-load cleanup tproc_c` and \
             `prepare tproc_c --warehouses={wanted}`"
        );
    }
    let used = given_warehouses(values)?.unwrap_or(there);
    if usize::try_from(used)? < threads {
        eprintln!(
            "loadprint-load: {threads} threads on {used} warehouses: threads share a warehouse and wait for each other's row locks; \
             HammerDB advises several warehouses per virtual user"
        );
    }
    match values.text("tproc-mode")? {
        Some("statements") => Ok(()),
        _ => procedures_fit(connection, strict),
    }
}

fn columns(connection: &mut dyn Connection, strict: bool) -> Result<()> {
    let rows = connection.rows(
        "SELECT LOWER(TABLE_NAME), LOWER(COLUMN_NAME), LOWER(DATA_TYPE) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()",
    )?;
    let at = |row: &[Option<String>], column: usize| row.get(column).cloned().flatten().unwrap_or_default();
    let kind = |table: &str, column: &str| {
        rows.iter()
            .find(|row| at(row, 0) == table && at(row, 1) == column)
            .map(|row| at(row, 2))
    };
    let absent: Vec<&str> = TABLES
        .into_iter()
        .filter(|table| !rows.iter().any(|row| at(row, 0) == *table))
        .collect();
    if !absent.is_empty() {
        bail!(
            "the database has no table {}: run `loadprint-load prepare tproc_c` with the same --mysql-db first",
            absent.join(", ")
        );
    }
    for (table, names) in COLUMNS {
        if let Some(name) = names.split(',').find(|name| kind(table, name).is_none()) {
            bail!("table {table} has no column {name}: it is not TPROC-C's; give another --mysql-db");
        }
    }
    if strict && kind("order_line", "ol_amount").as_deref() != Some("decimal") {
        bail!(
            "--strict: the data were loaded without it (ol_amount holds no cents): run `loadprint-load cleanup tproc_c` and \
             `prepare tproc_c --strict`"
        );
    }
    Ok(())
}

fn procedures_fit(connection: &mut dyn Connection, strict: bool) -> Result<()> {
    match procedures::origin(connection)? {
        Ok(Origin::Ours { strict: found }) if found == strict => Ok(()),
        Ok(Origin::Ours { strict: found }) => {
            let (found, other) = if found {
                ("with", "give")
            } else {
                ("without", "leave out")
            };
            bail!(
                "the procedures were made {found} --strict: {other} --strict, or run cleanup and prepare again"
            )
        }
        Ok(Origin::Foreign) if strict => bail!(
            "--strict: the procedures are another tool's: run `loadprint-load cleanup tproc_c` and `prepare tproc_c --strict`, \
             or use --tproc-mode=statements"
        ),
        Ok(Origin::Foreign) => {
            eprintln!(
                "loadprint-load: the procedures are another tool's (HammerDB's?): they do not tell the client of the 1 % of new orders \
                 that they roll back, so `events` counts these too; nopm and tpm are exact"
            );
            Ok(())
        }
        Err(missing) => bail!(
            "the database has no procedure {}: run `loadprint-load cleanup tproc_c` and `prepare tproc_c`, or use --tproc-mode=statements",
            missing.join(", ")
        ),
    }
}
