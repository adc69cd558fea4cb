//! Fills values into a statement's text at each `?`: the emulation of prepared statements, as in
//! sysbench.

use std::io::Write;

use super::ParamType;
use super::Value;

/// The parts of a statement between its parameters.
#[derive(Debug)]
pub struct Template {
    pieces: Vec<Box<[u8]>>,
    params: Box<[ParamType]>,
}

impl Template {
    /// Splits `sql` at each `?` outside quotes.
    pub fn new(sql: &str, params: &[ParamType]) -> Self {
        let mut pieces = vec![Vec::new()];
        let mut quote = None;
        for byte in sql.bytes() {
            match (quote, byte) {
                (None, b'?') => pieces.push(Vec::new()),
                (None, b'\'' | b'"' | b'`') => quote = Some(byte),
                (Some(open), _) if open == byte => quote = None,
                _ => {}
            }
            if !(byte == b'?' && quote.is_none())
                && let Some(piece) = pieces.last_mut()
            {
                piece.push(byte);
            }
        }
        Self {
            pieces: pieces.into_iter().map(Vec::into_boxed_slice).collect(),
            params: params.into(),
        }
    }

    /// Writes the statement into `text`, which is cleared first. `escape` appends bytes in the form
    /// required between single quotes.
    pub fn fill(
        &self,
        text: &mut Vec<u8>,
        values: &[Value<'_>],
        mut escape: impl FnMut(&mut Vec<u8>, &[u8]),
    ) {
        text.clear();
        let mut values = values.iter().zip(self.params.iter());
        for (position, piece) in self.pieces.iter().enumerate() {
            if position > 0
                && let Some((value, param)) = values.next()
            {
                append(text, *value, *param, &mut escape);
            }
            text.extend_from_slice(piece);
        }
    }
}

fn append(
    text: &mut Vec<u8>,
    value: Value<'_>,
    param: ParamType,
    escape: &mut impl FnMut(&mut Vec<u8>, &[u8]),
) {
    // Writing to a Vec cannot fail.
    match (value, param) {
        (Value::Null, _) => text.extend_from_slice(b"NULL"),
        (Value::Int(number), _) => drop(write!(text, "{number}")),
        (Value::Bytes(bytes), ParamType::Binary(_)) => {
            text.extend_from_slice(b"x'");
            for byte in bytes {
                drop(write!(text, "{byte:02x}"));
            }
            text.push(b'\'');
        }
        (Value::Bytes(bytes), _) => {
            text.push(b'\'');
            escape(text, bytes);
            text.push(b'\'');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &mut Vec<u8>, bytes: &[u8]) {
        text.extend_from_slice(bytes);
    }

    #[test]
    fn values_are_formatted_by_their_type() {
        let params = [
            ParamType::Char(9),
            ParamType::Int,
            ParamType::Binary(2),
            ParamType::Int,
        ];
        let template = Template::new("UPDATE t SET c=?, d='?' WHERE id=? AND b=? AND n=?", &params);
        let values = [
            Value::Bytes(b"a-b"),
            Value::Int(-7),
            Value::Bytes(&[0, 255]),
            Value::Null,
        ];
        let mut text = b"left over".to_vec();
        template.fill(&mut text, &values, plain);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "UPDATE t SET c='a-b', d='?' WHERE id=-7 AND b=x'00ff' AND n=NULL"
        );
    }

    #[test]
    fn a_text_without_parameters_is_unchanged() {
        let mut text = Vec::new();
        Template::new("BEGIN", &[]).fill(&mut text, &[], plain);
        assert_eq!(text, b"BEGIN");
    }
}
