//! Whether a session is the one that was asked for: a pooler may have dropped the settings of the log-in.

use super::client::Checked;
use super::{Stage, Worker};
use crate::error::DriveError;
use crate::io::{Poller, Slot};
use crate::protocol::{Failure, Frontend as _, Message, Protocol, Row as _, Session as _};
use crate::record::ErrorClass;

impl<P: Protocol, I: Poller> Worker<P, I> {
    /// Start-up and authentication are over: ask what session it is, where that matters.
    pub(super) fn check_session(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        let (Some(sql), Some(session)) = (&self.config.session_check, &mut client.session) else {
            return self.logged_in(slot, now);
        };
        let put = session.frontend().query(sql.as_bytes());
        if let Err(error) = put {
            let failure = Failure::new(ErrorClass::Protocol, error.to_string());
            return self.lose(slot, now, failure);
        }
        client.checked = Some(Checked::default());
        self.dirty.push(slot);
    }

    /// A part of the answer has come.
    pub(super) fn session_checked(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        let Some(checked) = client.checked.take_if(|checked| checked.is_over) else {
            return;
        };
        match checked.wrong {
            None => self.logged_in(slot, now),
            Some((message, hint)) => self.refuse_session(slot, now, message, hint),
        }
    }

    /// Nothing must be done in this session: the whole drive ends.
    fn refuse_session(&mut self, slot: Slot, now: u64, message: String, hint: String) {
        let turn = self.clients[slot as usize].turn();
        if self.stage == Stage::Connecting {
            self.detach(slot);
        } else {
            let failure = Failure::new(ErrorClass::Connection, message.clone());
            self.cut_off(slot, now, &failure);
            self.control.stop();
        }
        self.fatal.get_or_insert(DriveError::Connect {
            address: (self.connector.in_turn(turn).endpoint.text).clone(),
            message,
            hint,
        });
    }
}

impl Checked {
    pub(super) fn message<P: Protocol>(&mut self, message: &Message<'_, P>) {
        match message {
            Message::Row(row) => {
                let mut texts = row.values().map(text);
                let (message, hint) = (texts.next(), texts.next());
                let wrong = (message.unwrap_or_default(), hint.unwrap_or_default());
                self.wrong.get_or_insert(wrong);
            }
            Message::Error(error) => {
                let words = String::from_utf8_lossy(error.message);
                let message = format!("the session could not be checked: {words}");
                self.wrong.get_or_insert((message, String::new()));
            }
            Message::Answered { .. } => self.is_over = true,
            _ => {}
        }
    }
}

fn text(value: Option<&[u8]>) -> String {
    String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
}
