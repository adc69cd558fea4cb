//! Rows to insert: uniform values, and a text of which half is random.

use crate::driver::ParamType;
use crate::driver::Value;
use crate::random::Rng;

/// Values of cashregisterid; they begin at 0.
pub const CASH_REGISTERS: i64 = 1000;
/// Values of productid.
pub const PRODUCTS: i64 = 10_000;
/// Values of customerid.
const CUSTOMERS: i64 = 100_000;
/// Values of price.
pub const PRICES: i64 = 500;
/// Bytes of data, both ends included.
const DATA: (i64, i64) = (10, 20);

const TYPES: [ParamType; 5] = [
    ParamType::Int,
    ParamType::Int,
    ParamType::Int,
    ParamType::Int,
    ParamType::Char(DATA.1 as usize),
];

/// One row without its id and its time, which the server gives.
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

/// An INSERT of so many rows, and the types of its parameters.
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
    fn values_lie_in_their_ranges_and_half_of_the_text_is_random() {
        let mut rng = Rng::new(1, 1);
        let mut largest = [0; 4];
        for _ in 0..200_000 {
            let row = Row::draw(&mut rng);
            for (most, number) in largest.iter_mut().zip(row.numbers) {
                assert!(number >= 0);
                *most = number.max(*most);
            }
            assert!((10..=20).contains(&row.length));
            let fixed = row.length - row.length / 2;
            assert!(row.data[..fixed].iter().all(|byte| *byte == b'a'));
        }
        // Of 200,000 draws the largest is the last value, but for customers with probability 0.14: then it lies near.
        assert_eq!([largest[0], largest[2], largest[3]], [999, 9999, 499]);
        assert!((99_900..100_000).contains(&largest[1]));
    }
}
