//! The parts of a packet, from front to back; every step fails where the packet is too short.

/// What is left of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        Some(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.array()?))
    }

    /// A whole number of 1, 3, 4 or 9 bytes.
    #[inline]
    pub(super) fn lenenc(&mut self) -> Option<u64> {
        Some(match self.u8()? {
            0xFC => u64::from(self.u16()?),
            0xFD => {
                let [a, b, c] = self.array()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xFE => u64::from_le_bytes(self.array()?),
            // NULL and the begin of an error are no numbers.
            0xFB | 0xFF => return None,
            small => u64::from(small),
        })
    }

    /// Bytes after their length.
    #[inline]
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.lenenc()?).ok()?;
        self.take(length)
    }
}

/// Appends bytes after their length, as a row in text form has them.
pub fn lenenc_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let length = bytes.len() as u64;
    let all = length.to_le_bytes();
    match length {
        0..=0xFA => out.push(all[0]),
        0xFB..=0xFFFF => out.extend_from_slice(&[0xFC, all[0], all[1]]),
        0x1_0000..=0xFF_FFFF => out.extend_from_slice(&[0xFD, all[0], all[1], all[2]]),
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&all);
        }
    }
    out.extend_from_slice(bytes);
}
