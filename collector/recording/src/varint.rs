//! Encodes and decodes integers as LEB128, signed ones after zigzag mapping.

/// Appends `value`, seven bits per byte, low bits first.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    if value < 0x80 {
        out.push(value as u8);
        return;
    }
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` so that small numbers of either sign are short.
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Removes an integer from the front of `bytes`; `None` if it is incomplete or longer than 64 bits.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    let mut shift = 0;
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift > 63 || (shift == 63 && bits > 1) {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}

/// Reverses [`put_signed`].
pub(crate) fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    take(bytes).map(|value| (value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

/// Removes `length` bytes from the front.
pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(front)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_values_round_trip() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            put_signed(&mut bytes, value.cast_signed());
            let mut rest = bytes.as_slice();
            assert_eq!(take(&mut rest), Some(value));
            assert_eq!(take_signed(&mut rest), Some(value.cast_signed()));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn incomplete_and_too_long_integers_are_refused() {
        assert_eq!(take(&mut [0x80].as_slice()), None);
        assert_eq!(take(&mut [0xff; 10].as_slice()), None);
        assert_eq!(take(&mut [].as_slice()), None);
        // Examples of the Protocol Buffers encoding guide.
        assert_eq!(take(&mut [0x96, 0x01].as_slice()), Some(150));
        assert_eq!(take_signed(&mut [0x03].as_slice()), Some(-2));
    }
}
