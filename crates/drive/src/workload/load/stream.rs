//! A batch that is sent while it is still made: pieces that stay in the cache from their encoding to the socket.
//!
//! The maker keeps a few pieces ahead of the client, so what is made and not yet sent is bounded by them and not by
//! the rows of a batch. The batch stays one transaction: its client takes all pieces, in order, and awaits the answer.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::batch::Content;
use crate::waker::Waker;

/// Most pieces that wait: some milliseconds of the server's work, and still within the last cache.
pub(super) const AHEAD: usize = 16;
/// When only so many wait, the maker goes on: it is not woken for each.
const LOW: usize = AHEAD / 2;

/// What the client finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Piece(Vec<u8>),
    /// Nothing yet: its worker will be woken.
    NotYet,
    /// There are no more.
    End,
    /// The rest cannot be made; said once.
    Broken,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Vec<u8>>,
    content: Content,
    /// Nothing follows the pieces.
    whole: bool,
    broken: bool,
    /// Nobody takes them.
    unread: bool,
    sleeper: Option<Arc<Waker>>,
}

#[derive(Debug, Default)]
struct Stream {
    state: Mutex<State>,
    room: Condvar,
}

/// The maker's end: the batch is broken when it is dropped before [`Writer::finish`].
#[derive(Debug)]
pub(super) struct Writer(Arc<Stream>);

/// The client's end.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Stream>);

/// Both ends of a batch's pieces.
pub(super) fn pair() -> (Writer, Reader) {
    let stream = Arc::new(Stream::default());
    (Writer(Arc::clone(&stream)), Reader(stream))
}

impl Writer {
    /// Note what is in a piece.
    pub(super) fn count(&self, content: &Content) {
        self.0.lock().content.add(content);
    }

    /// Hand a piece over; waits while enough of them wait. False when nobody takes it.
    pub(super) fn push(&self, piece: Vec<u8>) -> bool {
        let full = |state: &mut State| !state.unread && state.pieces.len() >= AHEAD;
        let state = self.0.room.wait_while(self.0.lock(), full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.pieces.push_back(piece);
        state.wake();
        !state.unread
    }

    /// The last piece has been handed over.
    pub(super) fn finish(self) {
        let mut state = self.0.lock();
        state.whole = true;
        state.wake();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if !state.whole {
            (state.whole, state.broken) = (true, true);
            state.wake();
        }
    }
}

impl Reader {
    /// The next piece; without one, `waker` is told of it.
    pub(super) fn next(&self, waker: Option<&Arc<Waker>>) -> Next {
        let mut state = self.0.lock();
        if let Some(piece) = state.pieces.pop_front() {
            if state.pieces.len() == LOW {
                self.0.room.notify_one();
            }
            return Next::Piece(piece);
        }
        if std::mem::take(&mut state.broken) {
            return Next::Broken;
        }
        if state.whole {
            return Next::End;
        }
        state.sleeper = waker.cloned();
        Next::NotYet
    }

    /// What the pieces held so far.
    pub(super) fn content(&self) -> Content {
        self.0.lock().content.clone()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.lock().unread = true;
        self.0.room.notify_one();
    }
}

impl Stream {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.sleeper.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::thread;

    use super::*;

    #[test]
    fn pieces_come_in_order_and_the_maker_stays_few_ahead() {
        let (writer, reader) = pair();
        let maker = thread::spawn(move || {
            for number in 0..100 {
                assert!(writer.push(vec![number]));
            }
            writer.finish();
        });
        let (waker, mut woken) = Waker::pair().unwrap();
        woken.set_nonblocking(false).unwrap();
        let waker = Arc::new(waker);
        let mut found = Vec::new();
        loop {
            assert!(reader.0.lock().pieces.len() <= AHEAD);
            match reader.next(Some(&waker)) {
                Next::Piece(piece) => found.extend(piece),
                Next::NotYet => woken.read_exact(&mut [0]).unwrap(),
                end => break assert_eq!(end, Next::End),
            }
        }
        assert_eq!(found, (0..100).collect::<Vec<_>>());
        maker.join().unwrap();
    }

    #[test]
    fn a_batch_that_nobody_takes_stops_its_maker() {
        let (writer, reader) = pair();
        for _ in 0..AHEAD {
            assert!(writer.push(Vec::new()));
        }
        let maker = thread::spawn(move || writer.push(Vec::new()));
        drop(reader);
        assert!(!maker.join().unwrap());
    }

    #[test]
    fn a_maker_that_fails_breaks_the_batch_behind_its_pieces() {
        let (writer, reader) = pair();
        assert!(writer.push(vec![1]));
        drop(writer);
        let found: Vec<Next> = (0..3).map(|_| reader.next(None)).collect();
        assert_eq!(found, [Next::Piece(vec![1]), Next::Broken, Next::End]);
    }
}
