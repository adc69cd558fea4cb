//! Reads integers and strings out of a packet; what is not there is an error, never a panic.

use super::Malformed;

const SHORT: Malformed = Malformed("a packet of the server ends too early");

/// The bytes of a packet that are still to be read.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a>(pub &'a [u8]);

impl<'a> Decoder<'a> {
    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = tail;
        Ok(*head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer; `None` is the mark of NULL.
    pub fn length_or_null(&mut self) -> Result<Option<u64>, Malformed> {
        Ok(Some(match self.u8()? {
            0xfb => return Ok(None),
            0xfc => self.u16()?.into(),
            0xfd => {
                let [a, b, c] = self.array()?;
                u32::from_le_bytes([a, b, c, 0]).into()
            }
            0xfe => self.u64()?,
            0xff => return Err(Malformed("a packet of the server has no length where one is due")),
            small => small.into(),
        }))
    }

    /// A length-encoded integer.
    pub fn length(&mut self) -> Result<u64, Malformed> {
        let null = Malformed("a packet of the server has NULL where a number is due");
        self.length_or_null()?.ok_or(null)
    }

    /// A length-encoded string; `None` is NULL.
    pub fn text(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.length_or_null()? {
            None => Ok(None),
            Some(length) => self.bytes(usize::try_from(length).map_err(|_| SHORT)?).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_all_sizes() {
        let read = |bytes: &[u8]| Decoder(bytes).length_or_null();
        assert_eq!(read(&[0xfa]), Ok(Some(250)));
        assert_eq!(read(&[0xfb]), Ok(None));
        assert_eq!(read(&[0xfc, 0xfb, 0]), Ok(Some(251)));
        assert_eq!(read(&[0xfd, 0, 0, 1]), Ok(Some(65_536)));
        assert_eq!(read(&[0xfe, 0, 0, 0, 1, 0, 0, 0, 0]), Ok(Some(1 << 24)));
        assert!(read(&[0xff]).is_err() && read(&[0xfd, 0, 0]).is_err() && read(&[]).is_err());
    }
}
