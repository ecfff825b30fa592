//! The two hash functions of pgbench's script language.

const FNV_OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
const MURMUR2_MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const MURMUR2_ROTATE: u32 = 47;
/// Bytes hashed, which Murmur2 mixes into its start value.
const INPUT_BYTES: u64 = 8;

/// FNV-1a over the eight bytes of `value`, lowest first; `seed` changes the offset basis
/// (`getHashFnv1a` of pgbench).
#[must_use]
pub const fn hash_fnv1a(value: i64, seed: i64) -> i64 {
    let mut result = FNV_OFFSET_BASIS ^ seed.cast_unsigned();
    let mut rest = value.cast_unsigned();
    let mut octet = 0;
    while octet < INPUT_BYTES {
        result = (result ^ (rest & 0xff)).wrapping_mul(FNV_PRIME);
        rest >>= 8;
        octet += 1;
    }
    result.cast_signed()
}

/// `MurmurHash64A` (Austin Appleby) of one 64-bit word (`getHashMurmur2` of pgbench).
#[must_use]
pub const fn hash_murmur2(value: i64, seed: i64) -> i64 {
    let mut word = value.cast_unsigned().wrapping_mul(MURMUR2_MULTIPLIER);
    word ^= word >> MURMUR2_ROTATE;
    word = word.wrapping_mul(MURMUR2_MULTIPLIER);

    let mut result = seed.cast_unsigned() ^ MURMUR2_MULTIPLIER.wrapping_mul(INPUT_BYTES);
    result = (result ^ word).wrapping_mul(MURMUR2_MULTIPLIER);
    result = (result ^ (result >> MURMUR2_ROTATE)).wrapping_mul(MURMUR2_MULTIPLIER);
    (result ^ (result >> MURMUR2_ROTATE)).cast_signed()
}
