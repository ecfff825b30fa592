//! A server's public key for RSA, read strictly before the library computes with it: the library's own reader
//! panics at a damaged one.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;
use x509_cert::der::asn1::UintRef;
use x509_cert::der::{Decode as _, Error, Reader as _, SliceReader};
use x509_cert::spki::SubjectPublicKeyInfoRef;

/// Bytes of a modulus.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 128..=2048;

/// The same key as PEM text, if it is a key of RSA that can be computed with.
pub(super) fn checked(pem: &[u8]) -> Option<Vec<u8>> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok()?;
    let info = SubjectPublicKeyInfoRef::from_der(&der).ok()?;
    let mut reader = SliceReader::new(info.subject_public_key.as_bytes()?).ok()?;
    let (modulus, exponent) = reader
        .sequence(|reader| {
            let modulus = UintRef::decode(reader)?;
            Ok::<_, Error>((modulus, UintRef::decode(reader)?))
        })
        .ok()?;
    let (modulus, exponent) = (modulus.as_bytes(), exponent.as_bytes());
    let is_odd = modulus.last()? & 1 == 1;
    let is_exponent = exponent.len() <= 8 && exponent > [1].as_slice();
    if !MODULUS_BYTES.contains(&modulus.len()) || !is_odd || !is_exponent {
        return None;
    }
    let text = BASE64_STANDARD.encode(&der);
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
    Some(pem.into_bytes())
}
