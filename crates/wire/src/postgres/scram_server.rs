//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), for the responder.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::digest::{SHA256, digest};
use ring::{hmac, pbkdf2};
use std::num::NonZeroU32;

/// PostgreSQL's default `scram_iterations`.
pub(crate) const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).unwrap();

/// One exchange. Its errors all mean: the client may not come in.
pub(crate) struct ScramServer {
    salted_password: hmac::Key,
    salt: Vec<u8>,
    own_nonce: String,
    /// Our `tls-server-end-point`, where SCRAM-SHA-256-PLUS was offered.
    end_point: Option<Vec<u8>>,
    gs2_header: String,
    client_first_bare: String,
    server_first: String,
    nonce: String,
}

/// The client failed the exchange.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused;

impl ScramServer {
    /// `password` is taken as it is: `SASLprep` is the identity on ASCII.
    pub(crate) fn new(
        password: &[u8],
        salt: &[u8],
        own_nonce: &str,
        end_point: Option<Vec<u8>>,
    ) -> Self {
        let mut salted = [0; 32];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            ITERATIONS,
            salt,
            password,
            &mut salted,
        );
        Self {
            salted_password: hmac::Key::new(hmac::HMAC_SHA256, &salted),
            salt: salt.to_vec(),
            own_nonce: own_nonce.to_owned(),
            end_point,
            gs2_header: String::new(),
            client_first_bare: String::new(),
            server_first: String::new(),
            nonce: String::new(),
        }
    }

    /// client-first-message → server-first-message.
    pub(crate) fn first(&mut self, message: &[u8], plus: bool) -> Result<&str, Refused> {
        let message = std::str::from_utf8(message).map_err(|_| Refused)?;
        let header_end = message.match_indices(',').nth(1).ok_or(Refused)?.0 + 1;
        let (header, bare) = message.split_at(header_end);
        let right_header = match header {
            "p=tls-server-end-point,," => plus,
            "n,," => !plus,
            // The client could bind and saw no offer. If we made one, somebody removed it.
            "y,," => !plus && self.end_point.is_none(),
            _ => false,
        };
        let client_nonce = attribute(bare, 'r').ok_or(Refused)?;
        if !right_header {
            return Err(Refused);
        }
        self.nonce = format!("{client_nonce}{}", self.own_nonce);
        header.clone_into(&mut self.gs2_header);
        bare.clone_into(&mut self.client_first_bare);
        self.server_first = format!(
            "r={},s={},i={ITERATIONS}",
            self.nonce,
            BASE64.encode(&self.salt)
        );
        Ok(&self.server_first)
    }

    /// client-final-message → server-final-message.
    pub(crate) fn last(&self, message: &[u8]) -> Result<String, Refused> {
        let message = std::str::from_utf8(message).map_err(|_| Refused)?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or(Refused)?;
        let proof = BASE64.decode(proof).map_err(|_| Refused)?;
        let mut binding = self.gs2_header.clone().into_bytes();
        if self.gs2_header.starts_with('p') {
            binding.extend(self.end_point.as_deref().ok_or(Refused)?);
        }
        let right_binding = attribute(without_proof, 'c') == Some(&BASE64.encode(binding));
        let right_nonce = attribute(without_proof, 'r') == Some(&self.nonce);
        let signed = format!(
            "{},{},{without_proof}",
            self.client_first_bare, self.server_first
        );
        if !(right_binding && right_nonce && self.is_proof(&proof, signed.as_bytes())) {
            return Err(Refused);
        }
        let server_key = hmac::sign(&self.salted_password, b"Server Key");
        let server_key = hmac::Key::new(hmac::HMAC_SHA256, server_key.as_ref());
        let signature = hmac::sign(&server_key, signed.as_bytes());
        Ok(format!("v={}", BASE64.encode(signature.as_ref())))
    }

    /// `ClientProof = ClientKey XOR HMAC(H(ClientKey), AuthMessage)`.
    fn is_proof(&self, proof: &[u8], signed: &[u8]) -> bool {
        let client_key = hmac::sign(&self.salted_password, b"Client Key");
        let stored_key = digest(&SHA256, client_key.as_ref());
        let signature = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, stored_key.as_ref()),
            signed,
        );
        let expected = client_key
            .as_ref()
            .iter()
            .zip(signature.as_ref())
            .map(|(a, b)| a ^ b);
        expected.eq(proof.iter().copied())
    }
}

/// The value of `name=value` in a comma-separated list.
fn attribute(list: &str, name: char) -> Option<&str> {
    list.split(',')
        .find_map(|each| each.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677 §3: user "user", password "pencil".
    #[test]
    fn follows_the_example_of_rfc_7677() {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let own_nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let mut server = ScramServer::new(b"pencil", &salt, own_nonce, None);
        let first = server
            .first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", false)
            .unwrap();
        assert_eq!(
            first,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let client_final = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                            p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let server_final = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(server.last(client_final.as_bytes()).unwrap(), server_final);
        let forged = client_final.replace("p=dHz", "p=dHy");
        assert_eq!(server.last(forged.as_bytes()), Err(Refused));
    }

    #[test]
    fn notices_that_the_offer_of_channel_binding_was_removed() {
        let mut server = ScramServer::new(b"pencil", b"salt", "nonce", Some(vec![1, 2, 3]));
        assert_eq!(server.first(b"y,,n=,r=abc", false), Err(Refused));
        assert!(server.first(b"n,,n=,r=abc", false).is_ok());
        assert!(
            server
                .first(b"p=tls-server-end-point,,n=,r=abc", true)
                .is_ok()
        );
    }
}
