//! What we need to know of an X.509 certificate beyond what rustls tells.

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};
use rustls::pki_types::{AlgorithmIdentifier, SignatureVerificationAlgorithm, UnixTime};
use x509_cert::certificate::{CertificateInner, Raw, Version};
use x509_cert::der::asn1::{ContextSpecific, ObjectIdentifier};
use x509_cert::der::{Any, Decode as _, Encode as _, SliceReader, TagNumber};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::spki::AlgorithmIdentifierOwned;

const RSASSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");

/// A certificate, leniently parsed: rustls has verified it or nobody wants it verified.
pub(crate) struct Parsed<'a> {
    der: &'a [u8],
    certificate: CertificateInner<Raw>,
}

impl<'a> Parsed<'a> {
    pub(crate) fn new(der: &'a [u8]) -> Option<Self> {
        Some(Self {
            der,
            certificate: CertificateInner::from_der(der).ok()?,
        })
    }

    /// Channel binding data of RFC 5929 §4.1: the certificate's hash by the function of its own
    /// signature, SHA-256 in place of MD5 and SHA-1. None where the signature has no such function.
    pub(crate) fn server_end_point(&self) -> Option<Vec<u8>> {
        let algorithm = hash_of_signature(self.certificate.signature_algorithm())?;
        Some(digest(algorithm, self.der).as_ref().to_vec())
    }

    /// The public key with its algorithm, DER.
    pub(crate) fn public_key(&self) -> Option<Vec<u8>> {
        self.certificate
            .tbs_certificate()
            .subject_public_key_info()
            .to_der()
            .ok()
    }

    /// Whether this is a version 1 certificate that `issuer` itself has signed. webpki refuses that
    /// version, and it is what the recipe in PostgreSQL's documentation makes with OpenSSL up to 3.1.
    /// Without extensions such a certificate can be nothing but an end of a chain.
    pub(crate) fn is_version_1_signed_by(
        &self,
        issuer: &Parsed<'_>,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> bool {
        let (own, issuer) = (&self.certificate, issuer.certificate.tbs_certificate());
        let tbs = own.tbs_certificate();
        let key = issuer.subject_public_key_info();
        let (Ok(message), Some(key_bits), Some(signature)) = (
            tbs.to_der(),
            key.subject_public_key.as_bytes(),
            own.signature().as_bytes(),
        ) else {
            return false;
        };
        let is = |wanted: AlgorithmIdentifier, given: &AlgorithmIdentifierOwned| {
            given
                .to_der()
                .is_ok_and(|der| contents(&der) == Some(wanted.as_ref()))
        };
        tbs.version() == Version::V1
            && tbs.issuer() == issuer.subject()
            && tbs.signature() == own.signature_algorithm()
            && algorithms.iter().any(|algorithm| {
                is(algorithm.public_key_alg_id(), &key.algorithm)
                    && is(algorithm.signature_alg_id(), own.signature_algorithm())
                    && algorithm
                        .verify_signature(key_bits, &message, signature)
                        .is_ok()
            })
    }

    pub(crate) fn is_valid_at(&self, now: UnixTime) -> bool {
        let validity = self.certificate.tbs_certificate().validity();
        let begin = validity.not_before.to_unix_duration().as_secs();
        let end = validity.not_after.to_unix_duration().as_secs();
        (begin..=end).contains(&now.as_secs())
    }

    /// libpq's rule: the subject's common name counts only where no alternative name is a host name.
    pub(crate) fn common_name_is(&self, host: &str) -> bool {
        let tbs = self.certificate.tbs_certificate();
        let Ok(alternatives) = tbs.get_extension::<SubjectAltName>() else {
            return false;
        };
        let names = alternatives.map(|(_, names)| names.0).unwrap_or_default();
        if names
            .iter()
            .any(|name| matches!(name, GeneralName::DnsName(_)))
        {
            return false;
        }
        let Ok(Some(common_name)) = tbs.subject().common_name() else {
            return false;
        };
        name_matches(&common_name.value(), host)
    }
}

/// What is inside a short DER sequence.
fn contents(der: &[u8]) -> Option<&[u8]> {
    match der {
        [_, len, inner @ ..] if usize::from(*len) == inner.len() => Some(inner),
        _ => None,
    }
}

/// A wildcard stands for exactly the first label.
fn name_matches(pattern: &str, host: &str) -> bool {
    if let Some(suffix) = pattern.strip_prefix("*.") {
        return host
            .split_once('.')
            .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(suffix));
    }
    pattern.eq_ignore_ascii_case(host)
}

fn hash_of_signature(algorithm: &AlgorithmIdentifierOwned) -> Option<&'static Algorithm> {
    if algorithm.oid == RSASSA_PSS {
        return pss_hash(algorithm.parameters.as_ref()?);
    }
    match algorithm.oid.to_string().as_str() {
        // RSA with MD5, SHA-1, SHA-256; ECDSA with SHA-1, SHA-256
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => Some(&SHA256),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => Some(&SHA384),
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => Some(&SHA512),
        _ => None,
    }
}

/// RFC 4055 §3.1: `[0] hashAlgorithm`, SHA-1 when absent.
fn pss_hash(parameters: &Any) -> Option<&'static Algorithm> {
    let mut reader = SliceReader::new(parameters.value()).ok()?;
    let hash =
        ContextSpecific::<AlgorithmIdentifierOwned>::decode_explicit(&mut reader, TagNumber(0))
            .ok()?;
    let Some(hash) = hash else {
        return Some(&SHA256);
    };
    match hash.value.oid.to_string().as_str() {
        "1.3.14.3.2.26" | "2.16.840.1.101.3.4.2.1" => Some(&SHA256),
        "2.16.840.1.101.3.4.2.2" => Some(&SHA384),
        "2.16.840.1.101.3.4.2.3" => Some(&SHA512),
        _ => None,
    }
}
