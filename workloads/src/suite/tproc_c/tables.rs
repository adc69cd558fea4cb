//! The definitions of the nine tables with HammerDB's columns, types and indexes, in latin1 and
//! without foreign keys.

use super::Options;

/// From this many warehouses on `--partition=on` has an effect.
const PARTITIONED: i64 = 200;

/// Name, columns and indexes of the tables in the order of their creation.
pub const TABLES: [(&str, &str, &str); 9] = [
    (
        "warehouse",
        "w_id INT NOT NULL, w_ytd DECIMAL(12,2), w_tax DECIMAL(4,4), w_name VARCHAR(10) {text},
  w_street_1 VARCHAR(20) {text}, w_street_2 VARCHAR(20) {text}, w_city VARCHAR(20) {text},
  w_state CHAR(2) {text}, w_zip CHAR(9) {text}",
        ",\n  PRIMARY KEY (w_id)",
    ),
    (
        "district",
        "d_id INT NOT NULL, d_w_id INT NOT NULL, d_ytd DECIMAL(12,2), d_tax DECIMAL(4,4), d_next_o_id INT,
  d_name VARCHAR(10) {text}, d_street_1 VARCHAR(20) {text}, d_street_2 VARCHAR(20) {text},
  d_city VARCHAR(20) {text}, d_state CHAR(2) {text}, d_zip CHAR(9) {text}",
        ",\n  PRIMARY KEY (d_w_id, d_id)",
    ),
    (
        "customer",
        "c_id INT NOT NULL, c_d_id INT NOT NULL, c_w_id INT NOT NULL,
  c_first VARCHAR(16) {text}, c_middle CHAR(2) {text}, c_last VARCHAR(16) {text},
  c_street_1 VARCHAR(20) {text}, c_street_2 VARCHAR(20) {text}, c_city VARCHAR(20) {text},
  c_state CHAR(2) {text}, c_zip CHAR(9) {text}, c_phone CHAR(16) {text}, c_since DATETIME,
  c_credit CHAR(2) {text}, c_credit_lim DECIMAL(12,2), c_discount DECIMAL(4,4), c_balance DECIMAL(12,2),
  c_ytd_payment DECIMAL(12,2), c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500) {text}",
        ",\n  PRIMARY KEY (c_w_id, c_d_id, c_id),\n  KEY c_w_id (c_w_id, c_d_id, c_last(16), c_first(16))",
    ),
    (
        "history",
        "h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_date DATETIME,
  h_amount DECIMAL(6,2), h_data VARCHAR(24) {text}",
        "{history_key}",
    ),
    (
        "item",
        "i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24) {text}, i_price DECIMAL(5,2),
  i_data VARCHAR(50) {text}",
        ",\n  PRIMARY KEY (i_id)",
    ),
    (
        "stock",
        "s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity INT,
  s_dist_01 CHAR(24) {text}, s_dist_02 CHAR(24) {text}, s_dist_03 CHAR(24) {text}, s_dist_04 CHAR(24) {text},
  s_dist_05 CHAR(24) {text}, s_dist_06 CHAR(24) {text}, s_dist_07 CHAR(24) {text}, s_dist_08 CHAR(24) {text},
  s_dist_09 CHAR(24) {text}, s_dist_10 CHAR(24) {text},
  s_ytd BIGINT, s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50) {text}",
        ",\n  PRIMARY KEY (s_w_id, s_i_id)",
    ),
    (
        "orders",
        "o_id INT NOT NULL, o_w_id INT NOT NULL, o_d_id INT NOT NULL, o_c_id INT, o_carrier_id INT,
  o_ol_cnt INT, o_all_local INT, o_entry_d DATETIME",
        ",\n  PRIMARY KEY (o_w_id, o_d_id, o_id),\n  KEY o_w_id (o_w_id, o_d_id, o_c_id, o_id)",
    ),
    (
        "new_order",
        "no_w_id INT NOT NULL, no_d_id INT NOT NULL, no_o_id INT NOT NULL",
        ",\n  PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
    ),
    (
        "order_line",
        "ol_w_id INT NOT NULL, ol_d_id INT NOT NULL, ol_o_id INT NOT NULL, ol_number INT NOT NULL,
  ol_i_id INT, ol_delivery_d DATETIME, ol_amount INT, ol_supply_w_id INT, ol_quantity INT,
  ol_dist_info CHAR(24) {text}",
        ",\n  PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    ),
];

/// The names of the columns of a table.
pub fn names(columns: &str) -> impl Iterator<Item = &str> {
    // A type with a comma, such as DECIMAL(12,2), leaves a piece without a blank.
    let pieces = columns.split(',').map(str::trim_start);
    pieces.filter_map(|piece| Some(piece.split_once(' ')?.0))
}

/// CREATE TABLE of each table.
pub fn definitions(options: &Options) -> Vec<String> {
    let engine = &options.mysql_storage_engine;
    let partitions = match options.partition && options.warehouses >= PARTITIONED {
        true => format!(
            " PARTITION BY HASH (ol_w_id) PARTITIONS {}",
            options.warehouses / 100
        ),
        false => String::new(),
    };
    let history_key = match options.history_pk {
        true => ", id INT NOT NULL AUTO_INCREMENT INVISIBLE,\n  PRIMARY KEY (id)",
        false => "",
    };
    let definition = |(name, columns, keys): (&str, &str, &str)| {
        let partitions = if name == "order_line" { &partitions } else { "" };
        format!(
            "CREATE TABLE {name} (\n  {columns}{keys}\n) ENGINE = {engine} DEFAULT CHARACTER SET latin1{partitions}"
        )
        .replace("{history_key}", history_key)
        .replace("{text}", "COLLATE latin1_bin")
    };
    TABLES.into_iter().map(definition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Values;
    use crate::suite::tproc_c::OPTIONS;

    fn order_line(options: &[(&str, &str)]) -> String {
        let values = Values::defaults(&[OPTIONS], options);
        definitions(&values.read().unwrap()).remove(8)
    }

    #[test]
    fn order_line_is_partitioned_by_option_from_200_warehouses_on() {
        assert!(!order_line(&[("warehouses", "400")]).contains("PARTITION"));
        assert!(!order_line(&[("warehouses", "199"), ("partition", "on")]).contains("PARTITION"));
        let many = order_line(&[("warehouses", "250"), ("partition", "on")]);
        assert!(
            many.ends_with("PARTITION BY HASH (ol_w_id) PARTITIONS 2"),
            "{many}"
        );
    }
}
