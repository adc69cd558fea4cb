//! Packets of MySQL's protocol, for servers that misbehave.

use std::io;
use std::io::Read;

/// The challenge of the greeting.
pub const SCRAMBLE: &[u8; 20] = b"abcdefghijklmnopqrst";

/// The first packet of a server, handshake version 10: long passwords, protocol 4.1, transactions, plugins, and
/// TLS on request; no capability that changes the format of rows.
pub fn greeting(has_tls: bool) -> Vec<u8> {
    let (first, last) = SCRAMBLE.split_at(8);
    let flags = [0x01, if has_tls { 0xaa } else { 0xa2 }];
    let parts: [&[u8]; 7] = [
        b"\x0a9.0.0\0\x01\0\0\0",
        first,
        b"\0",
        &flags,
        b"\xff\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0",
        last,
        b"\0caching_sha2_password\0",
    ];
    framed(0, &parts.concat())
}

/// A packet with its header.
pub fn framed(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

/// The sequence number and the payload of a packet.
pub fn receive(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut header = [0; 4];
    from.read_exact(&mut header)?;
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    from.read_exact(&mut payload)?;
    Ok((header[3], payload))
}
