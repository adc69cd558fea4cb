//! Packets of the client: COM_QUERY, COM_STMT_PREPARE, COM_STMT_EXECUTE, COM_STMT_CLOSE.

use super::Dialect;
use super::MOST;
use crate::driver::ParamType;
use crate::driver::Value;

const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_CLOSE: u8 = 0x19;
/// Flag of COM_STMT_EXECUTE: the number of parameters is in the packet.
const PARAMETER_COUNT_AVAILABLE: u8 = 8;
const HEADER: usize = 4;

/// Begins a packet.
fn begin(packet: &mut Vec<u8>, command: u8) {
    packet.clear();
    packet.extend_from_slice(&[0, 0, 0, 0, command]);
}

/// Writes the length, and cuts what is too long for one packet.
fn finish(packet: &mut Vec<u8>) {
    let length = packet.len() - HEADER;
    if length < MOST {
        packet[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        return;
    }
    let payload = packet.split_off(HEADER);
    packet.clear();
    let mut sequence = 0_u8;
    let mut pieces = payload.chunks(MOST);
    loop {
        // A last piece of full length is followed by an empty one.
        let piece = pieces.next().unwrap_or_default();
        packet.extend_from_slice(&(piece.len() as u32).to_le_bytes()[..3]);
        packet.push(sequence);
        packet.extend_from_slice(piece);
        sequence = sequence.wrapping_add(1);
        if piece.len() < MOST {
            return;
        }
    }
}

/// A text, written by `text` behind what is in the buffer.
pub fn query(packet: &mut Vec<u8>, dialect: Dialect, sql: &[u8]) {
    begin(packet, COM_QUERY);
    if dialect.attributes {
        // No attributes, one set of them.
        packet.extend_from_slice(&[0, 1]);
    }
    packet.extend_from_slice(sql);
    finish(packet);
}

/// Asks for a statement.
pub fn prepare(packet: &mut Vec<u8>, sql: &[u8]) {
    begin(packet, COM_STMT_PREPARE);
    packet.extend_from_slice(sql);
    finish(packet);
}

/// Gives a statement back; there is no reply.
pub fn close(packet: &mut Vec<u8>, statement: u32) {
    begin(packet, COM_STMT_CLOSE);
    packet.extend_from_slice(&statement.to_le_bytes());
    finish(packet);
}

/// Runs a statement, as libmysqlclient does: the types go with the first call only. The error is the position of a value that does not fit its type.
pub fn execute(
    packet: &mut Vec<u8>,
    dialect: Dialect,
    (statement, params): (u32, &[ParamType]),
    values: &[Value<'_>],
    with_types: bool,
) -> Result<(), usize> {
    let counted = dialect.attributes && dialect.counts_parameters;
    begin(packet, COM_STMT_EXECUTE);
    packet.extend_from_slice(&statement.to_le_bytes());
    let flags = if counted { PARAMETER_COUNT_AVAILABLE } else { 0 };
    packet.extend_from_slice(&[flags, 1, 0, 0, 0]);
    if counted {
        length(packet, params.len());
    }
    if !params.is_empty() {
        let bitmap = packet.len();
        packet.resize(bitmap + params.len().div_ceil(8), 0);
        packet.push(u8::from(with_types));
        if with_types {
            for param in params {
                packet.extend_from_slice(&[field_type(*param), 0]);
                if dialect.attributes {
                    // A parameter without a name.
                    packet.push(0);
                }
            }
        }
        for (position, param) in params.iter().enumerate() {
            match values.get(position) {
                Some(Value::Null) => packet[bitmap + position / 8] |= 1 << (position % 8),
                Some(value) if append(packet, *value, *param) => {}
                _ => return Err(position),
            }
        }
    }
    finish(packet);
    Ok(())
}

/// `enum enum_field_types` of field_types.h.
fn field_type(param: ParamType) -> u8 {
    match param {
        ParamType::Int => 3,
        ParamType::BigInt => 8,
        ParamType::Char(_) => 254,
        ParamType::Binary(_) => 252,
    }
}

/// Appends a value that is not NULL; false if it does not fit.
fn append(packet: &mut Vec<u8>, value: Value<'_>, param: ParamType) -> bool {
    match (value, param) {
        (Value::Int(number), ParamType::Int) => {
            let Ok(number) = i32::try_from(number) else {
                return false;
            };
            packet.extend_from_slice(&number.to_le_bytes());
        }
        (Value::Int(number), ParamType::BigInt) => packet.extend_from_slice(&number.to_le_bytes()),
        (Value::Bytes(bytes), ParamType::Char(most) | ParamType::Binary(most)) if bytes.len() <= most => {
            length(packet, bytes.len());
            packet.extend_from_slice(bytes);
        }
        _ => return false,
    }
    true
}

/// A length-encoded integer.
fn length(packet: &mut Vec<u8>, length: usize) {
    let bytes = (length as u64).to_le_bytes();
    let (mark, count) = match length {
        0..=250 => return packet.push(bytes[0]),
        251..=0xffff => (0xfc, 2),
        0x1_0000..=MOST => (0xfd, 3),
        _ => (0xfe, 8),
    };
    packet.push(mark);
    packet.extend_from_slice(&bytes[..count]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Dialect = Dialect {
        deprecate_eof: true,
        attributes: true,
        counts_parameters: true,
    };

    #[test]
    fn a_long_text_is_cut_into_packets_that_a_short_one_ends() {
        for (text, lengths) in [
            (MOST - 2, &[MOST - 1][..]),
            (MOST - 1, &[MOST, 0]),
            (MOST + 9, &[MOST, 10]),
        ] {
            let mut packet = Vec::new();
            query(&mut packet, Dialect::default(), &vec![b'x'; text]);
            let mut rest = packet.as_slice();
            for (sequence, expected) in lengths.iter().enumerate() {
                let length = u32::from_le_bytes([rest[0], rest[1], rest[2], 0]) as usize;
                assert_eq!((length, rest[3] as usize), (*expected, sequence));
                rest = &rest[4 + length..];
            }
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn types_go_with_the_first_call_only_and_null_is_a_bit() {
        let params = [ParamType::Int, ParamType::Char(3)];
        let mut packet = Vec::new();
        execute(
            &mut packet,
            NEW,
            (7, &params),
            &[Value::Int(-2), Value::Null],
            true,
        )
        .unwrap();
        let head = [0x17, 7, 0, 0, 0, 8, 1, 0, 0, 0, 2];
        let body = [0b10, 1, 3, 0, 0, 254, 0, 0, 0xfe, 0xff, 0xff, 0xff];
        assert_eq!(packet[4..], [&head[..], &body].concat());
        execute(
            &mut packet,
            NEW,
            (7, &params),
            &[Value::Int(1), Value::Bytes(b"abc")],
            false,
        )
        .unwrap();
        assert_eq!(
            packet[4..],
            [&head[..], &[0, 0, 1, 0, 0, 0, 3, b'a', b'b', b'c']].concat()
        );
        let too_long = [Value::Int(1), Value::Bytes(b"abcd")];
        assert_eq!(execute(&mut packet, NEW, (7, &params), &too_long, false), Err(1));
        assert_eq!(
            execute(&mut packet, NEW, (7, &params), &[Value::Int(1 << 40)], false),
            Err(0)
        );
    }
}
