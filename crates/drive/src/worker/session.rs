//! Whether a session is the one that was asked for: a pooler may have dropped the settings of the log-in.

use loadstone_wire::postgres::Message;

use super::traffic::protocol_failure;
use super::{Stage, Worker};
use crate::client::Checked;
use crate::error::DriveError;
use crate::io::{Poller, Slot};
use crate::program::Failure;
use crate::record::ErrorClass;

impl<P: Poller> Worker<P> {
    /// Start-up and authentication are over: ask what session it is, where that matters.
    pub(super) fn check_session(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        let (Some(sql), Some(session)) = (&self.config.session_check, &mut client.session) else {
            return self.logged_in(slot, now);
        };
        if let Err(error) = session.frontend().query(sql.as_bytes()) {
            return self.lose(slot, now, protocol_failure(&error));
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
        if self.stage == Stage::Connecting {
            self.detach(slot);
        } else {
            let failure = Failure::new(ErrorClass::Connection, message.clone());
            self.cut_off(slot, now, &failure);
            self.control.stop();
        }
        self.fatal.get_or_insert(DriveError::Connect {
            address: self.config.endpoint.text.clone(),
            message,
            hint,
        });
    }
}

impl Checked {
    pub(super) fn message(&mut self, message: &Message<'_>) {
        match message {
            Message::DataRow(row) => {
                let mut texts = row.values().map(|value| text(value.ok().flatten()));
                let (message, hint) = (texts.next(), texts.next());
                let wrong = (message.unwrap_or_default(), hint.unwrap_or_default());
                self.wrong.get_or_insert(wrong);
            }
            Message::Error(error) => {
                let words = String::from_utf8_lossy(error.message());
                let message = format!("the session could not be checked: {words}");
                self.wrong.get_or_insert((message, String::new()));
            }
            Message::ReadyForQuery(_) => self.is_over = true,
            _ => {}
        }
    }
}

fn text(value: Option<&[u8]>) -> String {
    String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
}
