//! Checks of the server's certificate, as strict as `sslmode` says.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, ServerName, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::TlsError;
use crate::postgres::certificate::Parsed;

/// Verifies the chain (where roots are known) and the name (where wanted). The server's proof that
/// it holds the certificate's key is verified always: channel binding rests on it.
#[derive(Debug)]
pub(super) struct Verifier {
    roots: Option<Roots>,
    check_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
struct Roots {
    store: RootCertStore,
    /// As given: a server's own self-signed certificate may be among them.
    exact: Vec<CertificateDer<'static>>,
}

impl Verifier {
    /// Takes any certificate.
    pub(super) fn trusting(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self {
            roots: None,
            check_name: false,
            algorithms,
        }
    }

    pub(super) fn new(
        exact: Vec<CertificateDer<'static>>,
        check_name: bool,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<Self, TlsError> {
        let mut store = RootCertStore::empty();
        let (usable, _) = store.add_parsable_certificates(exact.iter().cloned());
        if usable == 0 {
            let reason = "none of them is a certificate of an authority".to_owned();
            return Err(TlsError::BadCertificate {
                what: "sslrootcert",
                reason,
            });
        }
        Ok(Self {
            roots: Some(Roots { store, exact }),
            check_name,
            algorithms,
        })
    }
}

impl Roots {
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), Error> {
        if self.exact.iter().any(|root| root == end_entity)
            || self.signed_version_1(end_entity, algorithms)
        {
            return check_validity(end_entity, now);
        }
        let parsed = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.store,
            intermediates,
            now,
            algorithms,
        )
    }

    fn signed_version_1(
        &self,
        end_entity: &CertificateDer<'_>,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> bool {
        let Some(certificate) = Parsed::new(end_entity) else {
            return false;
        };
        let mut roots = self.exact.iter().filter_map(|root| Parsed::new(root));
        roots.any(|root| certificate.is_version_1_signed_by(&root, algorithms))
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            roots.check(end_entity, intermediates, now, self.algorithms.all)?;
        }
        if self.check_name {
            check_name(end_entity, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // By the key alone: a version 1 certificate, which many private servers have, is no hindrance.
        let key = Parsed::new(certificate).and_then(|parsed| parsed.public_key());
        let key = key.ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let key = SubjectPublicKeyInfoDer::from(key);
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn check_validity(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    match Parsed::new(certificate) {
        None => Err(Error::InvalidCertificate(CertificateError::BadEncoding)),
        Some(parsed) if parsed.is_valid_at(now) => Ok(()),
        Some(_) => Err(Error::InvalidCertificate(CertificateError::Expired)),
    }
}

fn check_name(certificate: &CertificateDer<'_>, wanted: &ServerName<'_>) -> Result<(), Error> {
    // A certificate that webpki cannot read (version 1) has no alternative names.
    let unreadable = Error::InvalidCertificate(CertificateError::NotValidForName);
    let outcome = ParsedCertificate::try_from(certificate)
        .map_err(|_| unreadable)
        .and_then(|parsed| verify_server_name(&parsed, wanted));
    let Err(error) = outcome else { return Ok(()) };
    match Parsed::new(certificate) {
        Some(parsed) if parsed.common_name_is(&wanted.to_str()) => Ok(()),
        _ => Err(error),
    }
}
