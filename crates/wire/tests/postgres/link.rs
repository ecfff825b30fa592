//! A session and a responder with nothing between them, and certificates for both.

use std::sync::Arc;

use base64::Engine as _;
use loadstone_wire::postgres::{
    Action, Behaviour, Event, Password, Responder, ResponderAuth, RootCertificates, ServerTls,
    Session, Settings, TlsFiles, TlsMode, WireError,
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SigningKey as _};

pub(crate) const USER: &str = "alice";
pub(crate) const PASSWORD: &str = "correct horse";
pub(crate) const HOST: &str = "db.example";

pub(crate) struct Link {
    pub(crate) session: Session,
    pub(crate) responder: Responder,
    pub(crate) events: Vec<String>,
    /// Bytes handed over at once, in both directions.
    pub(crate) step: usize,
}

impl Link {
    pub(crate) fn new(settings: Settings, files: &TlsFiles, behaviour: Behaviour) -> Self {
        let config = files.client_config(settings.tls).unwrap();
        let session = Session::new(Arc::new(settings), Some(config)).unwrap();
        let responder = Responder::new(Arc::new(behaviour), 7);
        Self {
            session,
            responder,
            events: Vec::new(),
            step: usize::MAX,
        }
    }

    /// Plain, logged in.
    pub(crate) fn ready(behaviour: Behaviour) -> Self {
        let mut link = Self::new(settings(TlsMode::Disable), &TlsFiles::default(), behaviour);
        assert_eq!(link.pump(), Ok(Action::Continue));
        assert!(link.session.is_ready());
        link.events.clear();
        link
    }

    /// Carries bytes both ways until both sides are quiet.
    pub(crate) fn pump(&mut self) -> Result<Action, WireError> {
        loop {
            let request = self.session.pending()?.to_vec();
            if request.is_empty() {
                return Ok(Action::Continue);
            }
            self.session.consumed(request.len());
            let mut answer = Vec::new();
            let mut action = Action::Continue;
            for chunk in request.chunks(self.step) {
                action = self.responder.respond(chunk, &mut answer)?;
            }
            self.deliver(&answer)?;
            if action != Action::Continue {
                return Ok(action);
            }
        }
    }

    pub(crate) fn deliver(&mut self, answer: &[u8]) -> Result<(), WireError> {
        for chunk in answer.chunks(self.step) {
            let events = &mut self.events;
            self.session
                .receive(chunk, &mut |event| events.push(show(event)))?;
        }
        Ok(())
    }

    pub(crate) fn query(&mut self, sql: &str) -> Vec<String> {
        self.session.frontend().query(sql.as_bytes()).unwrap();
        self.pump().unwrap();
        std::mem::take(&mut self.events)
    }
}

/// An event, short enough to compare: values are decoded, bodies of no interest are not shown.
pub(crate) fn show(event: Event<'_>) -> String {
    use loadstone_wire::postgres::Message;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let message = match event {
        Event::Ready => return "ready".to_owned(),
        Event::Message(message) => message,
    };
    match message {
        Message::DataRow(row) => {
            let values = row
                .values()
                .map(|value| value.unwrap().map_or("NULL".to_owned(), text));
            format!("row {}", values.collect::<Vec<_>>().join(","))
        }
        Message::RowDescription(columns) => {
            let names = columns.names().map(|name| text(name.unwrap()));
            format!("columns {}", names.collect::<Vec<_>>().join(","))
        }
        Message::CommandComplete(tag) => format!("done {}", text(tag)),
        Message::ReadyForQuery(status) => format!("{status:?}"),
        Message::Error(error) => format!("error {}", text(&error.sqlstate())),
        other => format!("{other:?}"),
    }
}

pub(crate) fn settings(tls: TlsMode) -> Settings {
    Settings {
        user: USER.to_owned(),
        database: "shop".to_owned(),
        password: Some(Password::new(PASSWORD)),
        application_name: "loadstone".to_owned(),
        tls,
        host: HOST.to_owned(),
        ..Settings::default()
    }
}

pub(crate) fn auth(method: &str) -> ResponderAuth {
    let (user, password) = (USER.to_owned(), Password::new(PASSWORD));
    match method {
        "trust" => ResponderAuth::Trust,
        "cleartext" => ResponderAuth::Cleartext { user, password },
        "md5" => ResponderAuth::Md5 { user, password },
        "sha256" => ResponderAuth::Sha256 { user, password },
        "scram" => ResponderAuth::Scram { user, password },
        other => panic!("no method {other}"),
    }
}

/// An authority and a server's certificate that it signed.
pub(crate) struct Pki {
    pub(crate) root: RootCertificates,
    pub(crate) server: ServerTls,
}

impl Pki {
    /// `names` are alternative names, `common_name` the subject's.
    pub(crate) fn new(names: &[&str], common_name: &str) -> Self {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let certificate = params(names, common_name).signed_by(&key, &issuer).unwrap();
        Self {
            root: RootCertificates::Given(root.into_bytes()),
            server: ServerTls::new(certificate.pem().as_bytes(), key.serialize_pem().as_bytes())
                .unwrap(),
        }
    }

    /// A server that signed its own certificate, which the client knows.
    pub(crate) fn self_signed() -> Self {
        let key = KeyPair::generate().unwrap();
        let pem = params(&[HOST], HOST).self_signed(&key).unwrap().pem();
        Self {
            server: ServerTls::new(pem.as_bytes(), key.serialize_pem().as_bytes()).unwrap(),
            root: RootCertificates::Given(pem.into_bytes()),
        }
    }

    pub(crate) fn files(&self) -> TlsFiles {
        TlsFiles {
            root: Some(self.root.clone()),
            ..TlsFiles::default()
        }
    }
}

/// A version 1 certificate, as `openssl x509 -req` made them for years, which rcgen cannot make.
/// `signer` may be another than the authority that it names.
pub(crate) struct Version1 {
    pub(crate) root: RootCertificates,
    authority: (CertificateParams, KeyPair),
}

impl Version1 {
    pub(crate) fn authority() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut authority = params(&[], "authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = authority.self_signed(&key).unwrap().pem();
        Self {
            root: RootCertificates::Given(root.into_bytes()),
            authority: (authority, key),
        }
    }

    /// A server for the host whose certificate is signed by `signer`, or by the authority itself.
    pub(crate) fn server(&self, signer: Option<&KeyPair>) -> ServerTls {
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::from_params(&self.authority.0, &self.authority.1);
        let modern = params(&[], HOST).signed_by(&key, &issuer).unwrap();
        let der = version_1(modern.der(), signer.unwrap_or(&self.authority.1));
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        let pem = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
        ServerTls::new(pem.as_bytes(), key.serialize_pem().as_bytes()).unwrap()
    }
}

/// Takes version and extensions away and signs again.
fn version_1(der: &[u8], signer: &KeyPair) -> Vec<u8> {
    let (certificate, _) = element(der);
    let (tbs, rest) = element(certificate.1);
    let (algorithm, _) = element(rest);
    let mut kept = Vec::new();
    let mut left = tbs.1;
    while !left.is_empty() {
        let (each, rest) = element(left);
        if !matches!(each.0, 0xa0 | 0xa3) {
            kept.extend(sequence(each.0, each.1));
        }
        left = rest;
    }
    let tbs = sequence(0x30, &kept);
    let signature = [&[0], &*signer.sign(&tbs).unwrap()].concat();
    let parts = [
        tbs,
        sequence(algorithm.0, algorithm.1),
        sequence(0x03, &signature),
    ];
    sequence(0x30, &parts.concat())
}

/// Tag and contents of the first DER element, and what follows it.
fn element(der: &[u8]) -> ((u8, &[u8]), &[u8]) {
    let (start, len) = match der[1] {
        0x81 => (3, usize::from(der[2])),
        0x82 => (4, usize::from(u16::from_be_bytes([der[2], der[3]]))),
        len => (2, usize::from(len)),
    };
    ((der[0], &der[start..start + len]), &der[start + len..])
}

fn sequence(tag: u8, contents: &[u8]) -> Vec<u8> {
    let len = contents.len();
    let header = match u8::try_from(len) {
        Ok(len @ ..0x80) => vec![tag, len],
        Ok(len) => vec![tag, 0x81, len],
        Err(_) => [&[tag, 0x82][..], &u16::try_from(len).unwrap().to_be_bytes()].concat(),
    };
    [&header, contents].concat()
}

fn params(names: &[&str], common_name: &str) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params
}
