//! The built-in server's event loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use loadstone_wire::postgres::{Action, Behaviour, Responder};
use socket2::Socket;

use super::Shared;
use super::service::Service;
use crate::clock::{CpuTime, now_ns};
use crate::io::{Event, Poller, Sending, Slot};

/// The place of the socket pair by which the accepting threads wake the serving one.
const WAKER: Slot = 0;
const WAIT_NS: u64 = 100_000_000;

/// One connection as the server sees it.
struct Peer {
    socket: Socket,
    responder: Responder,
    /// Answers that wait for the running send, or for their time.
    out: Vec<u8>,
    sending: Vec<u8>,
    busy: bool,
    /// Nothing of `out` may leave before; zero when nothing is held back.
    held_until_ns: u64,
    closing: bool,
    silent: bool,
}

pub(super) struct EventLoop<P: Poller> {
    poller: P,
    shared: Arc<Shared>,
    woken: Socket,
    behaviour: Arc<Behaviour>,
    peers: Vec<Option<Peer>>,
    free: Vec<Slot>,
    dirty: Vec<Slot>,
    timers: BinaryHeap<Reverse<(u64, Slot)>>,
    connections: u64,
    service: Option<Service>,
}

impl<P: Poller> EventLoop<P> {
    pub(super) fn new(
        poller: P,
        shared: Arc<Shared>,
        woken: Socket,
        behaviour: Arc<Behaviour>,
        slots: usize,
        service: Option<Service>,
    ) -> Self {
        let last = u32::try_from(slots).unwrap_or(u32::MAX);
        Self {
            poller,
            shared,
            woken,
            behaviour,
            peers: (0..slots).map(|_| None).collect(),
            free: (1..last).rev().collect(),
            dirty: Vec::new(),
            timers: BinaryHeap::new(),
            connections: 0,
            service,
        }
    }

    pub(super) fn run(mut self) {
        if self.poller.open(WAKER, self.woken.as_raw_fd()).is_err() {
            return;
        }
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.flush();
            let now = now_ns();
            let timeout_ns = self
                .timers
                .peek()
                .map_or(WAIT_NS, |t| t.0.0.saturating_sub(now).min(WAIT_NS));
            if self.poller.wait(now, timeout_ns).is_err() {
                return;
            }
            let now = now_ns();
            while let Some(event) = self.poller.next() {
                self.handle(event, now);
            }
            self.fire_timers(now);
            let cpu = CpuTime::of_this_thread();
            self.shared
                .cpu_ns
                .store(cpu.user_ns + cpu.system_ns, Ordering::Relaxed);
        }
    }

    fn handle(&mut self, event: Event, now: u64) {
        match event {
            Event::Received(WAKER, chunk) => {
                self.poller.release(chunk);
                self.welcome();
            }
            Event::Received(slot, chunk) => {
                let Some(peer) = &mut self.peers[slot as usize] else {
                    return self.poller.release(chunk);
                };
                let before = peer.responder.queries();
                let action = if peer.silent {
                    Ok(Action::Silent)
                } else {
                    peer.responder
                        .respond(self.poller.bytes(chunk), &mut peer.out)
                };
                let queries = peer.responder.queries() - before;
                self.poller.release(chunk);
                let action = action.unwrap_or(Action::Close);
                let action = self.in_its_time(action, queries, now);
                self.act(slot, action, now);
            }
            Event::Sent(slot, taken) => self.sent(slot, taken),
            Event::Writable(slot) => self.resume(slot),
            Event::Closed(slot) | Event::Failed(slot, _) => self.farewell(slot),
        }
    }

    /// Hold answers back for as long as the service takes.
    fn in_its_time(&mut self, action: Action, queries: u64, now: u64) -> Action {
        let (Some(service), Action::Continue) = (&mut self.service, action) else {
            return action;
        };
        match (0..queries).map(|_| service.leaves_ns(now)).max() {
            Some(leaves) => Action::Delay { ns: leaves - now },
            None => action,
        }
    }

    fn act(&mut self, slot: Slot, action: Action, now: u64) {
        let Some(peer) = &mut self.peers[slot as usize] else {
            return;
        };
        match action {
            Action::Continue => {}
            Action::Close => peer.closing = true,
            Action::Cancel { tls, .. } => {
                peer.closing = true;
                self.shared.cancels[usize::from(tls)].fetch_add(1, Ordering::Relaxed);
            }
            Action::Silent => peer.silent = true,
            Action::Delay { ns } => {
                peer.held_until_ns = now.saturating_add(ns);
                return self.timers.push(Reverse((peer.held_until_ns, slot)));
            }
        }
        self.dirty.push(slot);
    }

    fn welcome(&mut self) {
        let accepted = std::mem::take(
            &mut *self
                .shared
                .accepted
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for socket in accepted {
            let Some(slot) = self.free.pop() else {
                continue;
            };
            if socket.set_nonblocking(true).is_err()
                || self.poller.open(slot, socket.as_raw_fd()).is_err()
            {
                self.free.push(slot);
                continue;
            }
            self.connections += 1;
            let responder = Responder::new(Arc::clone(&self.behaviour), self.connections);
            self.peers[slot as usize] = Some(Peer {
                socket,
                responder,
                out: Vec::new(),
                sending: Vec::new(),
                busy: false,
                held_until_ns: 0,
                closing: false,
                silent: false,
            });
        }
    }

    fn flush(&mut self) {
        let mut closing = 0;
        for at in 0..self.dirty.len() {
            let slot = self.dirty[at];
            self.flush_peer(slot);
            // Those that are to be closed stay in the list until they are.
            if self.peers[slot as usize]
                .as_ref()
                .is_some_and(|p| p.closing)
            {
                self.dirty[closing] = slot;
                closing += 1;
            }
        }
        self.dirty.truncate(closing);
    }

    fn flush_peer(&mut self, slot: Slot) {
        let Some(peer) = &mut self.peers[slot as usize] else {
            return;
        };
        if peer.busy || peer.held_until_ns > 0 {
            return;
        }
        if !peer.out.is_empty() {
            peer.sending.clear();
            std::mem::swap(&mut peer.sending, &mut peer.out);
            if !send(&mut self.poller, slot, peer) {
                return;
            }
        }
        if peer.closing {
            self.farewell(slot);
        }
    }

    fn sent(&mut self, slot: Slot, taken: usize) {
        let Some(peer) = &mut self.peers[slot as usize] else {
            return;
        };
        if taken < peer.sending.len() {
            peer.sending.drain(..taken);
            return self.resume(slot);
        }
        peer.busy = false;
        self.dirty.push(slot);
    }

    fn resume(&mut self, slot: Slot) {
        if let Some(peer) = &mut self.peers[slot as usize]
            && send(&mut self.poller, slot, peer)
        {
            self.dirty.push(slot);
        }
    }

    fn fire_timers(&mut self, now: u64) {
        while let Some(&Reverse((until_ns, slot))) = self.timers.peek() {
            if until_ns > now {
                return;
            }
            self.timers.pop();
            if let Some(peer) = &mut self.peers[slot as usize]
                && peer.held_until_ns <= now
            {
                peer.held_until_ns = 0;
                self.dirty.push(slot);
            }
        }
    }

    fn farewell(&mut self, slot: Slot) {
        if let Some(peer) = self.peers[slot as usize].take() {
            let sending = if peer.busy { peer.sending } else { Vec::new() };
            self.poller.close(slot, peer.socket.as_raw_fd(), sending);
            self.free.push(slot);
        }
    }
}

/// Send what is in `sending`; true when the kernel has taken all of it.
fn send<P: Poller>(poller: &mut P, slot: Slot, peer: &mut Peer) -> bool {
    match poller.send(slot, peer.socket.as_raw_fd(), &peer.sending, false) {
        Ok(Sending::Done) => {
            peer.busy = false;
            true
        }
        Ok(Sending::Blocked(taken)) => {
            peer.sending.drain(..taken);
            peer.busy = true;
            false
        }
        Ok(Sending::Queued) => {
            peer.busy = true;
            false
        }
        Err(_) => {
            peer.closing = true;
            peer.out.clear();
            true
        }
    }
}
