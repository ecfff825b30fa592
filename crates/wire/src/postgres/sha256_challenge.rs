//! The SHA-256 log-in of openGauss and what is built on its kernel, one message each way.
//!
//! Authentication code 10, which in `PostgreSQL` announces SASL, carries here: how the server keeps the password
//! (int32: 0 plain, 1 MD5, 2 SHA-256), and then for MD5 the salt of `PostgreSQL`'s own method, else a salt (64 hex
//! digits), a token (8), and after them the server's signature (64; protocol 3.0), the number of iterations (int32;
//! protocol 3.51), or nothing. Source: how openGauss's own clients do it, among them the Python package `py-opengauss`.
//!
//! With K = PBKDF2-HMAC-SHA1(password, salt, iterations, 32 bytes) and `ClientKey` = HMAC-SHA256(K, "Client Key") the
//! answer is hex(`ClientKey` XOR HMAC-SHA256(SHA256(`ClientKey`), token)). The server's signature is
//! hex(HMAC-SHA256(HMAC-SHA256(K, "Sever Key"), token)); the missing letter is the protocol's.

use std::num::NonZeroU32;

use ring::digest::{SHA256, digest};
use ring::{hmac, pbkdf2};
use zeroize::Zeroizing;

/// What servers use that do not say.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(10_000).unwrap();
/// A server that asks for more would only keep us busy.
const ITERATIONS_MAX: u32 = 10_000_000;
const SALT_BYTES: usize = 32;
const TOKEN_BYTES: usize = 4;
const KEY_BYTES: usize = 32;

/// What the server asks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// It keeps the password as MD5, and asks for it with this salt.
    Md5([u8; 4]),
    /// It keeps the password itself, or its SHA-256.
    Sha256(Sha256),
}

/// One exchange.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sha256 {
    salt: [u8; SALT_BYTES],
    token: [u8; TOKEN_BYTES],
    iterations: NonZeroU32,
    /// By which the server shows that it knows us, where it does.
    signature: Option<[u8; KEY_BYTES]>,
}

/// Why an exchange ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The message is not of this form.
    Malformed,
    /// The server keeps the password in a way that we do not know.
    Kept(u32),
    /// The server's signature is not that of one who knows the password.
    Impostor,
}

/// Whether the data of authentication code 10 are such a challenge: a list of SASL mechanisms begins with a letter.
pub(crate) fn is_challenge(data: &[u8]) -> bool {
    data.len() > TOKEN_BYTES && data.starts_with(&[0, 0, 0])
}

impl Challenge {
    pub(crate) fn read(data: &[u8]) -> Result<Self, Trouble> {
        let (kept, rest) = data.split_first_chunk().ok_or(Trouble::Malformed)?;
        match u32::from_be_bytes(*kept) {
            0 | 2 => Sha256::read(rest).map(Self::Sha256),
            1 => rest
                .try_into()
                .map(Self::Md5)
                .map_err(|_| Trouble::Malformed),
            other => Err(Trouble::Kept(other)),
        }
    }
}

impl Sha256 {
    fn read(data: &[u8]) -> Result<Self, Trouble> {
        let (salt, rest) = unhex(data).ok_or(Trouble::Malformed)?;
        let (token, rest) = unhex(rest).ok_or(Trouble::Malformed)?;
        let mut exchange = Self {
            salt,
            token,
            iterations: ITERATIONS,
            signature: None,
        };
        match rest.len() {
            0 => {}
            4 => {
                let count = rest.first_chunk().map(|count| u32::from_be_bytes(*count));
                exchange.iterations = count
                    .filter(|count| *count <= ITERATIONS_MAX)
                    .and_then(NonZeroU32::new)
                    .ok_or(Trouble::Malformed)?;
            }
            _ => {
                let (signature, rest) = unhex(rest).ok_or(Trouble::Malformed)?;
                if !rest.is_empty() {
                    return Err(Trouble::Malformed);
                }
                exchange.signature = Some(signature);
            }
        }
        Ok(exchange)
    }

    /// Our answer: 64 hex digits.
    pub(crate) fn answer(&self, password: &[u8]) -> Result<String, Trouble> {
        let key = self.key(password);
        if let Some(signature) = &self.signature {
            let expected = hmac::Key::new(hmac::HMAC_SHA256, server_key(&key).as_ref());
            hmac::verify(&expected, &self.token, signature).map_err(|_| Trouble::Impostor)?;
        }
        Ok(hex(&self.proof(&key)))
    }

    /// Whether this is the answer of one who knows the password: the server's side.
    pub(crate) fn accepts(&self, password: &[u8], answer: &[u8]) -> bool {
        hex(&self.proof(&self.key(password))).as_bytes() == answer
    }

    /// The server's side: a challenge, and the message that carries it.
    pub(crate) fn pose(salt: [u8; 32], token: [u8; 4], password: &[u8]) -> (Self, Vec<u8>) {
        let exchange = Self {
            salt,
            token,
            iterations: ITERATIONS,
            signature: None,
        };
        let key = hmac::Key::new(
            hmac::HMAC_SHA256,
            server_key(&exchange.key(password)).as_ref(),
        );
        let signature = hmac::sign(&key, &token);
        let mut data = 2_u32.to_be_bytes().to_vec();
        for part in [&salt[..], &token, signature.as_ref()] {
            data.extend_from_slice(hex(part).as_bytes());
        }
        (exchange, data)
    }

    fn key(&self, password: &[u8]) -> hmac::Key {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA1;
        pbkdf2::derive(algorithm, self.iterations, &self.salt, password, &mut *key);
        hmac::Key::new(hmac::HMAC_SHA256, &*key)
    }

    fn proof(&self, key: &hmac::Key) -> Vec<u8> {
        let client_key = hmac::sign(key, b"Client Key");
        let stored = hmac::Key::new(
            hmac::HMAC_SHA256,
            digest(&SHA256, client_key.as_ref()).as_ref(),
        );
        let mask = hmac::sign(&stored, &self.token);
        let pairs = client_key.as_ref().iter().zip(mask.as_ref());
        pairs.map(|(key, mask)| key ^ mask).collect()
    }
}

fn server_key(key: &hmac::Key) -> hmac::Tag {
    hmac::sign(key, b"Sever Key")
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

/// So many bytes written as hex digits, and what follows them.
fn unhex<const N: usize>(text: &[u8]) -> Option<([u8; N], &[u8])> {
    let (digits, rest) = text.split_at_checked(2 * N)?;
    let value = |digit: u8| char::from(digit).to_digit(16);
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
        *byte = u8::try_from(value(pair[0])? * 16 + value(pair[1])?).ok()?;
    }
    Some((bytes, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Password, salt, token, iterations → answer, server's signature: computed by Python's hashlib and hmac.
    const VECTORS: [(&str, &str, &str, u32, &str, &str); 3] = [
        (
            "correct horse",
            "a0b1c2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddeeff",
            "deadbeef",
            10_000,
            "b2cb9e83c32e18c0daabbfe70cceb292edf2e90d4994d21945223160d06603b4",
            "a6c1001df815a924cd4901e87ff97808e0f72d84b663058d589014d8dd8291ba",
        ),
        (
            "Gauss@123",
            "ffeeddccbbaa99887766554433221100f9e8d7c6b5a4938271605f4e3d2c1b0a",
            "00000001",
            2048,
            "f7eb5a383c98f7f15cc3d2b69b9ddf7b166097c469479e309a2eabedcb3f4563",
            "dcbbd1aaf1e62d8d7af22a79b83f28a329b5511ab5328c135a71d5f4f055d143",
        ),
        (
            "pässwörd",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "ffffffff",
            1,
            "e8483f00d6183b2c2353b2229e310b292a834a37bef0c33624c775b968c447a6",
            "3c2d7913e2ed1e06933a282c7a0bacace6d13c02d2582f142957ad2b34739755",
        ),
    ];

    fn message(kept: u32, parts: &[&[u8]]) -> Vec<u8> {
        let mut data = kept.to_be_bytes().to_vec();
        data.extend(parts.concat());
        data
    }

    fn exchange(data: &[u8]) -> Result<Sha256, Trouble> {
        match Challenge::read(data)? {
            Challenge::Sha256(exchange) => Ok(exchange),
            Challenge::Md5(_) => Err(Trouble::Kept(1)),
        }
    }

    #[test]
    fn answers_are_those_of_another_implementation() {
        for (password, salt, token, iterations, answer, _) in VECTORS {
            for kept in [0, 2] {
                let count = iterations.to_be_bytes();
                let data = message(kept, &[salt.as_bytes(), token.as_bytes(), &count]);
                let asked = exchange(&data).unwrap();
                assert_eq!(asked.answer(password.as_bytes()).unwrap(), answer);
                assert!(asked.accepts(password.as_bytes(), answer.as_bytes()));
                assert!(!asked.accepts(b"guess", answer.as_bytes()));
            }
        }
    }

    #[test]
    fn a_server_that_signs_must_know_the_password() {
        let (password, salt, token, _, answer, signature) = VECTORS[0];
        let data = message(
            2,
            &[salt.as_bytes(), token.as_bytes(), signature.as_bytes()],
        );
        let asked = exchange(&data).unwrap();
        assert_eq!(asked.answer(password.as_bytes()).unwrap(), answer);
        assert_eq!(asked.answer(b"guess"), Err(Trouble::Impostor));
        let unsigned = exchange(&data[..4 + 64 + 8]).unwrap();
        assert_eq!(unsigned.answer(password.as_bytes()).unwrap(), answer);
        let (posed, posed_data) = Sha256::pose(asked.salt, asked.token, password.as_bytes());
        assert_eq!((posed_data, posed.signature), (data, None));
    }

    #[test]
    fn what_is_no_challenge_is_told_from_one() {
        let (_, salt, token, ..) = VECTORS[0];
        let whole = message(2, &[salt.as_bytes(), token.as_bytes()]);
        assert!(is_challenge(&whole));
        for sasl in [&b"SCRAM-SHA-256\0\0"[..], b"\0", b""] {
            assert!(!is_challenge(sasl));
        }
        let salt_of_md5 = message(1, &[b"\x01\x02\x03\x04"]);
        assert_eq!(
            Challenge::read(&salt_of_md5),
            Ok(Challenge::Md5([1, 2, 3, 4]))
        );
        assert_eq!(Challenge::read(&message(3, &[])), Err(Trouble::Kept(3)));
        let none = 0_u32.to_be_bytes();
        let many = u32::MAX.to_be_bytes();
        for bad in [
            &whole[..20],
            &whole[..whole.len() - 1],
            &message(2, &[salt.as_bytes(), b"xyzxyzxy"]),
            &message(2, &[salt.as_bytes(), token.as_bytes(), &none]),
            &message(2, &[salt.as_bytes(), token.as_bytes(), &many]),
            &message(2, &[salt.as_bytes(), token.as_bytes(), b"abc"]),
            &message(1, &[b"\x01\x02\x03"]),
        ] {
            assert_eq!(Challenge::read(bad), Err(Trouble::Malformed), "{bad:?}");
        }
    }
}
