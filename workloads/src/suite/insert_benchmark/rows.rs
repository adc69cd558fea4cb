//! Draws the rows to insert: uniform numbers, and a text of which half is random.

use crate::driver::ParamType;
use crate::driver::Value;
use crate::random::Rng;

/// Number of values of cashregisterid, from 0 on.
pub const CASH_REGISTERS: i64 = 1000;
/// Number of values of productid.
pub const PRODUCTS: i64 = 10_000;
/// Number of values of customerid.
const CUSTOMERS: i64 = 100_000;
/// Number of values of price.
pub const PRICES: i64 = 500;
/// Smallest and largest number of bytes of data.
const DATA: (i64, i64) = (10, 20);

const TYPES: [ParamType; 5] = [
    ParamType::Int,
    ParamType::Int,
    ParamType::Int,
    ParamType::Int,
    ParamType::Char(DATA.1 as usize),
];

/// One row without its id and its time, which the server assigns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    numbers: [i64; 4],
    data: [u8; DATA.1 as usize],
    length: usize,
}

impl Row {
    /// Draws a row.
    pub fn draw(rng: &mut Rng) -> Self {
        let numbers = [CASH_REGISTERS, CUSTOMERS, PRODUCTS, PRICES].map(|values| rng.uniform(0, values - 1));
        let length = rng.uniform(DATA.0, DATA.1) as usize;
        let mut data = [b'a'; DATA.1 as usize];
        for byte in &mut data[length - length / 2..length] {
            *byte = LETTERS[rng.uniform(0, LETTERS.len() as i64 - 1) as usize];
        }
        Self {
            numbers,
            data,
            length,
        }
    }

    /// The values of `INSERT`.
    pub fn values(&self) -> impl Iterator<Item = Value<'_>> {
        let data = Value::Bytes(&self.data[..self.length]);
        self.numbers.iter().copied().map(Value::Int).chain([data])
    }
}

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// An INSERT of this number of rows, and the types of its parameters.
pub fn insert(table: &str, rows: usize) -> (String, Vec<ParamType>) {
    let row = "(NOW(), ?, ?, ?, ?, ?)";
    let sql = format!(
        "INSERT INTO {table} (dateandtime, cashregisterid, customerid, productid, price, data) VALUES {}",
        vec![row; rows].join(", ")
    );
    (sql, TYPES.repeat(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_their_ranges_and_half_of_the_text_is_random() {
        let mut rng = Rng::new(1, 1);
        let mut largest = [0; 4];
        for _ in 0..200_000 {
            let row = Row::draw(&mut rng);
            for (maximum, number) in largest.iter_mut().zip(row.numbers) {
                assert!(number >= 0);
                *maximum = number.max(*maximum);
            }
            assert!((10..=20).contains(&row.length));
            let fixed = row.length - row.length / 2;
            assert!(row.data[..fixed].iter().all(|byte| *byte == b'a'));
        }
        // The largest of 200,000 draws is the last value; for customers it is near the last value
        // with probability 0.14.
        assert_eq!([largest[0], largest[2], largest[3]], [999, 9999, 499]);
        assert!((99_900..100_000).contains(&largest[1]));
    }
}
