//! A session and a responder with nothing between them, and certificates for both.

use std::sync::Arc;

use loadstone_wire::postgres::{
    Action, Behaviour, Event, Password, Responder, ResponderAuth, RootCertificates, ServerTls,
    Session, Settings, TlsFiles, TlsMode, WireError,
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

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

fn params(names: &[&str], common_name: &str) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params
}
