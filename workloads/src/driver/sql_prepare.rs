//! Builds the texts of the protocol `sql_prepare`: `PREPARE`, `SET` of user variables, and
//! `EXECUTE`.

use super::ParamType;
use super::template::Template;

/// The texts that run one named statement.
#[derive(Debug)]
pub struct SqlPrepareTexts {
    /// `SET @lp0=?, …`; `None` for a statement without parameters.
    pub set: Option<Template>,
    /// `EXECUTE … USING @lp0, …`.
    pub execute: String,
}

impl SqlPrepareTexts {
    /// The text that prepares statement `number`, with `?` for the statement itself.
    pub fn prepare(number: usize, length: usize) -> Template {
        Template::new(&format!("PREPARE lp{number} FROM ?"), &[ParamType::Char(length)])
    }

    /// The texts that run statement `number`.
    pub fn new(number: usize, params: &[ParamType]) -> Self {
        let mut set = "SET".to_owned();
        let mut execute = format!("EXECUTE lp{number}");
        for position in 0..params.len() {
            let (comma, using) = if position == 0 { ("", " USING") } else { (",", ",") };
            set += &format!("{comma} @lp{position}=?");
            execute += &format!("{using} @lp{position}");
        }
        Self {
            set: (!params.is_empty()).then(|| Template::new(&set, params)),
            execute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Value;

    #[test]
    fn values_go_through_user_variables() {
        let named = SqlPrepareTexts::new(3, &[ParamType::Int, ParamType::Char(5)]);
        assert_eq!(named.execute, "EXECUTE lp3 USING @lp0, @lp1");
        let mut text = Vec::new();
        let values = [Value::Int(7), Value::Bytes(b"word")];
        named
            .set
            .unwrap()
            .fill(&mut text, &values, |text, bytes| text.extend_from_slice(bytes));
        assert_eq!(text, b"SET @lp0=7, @lp1='word'");
        assert!(SqlPrepareTexts::new(0, &[]).set.is_none());
    }
}
