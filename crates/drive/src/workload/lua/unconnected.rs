//! What a script does without a connection: before the first, after the last, and between a lost one and the next.

use loadstone_lua::{Fault, Request};

use super::link::SERVER_GONE;
use super::{Course, LuaProgram, Next};
use crate::protocol::Failure;
use crate::record::ErrorClass;
use crate::workload::Step;

impl LuaProgram {
    /// What a script asks for that has none.
    pub(super) fn unconnected(&mut self, request: Request) -> Option<Step> {
        if self.shared.script.spec().dry_run && self.pretended(&request) {
            return None;
        }
        match request {
            Request::Connect => {
                self.next = Next::Connection;
                Some(Step::Connect)
            }
            Request::Switch(to) => Some(self.switch(to)),
            Request::Disconnect => {
                self.link.forget();
                None
            }
            Request::Close(_) => None,
            request if self.link.is_lost() && needs_connection(&request) => self.miss(&request),
            request if needs_connection(&request) => {
                Some(self.fail(Fault::plain("there is no connection")))
            }
            other => self.anyway(other),
        }
    }

    /// Without a server all goes well, and nothing has a result; true where the request is dealt with.
    fn pretended(&mut self, request: &Request) -> bool {
        self.next = match request {
            Request::Connect => Next::Connection,
            Request::Reconnect => {
                self.operations.reconnects += 1;
                Next::Connection
            }
            Request::Query | Request::Execute(_) | Request::BulkInsert { .. } => {
                self.operations.others += 1;
                Next::Heard
            }
            Request::Rollback | Request::Prepare(_) => Next::Heard,
            Request::Switch(_) => Next::Nothing,
            _ => return false,
        };
        self.heard.clear();
        self.lua.result.clear();
        true
    }

    /// A lost connection is an error of a statement for the script, as with the MySQL driver of sysbench.
    pub(super) fn minds_loss(&self, failure: &Failure) -> bool {
        self.shared.script.spec().driver == "mysql"
            && self.course != Course::Ended
            && matches!(
                failure.class,
                ErrorClass::Connection | ErrorClass::Server(_)
            )
    }

    /// The statement that was sent will not be answered, or cannot be sent.
    pub(super) fn lose_statement(&mut self, error: (u16, &str)) {
        self.heard.lose(error);
        if self.heard.connects_again(&self.shared.script) {
            self.connect_again(Next::Heard);
        } else if self.counts {
            self.heard.count(&self.lua.result, &mut self.operations);
        }
    }

    /// The connection is made again before the script goes on with this.
    pub(super) fn connect_again(&mut self, next: Next) {
        self.operations.reconnects += 1;
        self.link.connect_again();
        self.next = next;
    }

    pub(super) fn switch(&mut self, to: u32) -> Step {
        self.link.switch(to);
        Step::Switch { to }
    }

    /// A statement is due on a connection that is lost.
    fn miss(&mut self, request: &Request) -> Option<Step> {
        if *request == Request::Reconnect {
            self.connect_again(Next::Flag(true));
        } else {
            self.counts = !matches!(request, Request::Prepare(_) | Request::Rollback);
            self.heard.clear();
            self.lua.result.clear();
            self.next = Next::Heard;
            self.lose_statement(SERVER_GONE);
        }
        self.link.returns().then_some(Step::Reconnect)
    }
}

fn needs_connection(request: &Request) -> bool {
    matches!(
        request,
        Request::Query
            | Request::BulkInsert { .. }
            | Request::Rollback
            | Request::Prepare(_)
            | Request::Execute(_)
            | Request::Reconnect
    )
}
