//! The server's side of the start-up.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use postgres_protocol::authentication::md5_hash;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::answer::{GARBAGE, put_error, text};
use super::behaviour::message;
use super::{Action, Behaviour, Fault, ResponderAuth};
use crate::postgres::WireError;
use crate::postgres::backend::announced_bytes;
use crate::postgres::certificate::Parsed;
use crate::postgres::scram_server::ScramServer;
use crate::postgres::sha256_challenge::Sha256;
use crate::postgres::tls::Tunnel;

const PROTOCOL_3: u32 = 3 << 16;
const CANCEL_REQUEST: u32 = 80_877_102;
const TLS_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// PostgreSQL's own limit for a start-up packet.
const STARTUP_BYTES_MAX: u32 = 10_000;

/// What the server tells of itself.
const PARAMETERS: &[(&str, &str)] = &[
    ("server_version", "17.0 (Loadstone responder)"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
];

/// A client on its way in.
pub(super) struct Login {
    connection_number: u64,
    user: String,
    tls: bool,
    awaits: Awaits,
}

enum Awaits {
    Startup,
    Cleartext,
    Md5([u8; 4]),
    Sha256(Box<Sha256>),
    ScramFirst(Box<ScramServer>),
    ScramLast(Box<ScramServer>),
}

/// What follows a message of the log-in.
pub(super) enum Step {
    Next,
    Ready,
    Tls(Box<Tunnel>),
    Stop(Action),
}

impl Login {
    pub(super) fn new(connection_number: u64) -> Self {
        Self {
            connection_number,
            user: String::new(),
            tls: false,
            awaits: Awaits::Startup,
        }
    }

    /// The body of the message that begins here, and how many bytes it takes.
    pub(super) fn split<'i>(
        &self,
        input: &'i [u8],
    ) -> Result<Option<(&'i [u8], usize)>, WireError> {
        if !matches!(self.awaits, Awaits::Startup) {
            let size = announced_bytes(input)?.filter(|size| *size <= input.len());
            return Ok(size.map(|size| (&input[5..size], size)));
        }
        let Some(len) = input.first_chunk() else {
            return Ok(None);
        };
        let len = u32::from_be_bytes(*len);
        if !(8..=STARTUP_BYTES_MAX).contains(&len) {
            return Err(WireError::Malformed {
                what: "start-up packet",
                at: 0,
            });
        }
        let size = len as usize;
        Ok(input.get(4..size).map(|body| (body, size)))
    }

    pub(super) fn answer(
        &mut self,
        body: &[u8],
        behaviour: &Behaviour,
        out: &mut Vec<u8>,
    ) -> Result<Step, WireError> {
        match std::mem::replace(&mut self.awaits, Awaits::Startup) {
            Awaits::Startup => self.begin(body, behaviour, out),
            Awaits::Cleartext => Ok(self.check_password(text(body)?.0, None, behaviour, out)),
            Awaits::Md5(salt) => Ok(self.check_password(text(body)?.0, Some(salt), behaviour, out)),
            Awaits::Sha256(exchange) => {
                Ok(self.check_answer(&exchange, text(body)?.0, behaviour, out))
            }
            Awaits::ScramFirst(scram) => self.scram_first(scram, body, out),
            Awaits::ScramLast(scram) => Ok(self.scram_last(&scram, body, out)),
        }
    }

    fn begin(
        &mut self,
        body: &[u8],
        behaviour: &Behaviour,
        out: &mut Vec<u8>,
    ) -> Result<Step, WireError> {
        let Some((code, rest)) = body.split_first_chunk() else {
            return Err(WireError::Malformed {
                what: "start-up packet",
                at: 4,
            });
        };
        if behaviour.faults.contains(&Fault::SilentAtStartup) {
            return Ok(Step::Stop(Action::Silent));
        }
        if behaviour.faults.contains(&Fault::GarbageAtStartup) {
            out.extend_from_slice(GARBAGE);
            return Ok(Step::Stop(Action::Continue));
        }
        match (u32::from_be_bytes(*code), &behaviour.tls) {
            (CANCEL_REQUEST, _) => Ok(Step::Stop(match rest.first_chunk() {
                Some(process_id) => Action::Cancel {
                    process_id: i32::from_be_bytes(*process_id),
                    tls: self.tls,
                },
                None => Action::Close,
            })),
            (TLS_REQUEST, Some(tls)) if !self.tls => {
                out.push(b'S');
                self.tls = true;
                Ok(Step::Tls(Box::new(Tunnel::server(&tls.config)?)))
            }
            (TLS_REQUEST | GSS_REQUEST, _) => {
                out.push(b'N');
                Ok(Step::Next)
            }
            (version, _) if version >> 16 == PROTOCOL_3 >> 16 => {
                if version > PROTOCOL_3 {
                    // NegotiateProtocolVersion: 3.0, and no option unknown
                    message(out, b'v', |out| {
                        out.extend_from_slice(b"\0\x03\0\0\0\0\0\0");
                    });
                }
                self.user = user_of(rest)?;
                Ok(self.challenge(behaviour, out))
            }
            _ => Ok(refuse(out, *b"0A000", "unsupported frontend protocol")),
        }
    }

    fn challenge(&mut self, behaviour: &Behaviour, out: &mut Vec<u8>) -> Step {
        for fault in &behaviour.faults {
            if let Fault::RefuseStartup { sqlstate, message } = fault {
                return refuse(out, *sqlstate, message);
            }
        }
        match &behaviour.auth {
            ResponderAuth::Trust => return self.welcome(out),
            ResponderAuth::Cleartext { .. } => {
                self.awaits = Awaits::Cleartext;
                authentication(out, 3, &[]);
            }
            ResponderAuth::Md5 { .. } => {
                let salt = random();
                self.awaits = Awaits::Md5(salt);
                authentication(out, 5, &salt);
            }
            ResponderAuth::Sha256 { password, .. } => {
                let (exchange, data) = Sha256::pose(random(), random(), password.bytes());
                self.awaits = Awaits::Sha256(Box::new(exchange));
                authentication(out, 10, &data);
            }
            ResponderAuth::Scram { user, password } => {
                let end_point = behaviour.tls.as_ref().filter(|_| self.tls);
                let end_point =
                    end_point.and_then(|tls| Parsed::new(&tls.certificate)?.server_end_point());
                let mechanisms: &[u8] = match end_point {
                    Some(_) => b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0",
                    None => b"SCRAM-SHA-256\0\0",
                };
                authentication(out, 10, mechanisms);
                let nonce = BASE64.encode(random::<18>());
                // As PostgreSQL: a stranger goes through the exchange, and fails at its end.
                let wrong = random::<16>();
                let password = if *user == self.user {
                    password.bytes()
                } else {
                    &wrong
                };
                let scram = ScramServer::new(password, &random::<16>(), &nonce, end_point);
                self.awaits = Awaits::ScramFirst(Box::new(scram));
            }
        }
        Step::Next
    }

    fn check_password(
        &self,
        given: &[u8],
        salt: Option<[u8; 4]>,
        behaviour: &Behaviour,
        out: &mut Vec<u8>,
    ) -> Step {
        let (ResponderAuth::Cleartext { user, password }
        | ResponderAuth::Md5 { user, password }
        | ResponderAuth::Scram { user, password }) = &behaviour.auth
        else {
            return self.welcome(out);
        };
        let expected = match salt {
            Some(salt) => md5_hash(user.as_bytes(), password.bytes(), salt).into_bytes(),
            None => password.bytes().to_vec(),
        };
        if *user == self.user && given == expected {
            self.welcome(out)
        } else {
            self.refuse(out)
        }
    }

    fn check_answer(
        &self,
        exchange: &Sha256,
        given: &[u8],
        behaviour: &Behaviour,
        out: &mut Vec<u8>,
    ) -> Step {
        match &behaviour.auth {
            ResponderAuth::Sha256 { user, password }
                if *user == self.user && exchange.accepts(password.bytes(), given) =>
            {
                self.welcome(out)
            }
            _ => self.refuse(out),
        }
    }

    fn scram_first(
        &mut self,
        mut scram: Box<ScramServer>,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, WireError> {
        let (mechanism, rest) = text(body)?;
        let data = rest.get(4..).ok_or(WireError::Malformed {
            what: "SASLInitialResponse",
            at: 5,
        })?;
        let Ok(answer) = scram.first(data, mechanism == b"SCRAM-SHA-256-PLUS") else {
            return Ok(self.refuse(out));
        };
        authentication(out, 11, answer.as_bytes());
        self.awaits = Awaits::ScramLast(scram);
        Ok(Step::Next)
    }

    fn scram_last(&self, scram: &ScramServer, body: &[u8], out: &mut Vec<u8>) -> Step {
        let Ok(answer) = scram.last(body) else {
            return self.refuse(out);
        };
        authentication(out, 12, answer.as_bytes());
        self.welcome(out)
    }

    fn welcome(&self, out: &mut Vec<u8>) -> Step {
        authentication(out, 0, &[]);
        for (name, value) in PARAMETERS {
            message(out, b'S', |out| {
                for text in [name, value] {
                    out.extend_from_slice(text.as_bytes());
                    out.push(0);
                }
            });
        }
        message(out, b'K', |out| {
            // The low four bytes are the process id.
            out.extend_from_slice(&self.connection_number.to_be_bytes()[4..]);
            out.extend_from_slice(&random::<4>());
        });
        out.extend_from_slice(b"Z\0\0\0\x05I");
        Step::Ready
    }

    fn refuse(&self, out: &mut Vec<u8>) -> Step {
        let text = format!("password authentication failed for user \"{}\"", self.user);
        refuse(out, *b"28P01", &text)
    }
}

fn refuse(out: &mut Vec<u8>, sqlstate: [u8; 5], text: &str) -> Step {
    put_error(out, "FATAL", sqlstate, text);
    Step::Stop(Action::Close)
}

fn authentication(out: &mut Vec<u8>, code: u32, data: &[u8]) {
    message(out, b'R', |out| {
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// The user of a start-up message's list of names and values.
fn user_of(mut list: &[u8]) -> Result<String, WireError> {
    loop {
        let (name, rest) = text(list)?;
        if name.is_empty() {
            return Err(WireError::Malformed {
                what: "start-up packet without a user",
                at: 8,
            });
        }
        let (value, rest) = text(rest)?;
        if name == b"user" {
            return Ok(String::from_utf8_lossy(value).into_owned());
        }
        list = rest;
    }
}

/// Random bytes; zeros if the system has none, which in a test server harms nobody.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let _ = SystemRandom::new().fill(&mut bytes);
    bytes
}
