//! Packets: three bytes of length, one of sequence, a payload. A payload of 16 MiB - 1 goes on in the next packet.

/// The longest payload of one packet, in bytes: a payload of this length goes on.
pub(super) const PAYLOAD_MAX: usize = 0xFF_FFFF;
pub(super) const HEADER_BYTES: usize = 4;

/// One packet, still in the bytes it came in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    pub(super) sequence: u8,
    pub(super) payload: &'a [u8],
}

impl Packet<'_> {
    pub(super) fn size_bytes(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }
}

/// Length of the packet that begins with these bytes, its header included; `None` while that is not known.
pub(super) fn announced_bytes(bytes: &[u8]) -> Option<usize> {
    let [a, b, c, ..] = *bytes else { return None };
    let length = u32::from_le_bytes([a, b, c, 0]);
    Some(HEADER_BYTES + usize::try_from(length).unwrap_or(PAYLOAD_MAX))
}

/// The packet at the front of the bytes, once it is whole.
#[inline]
pub(super) fn split(bytes: &[u8]) -> Option<Packet<'_>> {
    let whole = bytes.get(..announced_bytes(bytes)?)?;
    let (header, payload) = whole.split_at(HEADER_BYTES);
    Some(Packet {
        sequence: header[3],
        payload,
    })
}

/// Appends the payload that `fill` makes, in as many packets as it takes; counts `sequence` on.
pub(super) fn put(out: &mut Vec<u8>, sequence: &mut u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    fill(out);
    let length = out.len() - begin - HEADER_BYTES;
    if length < PAYLOAD_MAX {
        let header = header(length, sequence);
        out[begin..begin + HEADER_BYTES].copy_from_slice(&header);
        return;
    }
    let payload = out.split_off(begin + HEADER_BYTES);
    out.truncate(begin);
    let mut rest = payload.as_slice();
    loop {
        let (piece, after) = rest.split_at(rest.len().min(PAYLOAD_MAX));
        out.extend_from_slice(&header(piece.len(), sequence));
        out.extend_from_slice(piece);
        rest = after;
        // A payload that fills its packet is followed by another, be it empty.
        if piece.len() < PAYLOAD_MAX {
            return;
        }
    }
}

fn header(length: usize, sequence: &mut u8) -> [u8; HEADER_BYTES] {
    let bytes = length.to_le_bytes();
    let header = [bytes[0], bytes[1], bytes[2], *sequence];
    *sequence = sequence.wrapping_add(1);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_payload_goes_on_in_the_next_packet() {
        for (length, packets) in [
            (0, 1),
            (1, 1),
            (PAYLOAD_MAX - 1, 1),
            (PAYLOAD_MAX, 2),
            (2 * PAYLOAD_MAX + 5, 3),
        ] {
            let (mut out, mut sequence) = (b"before".to_vec(), 255);
            put(&mut out, &mut sequence, |out| {
                out.resize(out.len() + length, 7);
            });
            let (mut rest, mut joined, mut found) = (&out[6..], 0, 0_u8);
            while let Some(packet) = split(rest) {
                assert_eq!(packet.sequence, 255_u8.wrapping_add(found));
                joined += packet.payload.len();
                rest = &rest[packet.size_bytes()..];
                found += 1;
            }
            assert_eq!((rest.len(), joined, found), (0, length, packets));
            assert_eq!(sequence, 255_u8.wrapping_add(packets));
        }
    }
}
