//! The log-in: greeting, TLS, authentication plugins. Packets and plugins are those of `mysql_common`.

use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin as _, Context, Error};
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest,
};
use mysql_common::proto::{MyDeserialize as _, MySerialize as _};

use super::answer::{ERROR, OK};
use super::error::ServerError;
use super::{MysqlError, Settings, packet, server_key};
use crate::postgres::TlsMode;
use crate::postgres::tls::Tunnel;

/// The largest packet that we announce to take: the servers' own limit.
const PACKET_MAX: u32 = 1 << 30;
/// `utf8mb4_general_ci`, which every server since 5.5.3 knows.
const COLLATION: u8 = 45;
const CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_CONNECT_ATTRS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

/// How far the log-in is.
pub(super) enum Phase {
    Greeting,
    /// The request for TLS is on its way out; the tunnel takes over behind it.
    TlsRequested(Box<Tunnel>),
    TlsHandshake,
    Authentication,
    FirstStatement,
}

/// What is needed only until the session is ready.
pub(super) struct LogIn {
    pub(super) phase: Phase,
    pub(super) capabilities: CapabilityFlags,
    pub(super) connection_id: u32,
    challenge: Vec<u8>,
    plugin: AuthPlugin<'static>,
    procedure: Option<AuthProc>,
}

impl LogIn {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Greeting,
            capabilities: CapabilityFlags::empty(),
            connection_id: 0,
            challenge: Vec::new(),
            plugin: AuthPlugin::MysqlNativePassword,
            procedure: None,
        }
    }

    /// The server's first packet; true when TLS is to follow.
    pub(super) fn greeting(
        &mut self,
        payload: &[u8],
        settings: &Settings,
        can_tls: bool,
    ) -> Result<bool, MysqlError> {
        match payload.first() {
            Some(&ERROR) => return Err(refusal(payload)),
            Some(10) => {}
            _ => return Err(MysqlError::Malformed { what: "greeting" }),
        }
        // Beyond its range the library computes a negative length.
        if challenge_bytes(payload).is_none_or(|length| length > 127) {
            return Err(MysqlError::Malformed { what: "greeting" });
        }
        let greeting = HandshakePacket::deserialize((), &mut ParseBuf(payload))
            .map_err(|_| MysqlError::Malformed { what: "greeting" })?;
        self.connection_id = greeting.connection_id();
        self.challenge = greeting.nonce();
        if let Some(plugin) = greeting.auth_plugin() {
            self.plugin = plugin.into_owned();
        }
        let offered = greeting.capabilities();
        self.capabilities = CAPABILITIES & offered;
        // It belongs into the request for TLS, too: MariaDB reads the flags there, and not again.
        let has_database = !settings.database.is_empty();
        self.capabilities
            .set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, has_database);
        if !offered.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
            return Err(MysqlError::Malformed {
                what: "greeting: the server is older than MySQL 4.1",
            });
        }
        if settings.unix_socket || settings.tls == TlsMode::Disable {
            return Ok(false);
        }
        let tls = can_tls && offered.contains(CapabilityFlags::CLIENT_SSL);
        if !tls && settings.tls.demands_tls() {
            return Err(MysqlError::TlsRefused);
        }
        self.capabilities.set(CapabilityFlags::CLIENT_SSL, tls);
        Ok(tls)
    }

    pub(super) fn put_tls_request(&self, out: &mut Vec<u8>, sequence: &mut u8) {
        let request = SslRequest::new(self.capabilities, PACKET_MAX, COLLATION);
        packet::put(out, sequence, |out| request.serialize(out));
    }

    /// Who we are, with the answer to the challenge of the greeting.
    pub(super) fn put_response(
        &mut self,
        settings: &Settings,
        tls: bool,
        out: &mut Vec<u8>,
        sequence: &mut u8,
    ) -> Result<(), MysqlError> {
        // What the greeting names is only the server's default: the account's own plugin may follow.
        if !is_safe(&self.plugin, settings, tls) || self.plugin.init().is_err() {
            self.plugin = AuthPlugin::MysqlNativePassword;
            self.challenge.truncate(20);
        }
        if self.plugin == AuthPlugin::Ed25519 {
            // Its challenge comes with a switch of its own.
            self.plugin = AuthPlugin::MysqlNativePassword;
        }
        let challenge = std::mem::take(&mut self.challenge);
        let answer = self.answer(&challenge, settings, tls)?;
        let database = (!settings.database.is_empty()).then_some(settings.database.as_bytes());
        let response = HandshakeResponse::new(
            Some(answer.unwrap_or_default()),
            (8, 0, 0),
            Some(settings.user.as_bytes()),
            database,
            Some(self.plugin.borrow()),
            self.capabilities,
            attributes(self.capabilities, settings),
            PACKET_MAX,
        );
        packet::put(out, sequence, |out| response.serialize(out));
        Ok(())
    }

    /// One packet of the authentication; true when the server has accepted us.
    pub(super) fn receive(
        &mut self,
        payload: &[u8],
        settings: &Settings,
        tls: bool,
        out: &mut Vec<u8>,
        sequence: &mut u8,
    ) -> Result<bool, MysqlError> {
        let answer = match *payload {
            [OK, ..] => return Ok(true),
            [ERROR, ..] => return Err(refusal(payload)),
            // Without a plugin's name: the log-in of servers before 4.1.
            [0xFE] => return Err(unsupported(&AuthPlugin::MysqlOldPassword)),
            [0xFE, ..] => self.switch(payload, settings, tls)?,
            [0x01, ref more @ ..] => self.answer(more, settings, tls)?,
            [first, ..] => {
                let state = "during the log-in";
                return Err(MysqlError::UnexpectedPacket { first, state });
            }
            [] => return Err(MysqlError::Malformed { what: "log-in" }),
        };
        if let Some(answer) = answer {
            packet::put(out, sequence, |out| out.extend_from_slice(&answer));
        }
        Ok(false)
    }

    fn switch(
        &mut self,
        payload: &[u8],
        settings: &Settings,
        tls: bool,
    ) -> Result<Option<Vec<u8>>, MysqlError> {
        let what = "request for another plugin";
        let request = AuthSwitchRequest::deserialize((), &mut ParseBuf(payload))
            .map_err(|_| MysqlError::Malformed { what })?;
        let plugin = request.auth_plugin();
        if matches!(plugin, AuthPlugin::MysqlOldPassword) || plugin.init().is_err() {
            return Err(unsupported(&plugin));
        }
        if !is_safe(&plugin, settings, tls) {
            return Err(MysqlError::InsecureAuth {
                name: name(&plugin),
            });
        }
        self.plugin = plugin.into_owned();
        self.procedure = None;
        self.answer(request.plugin_data(), settings, tls)
    }

    /// The plugin's next step.
    fn answer(
        &mut self,
        challenge: &[u8],
        settings: &Settings,
        tls: bool,
    ) -> Result<Option<Vec<u8>>, MysqlError> {
        let plugin = &self.plugin;
        let failed = |reason: String| MysqlError::LogIn {
            name: name(plugin),
            reason,
        };
        let is_new = self.procedure.is_none();
        if is_new {
            self.challenge = challenge.to_vec();
            self.procedure = Some(plugin.init().map_err(|_| unsupported(plugin))?);
        }
        let key;
        let challenge = if is_new || challenge.len() < 2 {
            challenge
        } else {
            let wrong = || failed("the server's public key is not a valid RSA key".to_owned());
            key = server_key::checked(challenge).ok_or_else(wrong)?;
            &key
        };
        let transport = Transport {
            password: settings.password.as_ref().map_or(b"", |p| p.bytes()),
            challenge: &self.challenge,
            unix_socket: settings.unix_socket,
            tls,
        };
        let Some(procedure) = &mut self.procedure else {
            return Ok(None);
        };
        match procedure.run(transport, challenge) {
            Ok(response) => Ok(response.data().map(<[u8]>::to_vec)),
            Err(Error::FeatureRequired(_)) => Err(unsupported(plugin)),
            Err(Error::Challenge) => Err(failed("the server's challenge is malformed".to_owned())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// How long the challenge is, as the greeting says: behind the server's version and 20 bytes of fixed meaning.
fn challenge_bytes(greeting: &[u8]) -> Option<u8> {
    let version = greeting.get(1..)?.iter().position(|&byte| byte == 0)?;
    greeting.get(1 + version + 1 + 20).copied()
}

/// What the server may show of us, where it asks for that.
#[expect(
    clippy::disallowed_types,
    reason = "mysql_common takes no other; its order means nothing"
)]
fn attributes(
    capabilities: CapabilityFlags,
    settings: &Settings,
) -> Option<std::collections::HashMap<String, String>> {
    let wanted = capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS);
    let names = [
        ("_client_name", "loadstone"),
        ("program_name", &settings.program_name),
    ];
    wanted.then(|| {
        names
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    })
}

/// Whether the plugin keeps the password from others on the network.
fn is_safe(plugin: &AuthPlugin<'_>, settings: &Settings, tls: bool) -> bool {
    match plugin {
        AuthPlugin::MysqlClearPassword => tls || settings.unix_socket,
        AuthPlugin::MysqlOldPassword => false,
        _ => true,
    }
}

fn name(plugin: &AuthPlugin<'_>) -> String {
    String::from_utf8_lossy(plugin.as_bytes()).into_owned()
}

fn unsupported(plugin: &AuthPlugin<'_>) -> MysqlError {
    MysqlError::UnsupportedAuth { name: name(plugin) }
}

/// What plugins ask about the connection.
struct Transport<'a> {
    password: &'a [u8],
    challenge: &'a [u8],
    unix_socket: bool,
    tls: bool,
}

impl Context for Transport<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }

    fn is_ipc_transport(&self) -> bool {
        self.unix_socket
    }

    fn is_tls_transport(&self) -> bool {
        self.tls
    }

    fn scramble(&self) -> &[u8] {
        self.challenge
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

/// A refusal to let us in; class 28 is about who we are.
pub(super) fn refusal(payload: &[u8]) -> MysqlError {
    let Some(error) = ServerError::read(payload) else {
        return MysqlError::Malformed {
            what: "error packet",
        };
    };
    let owned = Box::new(error.to_owned());
    // 1130: this host may not connect; its error has no state of that class.
    match (&owned.sqlstate, owned.code) {
        ([b'2', b'8', ..], _) | (_, 1130) => MysqlError::AuthFailed(owned),
        _ => MysqlError::ServerRefused(owned),
    }
}
