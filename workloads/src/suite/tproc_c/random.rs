//! Draws the random values of the benchmark: TPC-C clauses 2.1.6 (NURand) and 4.3.2 (strings, last
//! names), HammerDB's ranges.

use crate::random::Rng;

/// Districts per warehouse (TPC-C clauses 1.2 and 4.3.3, like the next constants).
pub const DISTRICTS: i64 = 10;
/// Customers per district, and initial orders.
pub const CUSTOMERS: i64 = 3000;
/// Items, and stock rows per warehouse.
pub const ITEMS: i64 = 100_000;
/// Initial orders with higher numbers wait for their delivery.
pub const DELIVERED: i64 = 2100;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Letters from one 64-bit random number: 62^10 < 2^60.
const PER_WORD: usize = 10;
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// HammerDB's NURand constant of last names, for prepare and run.
const C_LAST: i64 = 123;

/// The number of a last name, in the data and in a transaction: NURand(255, 0, 999) of clause 2.1.6.
pub fn name(rng: &mut Rng) -> i64 {
    let mixed = rng.uniform(0, 255) | rng.uniform(0, 999);
    (mixed + C_LAST) % 1000
}

/// A warehouse other than `home`, if there is one.
pub fn other_warehouse(rng: &mut Rng, home: i64, warehouses: i64) -> i64 {
    if warehouses == 1 {
        return home;
    }
    let drawn = rng.uniform(1, warehouses - 1);
    drawn + i64::from(drawn >= home)
}

/// Clause 4.3.2.3: the last name of a number from 0 to 999.
pub fn last_name(number: i64) -> String {
    let syllable = |unit: i64| SYLLABLES[usize::try_from(number / unit % 10).unwrap_or(0)];
    [syllable(100), syllable(10), syllable(1)].concat()
}

/// Appends `shortest` to `longest` letters and digits.
pub fn letters(rng: &mut Rng, text: &mut String, shortest: i64, longest: i64) {
    let mut left = usize::try_from(rng.uniform(shortest, longest)).unwrap_or(0);
    while left > 0 {
        let mut bits = rng.bits();
        for _ in 0..left.min(PER_WORD) {
            let product = u128::from(bits) * LETTERS.len() as u128;
            text.push(char::from(LETTERS[(product >> 64) as usize]));
            bits = product as u64;
        }
        left = left.saturating_sub(PER_WORD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_clause() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn other_warehouse_is_never_the_home() {
        let mut rng = Rng::new(1, 1);
        let mut seen = [0; 5];
        for _ in 0..4000 {
            seen[usize::try_from(other_warehouse(&mut rng, 3, 4)).unwrap()] += 1;
        }
        assert_eq!((seen[0], seen[3]), (0, 0));
        assert!([1, 2, 4].iter().all(|other| seen[*other] > 1000), "{seen:?}");
        assert_eq!(other_warehouse(&mut rng, 1, 1), 1);
    }

    #[test]
    fn nurand_is_in_its_range_and_not_uniform() {
        let mut rng = Rng::new(1, 1);
        let mut hits = vec![0u32; 1000];
        for _ in 0..200_000 {
            hits[usize::try_from(name(&mut rng)).unwrap()] += 1;
        }
        hits.sort_unstable_by(|a, b| b.cmp(a));
        let hottest: u32 = hits[..100].iter().sum();
        // A tenth of the names has far more than a tenth of the draws.
        assert!(hottest > 60_000, "{hottest}");
    }

    #[test]
    fn letters_have_the_wanted_length() {
        let mut rng = Rng::new(1, 1);
        for _ in 0..1000 {
            let mut text = String::new();
            letters(&mut rng, &mut text, 8, 16);
            assert!((8..=16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric()));
        }
    }
}
