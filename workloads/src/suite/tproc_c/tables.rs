//! The definitions of the nine tables with HammerDB's columns, types and indexes, in latin1 and
//! without foreign keys.

use anyhow::Result;

use crate::options::Values;

/// The tables in the order of their creation.
pub const TABLES: [&str; 9] = [
    "warehouse",
    "district",
    "customer",
    "history",
    "item",
    "stock",
    "orders",
    "new_order",
    "order_line",
];

/// From this many warehouses on `--partition=on` has an effect.
const PARTITIONED: i64 = 200;

/// The options of the tables.
#[derive(Debug)]
pub struct Shape<'a> {
    /// Warehouses to load.
    pub warehouses: i64,
    engine: &'a str,
    partition: bool,
    /// `history` has an invisible primary key.
    pub history_key: bool,
    strict: bool,
}

impl<'a> Shape<'a> {
    /// By the options.
    pub fn of(values: &'a Values) -> Result<Self> {
        Ok(Self {
            warehouses: values.int("warehouses")?,
            engine: values.text("mysql-storage-engine")?.unwrap_or("innodb"),
            partition: values.flag("partition")?,
            history_key: values.flag("history-pk")?,
            strict: values.flag("strict")?,
        })
    }

    /// CREATE TABLE of each table.
    pub fn definitions(&self) -> Vec<String> {
        let table = |name: &&str| {
            format!(
                "CREATE TABLE {name} (\n{}\n) ENGINE = {} DEFAULT CHARACTER SET latin1{}",
                self.columns(name),
                self.engine,
                self.partitions(name)
            )
        };
        TABLES.iter().map(table).collect()
    }

    /// One partition per hundred warehouses, of `order_line` only.
    fn partitions(&self, table: &str) -> String {
        if table != "order_line" || !self.partition || self.warehouses < PARTITIONED {
            return String::new();
        }
        format!(
            " PARTITION BY HASH (ol_w_id) PARTITIONS {}",
            self.warehouses / 100
        )
    }

    fn columns(&self, table: &str) -> String {
        let text = match table {
            "warehouse" => WAREHOUSE,
            "district" => DISTRICT,
            "customer" => CUSTOMER,
            "history" if self.history_key => HISTORY_WITH_KEY,
            "history" => HISTORY,
            "item" => ITEM,
            "stock" => STOCK,
            "orders" => ORDERS,
            "new_order" => NEW_ORDER,
            _ => ORDER_LINE,
        };
        // Only the rules of TPC-C store cents.
        let amount = if self.strict { "DECIMAL(6,2)" } else { "INT" };
        text.replace("{amount}", amount)
            .replace("{text}", "COLLATE latin1_bin")
    }
}

const WAREHOUSE: &str =
    "  w_id INT NOT NULL, w_ytd DECIMAL(12,2), w_tax DECIMAL(4,4), w_name VARCHAR(10) {text},
  w_street_1 VARCHAR(20) {text}, w_street_2 VARCHAR(20) {text}, w_city VARCHAR(20) {text},
  w_state CHAR(2) {text}, w_zip CHAR(9) {text},
  PRIMARY KEY (w_id)";

const DISTRICT: &str =
    "  d_id INT NOT NULL, d_w_id INT NOT NULL, d_ytd DECIMAL(12,2), d_tax DECIMAL(4,4), d_next_o_id INT,
  d_name VARCHAR(10) {text}, d_street_1 VARCHAR(20) {text}, d_street_2 VARCHAR(20) {text},
  d_city VARCHAR(20) {text}, d_state CHAR(2) {text}, d_zip CHAR(9) {text},
  PRIMARY KEY (d_w_id, d_id)";

const CUSTOMER: &str = "  c_id INT NOT NULL, c_d_id INT NOT NULL, c_w_id INT NOT NULL,
  c_first VARCHAR(16) {text}, c_middle CHAR(2) {text}, c_last VARCHAR(16) {text},
  c_street_1 VARCHAR(20) {text}, c_street_2 VARCHAR(20) {text}, c_city VARCHAR(20) {text},
  c_state CHAR(2) {text}, c_zip CHAR(9) {text}, c_phone CHAR(16) {text}, c_since DATETIME,
  c_credit CHAR(2) {text}, c_credit_lim DECIMAL(12,2), c_discount DECIMAL(4,4), c_balance DECIMAL(12,2),
  c_ytd_payment DECIMAL(12,2), c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500) {text},
  PRIMARY KEY (c_w_id, c_d_id, c_id),
  KEY c_w_id (c_w_id, c_d_id, c_last(16), c_first(16))";

const HISTORY: &str = "  h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_date DATETIME,
  h_amount DECIMAL(6,2), h_data VARCHAR(24) {text}";

const HISTORY_WITH_KEY: &str =
    "  h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_date DATETIME,
  h_amount DECIMAL(6,2), h_data VARCHAR(24) {text}, id INT NOT NULL AUTO_INCREMENT INVISIBLE,
  PRIMARY KEY (id)";

const ITEM: &str = "  i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24) {text}, i_price DECIMAL(5,2),
  i_data VARCHAR(50) {text},
  PRIMARY KEY (i_id)";

const STOCK: &str = "  s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity INT,
  s_dist_01 CHAR(24) {text}, s_dist_02 CHAR(24) {text}, s_dist_03 CHAR(24) {text}, s_dist_04 CHAR(24) {text},
  s_dist_05 CHAR(24) {text}, s_dist_06 CHAR(24) {text}, s_dist_07 CHAR(24) {text}, s_dist_08 CHAR(24) {text},
  s_dist_09 CHAR(24) {text}, s_dist_10 CHAR(24) {text},
  s_ytd BIGINT, s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50) {text},
  PRIMARY KEY (s_w_id, s_i_id)";

const ORDERS: &str =
    "  o_id INT NOT NULL, o_w_id INT NOT NULL, o_d_id INT NOT NULL, o_c_id INT, o_carrier_id INT,
  o_ol_cnt INT, o_all_local INT, o_entry_d DATETIME,
  PRIMARY KEY (o_w_id, o_d_id, o_id),
  KEY o_w_id (o_w_id, o_d_id, o_c_id, o_id)";

const NEW_ORDER: &str = "  no_w_id INT NOT NULL, no_d_id INT NOT NULL, no_o_id INT NOT NULL,
  PRIMARY KEY (no_w_id, no_d_id, no_o_id)";

const ORDER_LINE: &str =
    "  ol_w_id INT NOT NULL, ol_d_id INT NOT NULL, ol_o_id INT NOT NULL, ol_number INT NOT NULL,
  ol_i_id INT, ol_delivery_d DATETIME, ol_amount {amount}, ol_supply_w_id INT, ol_quantity INT,
  ol_dist_info CHAR(24) {text},
  PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tproc_c::OPTIONS;

    fn order_line(options: &[(&str, &str)]) -> String {
        let values = Values::defaults(&[OPTIONS], options);
        Shape::of(&values).unwrap().definitions().remove(8)
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

    #[test]
    fn only_the_strict_rules_store_cents() {
        assert!(order_line(&[]).contains("ol_amount INT,"));
        assert!(order_line(&[("strict", "on")]).contains("ol_amount DECIMAL(6,2),"));
    }
}
