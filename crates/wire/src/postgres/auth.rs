//! Proving who we are. The only file that knows authentication codes, so that a server family
//! with other codes needs another such file and nothing else.

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding as ScramBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::frontend;
use zeroize::Zeroizing;

use super::backend::HEADER_BYTES;
use super::sha256_challenge::{Challenge, Trouble, is_challenge};
use super::{ChannelBinding, Settings, WireError};

/// How the session proved who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Authentication {
    /// The server asked for nothing (`trust`, `peer`, `cert`).
    #[default]
    None,
    /// The password itself was sent. Without TLS everybody on the path has read it.
    Cleartext,
    /// Salted MD5, which PostgreSQL has deprecated.
    Md5,
    /// A single SHA-256 challenge, as openGauss poses it.
    Sha256,
    /// SCRAM-SHA-256.
    ScramSha256,
    /// SCRAM-SHA-256-PLUS: bound to the server's certificate.
    ScramSha256Plus,
}

/// What authentication may need to know of the connection.
pub(crate) struct Context<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) tls_in_use: bool,
    /// Data for `tls-server-end-point` (RFC 5929 §4), where the certificate has it.
    pub(crate) server_end_point: Option<&'a [u8]>,
}

/// The client's side of the exchange.
#[derive(Default)]
pub(crate) struct Authenticator {
    method: Authentication,
    scram: Option<ScramSha256>,
    server_proved_itself: bool,
}

impl Authenticator {
    /// Answers an authentication request; returns the method when the server is content.
    pub(crate) fn receive(
        &mut self,
        body: &[u8],
        context: &Context<'_>,
        out: &mut BytesMut,
    ) -> Result<Option<Authentication>, WireError> {
        let Some((code, data)) = body.split_first_chunk() else {
            return Err(WireError::Malformed {
                what: "authentication request",
                at: HEADER_BYTES,
            });
        };
        match i32::from_be_bytes(*code) {
            0 => return self.accepted(context).map(Some),
            3 => self.send_cleartext(context, out)?,
            5 => self.send_md5(data, context, out)?,
            10 if is_challenge(data) => self.meet_challenge(data, context, out)?,
            10 => self.begin_scram(data, context, out)?,
            11 => self.continue_scram(data, out)?,
            12 => self.finish_scram(data)?,
            code => {
                return Err(WireError::UnsupportedAuth {
                    code,
                    name: method_name(code).into(),
                });
            }
        }
        Ok(None)
    }

    fn accepted(&self, context: &Context<'_>) -> Result<Authentication, WireError> {
        let scram = matches!(
            self.method,
            Authentication::ScramSha256 | Authentication::ScramSha256Plus
        );
        if scram && !self.server_proved_itself {
            return Err(scram_failed(
                "the server accepted us before it had proved its own identity",
            ));
        }
        let bound = self.method == Authentication::ScramSha256Plus;
        if context.settings.channel_binding == ChannelBinding::Require && !bound {
            return Err(binding("the server accepted us without channel binding"));
        }
        Ok(self.method)
    }

    fn send_cleartext(
        &mut self,
        context: &Context<'_>,
        out: &mut BytesMut,
    ) -> Result<(), WireError> {
        forbid_unbound(context)?;
        let password = password(context.settings)?;
        self.method = Authentication::Cleartext;
        frontend::password_message(password, out).map_err(|error| password_error(&error))
    }

    fn send_md5(
        &mut self,
        salt: &[u8],
        context: &Context<'_>,
        out: &mut BytesMut,
    ) -> Result<(), WireError> {
        forbid_unbound(context)?;
        let Ok(salt) = <[u8; 4]>::try_from(salt) else {
            return Err(WireError::Malformed {
                what: "MD5 request",
                at: HEADER_BYTES + 4,
            });
        };
        let settings = context.settings;
        let digest = Zeroizing::new(md5_hash(
            settings.user.as_bytes(),
            password(settings)?,
            salt,
        ));
        self.method = Authentication::Md5;
        frontend::password_message(digest.as_bytes(), out).map_err(|error| password_error(&error))
    }

    fn meet_challenge(
        &mut self,
        data: &[u8],
        context: &Context<'_>,
        out: &mut BytesMut,
    ) -> Result<(), WireError> {
        let refused = |trouble| challenge_failed(&trouble);
        let exchange = match Challenge::read(data).map_err(refused)? {
            Challenge::Md5(salt) => return self.send_md5(&salt, context, out),
            Challenge::Sha256(exchange) => exchange,
        };
        forbid_unbound(context)?;
        let answer = exchange.answer(password(context.settings)?);
        self.method = Authentication::Sha256;
        frontend::password_message(answer.map_err(refused)?.as_bytes(), out)
            .map_err(|error| password_error(&error))
    }

    fn begin_scram(
        &mut self,
        mechanisms: &[u8],
        context: &Context<'_>,
        out: &mut BytesMut,
    ) -> Result<(), WireError> {
        if self.scram.is_some() {
            return Err(scram_failed("the server began the exchange twice"));
        }
        let offers = |name: &str| {
            mechanisms
                .split(|byte| *byte == 0)
                .any(|each| each == name.as_bytes())
        };
        let (method, mechanism, binding) =
            choose_mechanism(offers(SCRAM_SHA_256), offers(SCRAM_SHA_256_PLUS), context)?;
        let Some(mechanism) = mechanism else {
            let name = String::from_utf8_lossy(mechanisms)
                .replace('\0', " ")
                .trim_end()
                .to_owned();
            return Err(WireError::UnsupportedAuth {
                code: 10,
                name: format!("SASL {name}"),
            });
        };
        let scram = ScramSha256::new(password(context.settings)?, binding);
        self.method = method;
        frontend::sasl_initial_response(mechanism, scram.message(), out)
            .map_err(|error| scram_failed(&error.to_string()))?;
        self.scram = Some(scram);
        Ok(())
    }

    fn continue_scram(&mut self, data: &[u8], out: &mut BytesMut) -> Result<(), WireError> {
        let scram = self.scram.as_mut().ok_or_else(out_of_turn)?;
        scram
            .update(data)
            .map_err(|error| scram_failed(&error.to_string()))?;
        frontend::sasl_response(scram.message(), out)
            .map_err(|error| scram_failed(&error.to_string()))
    }

    fn finish_scram(&mut self, data: &[u8]) -> Result<(), WireError> {
        let scram = self.scram.as_mut().ok_or_else(out_of_turn)?;
        scram
            .finish(data)
            .map_err(|error| scram_failed(&error.to_string()))?;
        self.server_proved_itself = true;
        Ok(())
    }
}

type Mechanism = (Authentication, Option<&'static str>, ScramBinding);

/// libpq's rules. `unrequested` tells the server that we could have bound but saw no offer, so that
/// it notices when somebody in between removed the offer.
fn choose_mechanism(
    plain: bool,
    plus: bool,
    context: &Context<'_>,
) -> Result<Mechanism, WireError> {
    let wanted = context.settings.channel_binding;
    let end_point = context
        .server_end_point
        .filter(|_| wanted != ChannelBinding::Disable);
    if let (true, true, Some(end_point)) = (context.tls_in_use, plus, end_point) {
        let binding = ScramBinding::tls_server_end_point(end_point.to_vec());
        return Ok((
            Authentication::ScramSha256Plus,
            Some(SCRAM_SHA_256_PLUS),
            binding,
        ));
    }
    if wanted == ChannelBinding::Require {
        return Err(binding(if !context.tls_in_use {
            "the connection does not use TLS"
        } else if !plus {
            "the server does not offer SCRAM-SHA-256-PLUS"
        } else {
            "the server's certificate has no usable hash function"
        }));
    }
    let binding = match end_point {
        Some(_) if !plus => ScramBinding::unrequested(),
        _ => ScramBinding::unsupported(),
    };
    Ok((
        Authentication::ScramSha256,
        plain.then_some(SCRAM_SHA_256),
        binding,
    ))
}

fn forbid_unbound(context: &Context<'_>) -> Result<(), WireError> {
    if context.settings.channel_binding == ChannelBinding::Require {
        return Err(binding("the server asks for a password without SCRAM"));
    }
    Ok(())
}

/// An empty password counts as none, as in libpq.
fn password(settings: &Settings) -> Result<&[u8], WireError> {
    let known = settings.password.as_ref().map(super::Password::bytes);
    known
        .filter(|bytes| !bytes.is_empty())
        .ok_or_else(|| WireError::PasswordMissing {
            user: settings.user.clone(),
        })
}

fn binding(reason: &'static str) -> WireError {
    WireError::ChannelBinding { reason }
}

fn scram_failed(reason: &str) -> WireError {
    WireError::ScramFailed {
        reason: reason.to_owned(),
    }
}

fn challenge_failed(trouble: &Trouble) -> WireError {
    match trouble {
        Trouble::Malformed => WireError::Malformed {
            what: "SHA-256 challenge",
            at: HEADER_BYTES + 4,
        },
        Trouble::Kept(method) => WireError::UnsupportedAuth {
            code: 10,
            name: format!("a challenge for a password that is kept in the way {method}"),
        },
        Trouble::Impostor => WireError::ChallengeFailed,
    }
}

fn out_of_turn() -> WireError {
    WireError::UnexpectedMessage {
        tag: b'R',
        state: "out of turn in the SCRAM exchange",
    }
}

fn password_error(error: &std::io::Error) -> WireError {
    WireError::Unencodable {
        what: "PasswordMessage",
        reason: error.to_string(),
    }
}

fn method_name(code: i32) -> &'static str {
    match code {
        2 => "Kerberos V5",
        6 => "SCM credential",
        7 | 8 => "GSSAPI",
        9 => "SSPI",
        _ => "unknown",
    }
}
