//! An ordered pipeline: one thread makes pieces, some work on them, one takes them in their order.
//!
//! Pieces circulate: there is a fixed number of them, so memory is bounded and nothing is allocated anew.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

/// What a pipeline does; each part is called with one piece at a time.
pub(super) trait Stages: Sync {
    /// What circulates.
    type Piece: Default + Send;
    /// What can go wrong.
    type Error: Send;
    /// What makes pieces, in one thread.
    type Maker: Send;
    /// What a working thread keeps between two pieces.
    type Tools;

    /// Replaces the piece's content by the next one; false when there is none.
    fn make(maker: &mut Self::Maker, piece: &mut Self::Piece) -> Result<bool, Self::Error>;

    /// What a thread needs to work.
    fn tools(&self) -> Result<Self::Tools, Self::Error>;

    /// Works on a piece, in any thread and in any order.
    fn work(&self, tools: &mut Self::Tools, piece: &mut Self::Piece) -> Result<(), Self::Error>;
}

/// How a pipeline ended.
#[derive(Debug, Clone, Copy, Eq, PartialEq)]
pub(super) enum End {
    /// With the last piece.
    Complete,
    /// As asked.
    Stopped,
    /// A thread of it broke; that is a bug.
    Broken,
}

/// What comes to the taker.
enum Worked<S: Stages> {
    /// A piece with its place in the order.
    Piece(u64, S::Piece),
    /// It cannot go on.
    Failed(S::Error),
    /// A thread broke.
    Broken,
}

/// Runs until there are no more pieces, `stop` is set or something goes wrong; `take` gets them in order, in
/// this thread. With one thread everything happens in this one.
pub(super) fn run<S: Stages>(
    stages: &S,
    maker: S::Maker,
    threads: usize,
    stop: &AtomicBool,
    take: impl FnMut(&S::Piece) -> Result<(), S::Error>,
) -> Result<End, S::Error> {
    if threads <= 1 {
        run_here(stages, maker, stop, take)
    } else {
        run_threads(stages, maker, threads, stop, take)
    }
}

fn run_here<S: Stages>(
    stages: &S,
    mut maker: S::Maker,
    stop: &AtomicBool,
    mut take: impl FnMut(&S::Piece) -> Result<(), S::Error>,
) -> Result<End, S::Error> {
    let mut tools = stages.tools()?;
    let mut piece = S::Piece::default();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(End::Stopped);
        }
        if !S::make(&mut maker, &mut piece)? {
            return Ok(End::Complete);
        }
        stages.work(&mut tools, &mut piece)?;
        take(&piece)?;
    }
}

fn run_threads<S: Stages>(
    stages: &S,
    maker: S::Maker,
    threads: usize,
    stop: &AtomicBool,
    take: impl FnMut(&S::Piece) -> Result<(), S::Error>,
) -> Result<End, S::Error> {
    // Each worker has one in hand and one in wait, as have the maker and the taker.
    let pieces = 2 * threads + 2;
    let (free, to_fill) = bounded(pieces);
    let (filled, to_work) = bounded(pieces);
    let (worked, to_take) = bounded(pieces);
    for _ in 0..pieces {
        drop(free.send(S::Piece::default()));
    }
    thread::scope(|scope| {
        let errors = worked.clone();
        let making = scope.spawn(move || make_all::<S>(maker, stop, &to_fill, &filled, &errors));
        for _ in 0..threads {
            let (to_work, worked) = (to_work.clone(), worked.clone());
            scope.spawn(move || work_all(stages, &to_work, &worked));
        }
        drop((to_work, worked));
        let taken = take_all::<S>(&to_take, &free, take);
        drop(free); // whatever has gone wrong, the maker ends now
        Ok(match (taken?, making.join()) {
            (true, Ok(true)) => End::Complete,
            (true, Ok(false)) => End::Stopped,
            _ => End::Broken,
        })
    })
}

/// Whether the last piece was made.
fn make_all<S: Stages>(
    mut maker: S::Maker,
    stop: &AtomicBool,
    to_fill: &Receiver<S::Piece>,
    filled: &Sender<(u64, S::Piece)>,
    errors: &Sender<Worked<S>>,
) -> bool {
    for number in 0.. {
        // Nobody gives pieces back once something has gone wrong.
        let Ok(mut piece) = to_fill.recv() else {
            return false;
        };
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        match S::make(&mut maker, &mut piece) {
            Ok(true) => drop(filled.send((number, piece))),
            Ok(false) => return true,
            Err(error) => {
                drop(errors.send(Worked::Failed(error)));
                return false;
            }
        }
    }
    true
}

fn work_all<S: Stages>(
    stages: &S,
    to_work: &Receiver<(u64, S::Piece)>,
    worked: &Sender<Worked<S>>,
) {
    let mut tools = match stages.tools() {
        Ok(tools) => tools,
        Err(error) => return drop(worked.send(Worked::Failed(error))),
    };
    while let Ok((number, mut piece)) = to_work.recv() {
        let result = catch_unwind(AssertUnwindSafe(|| stages.work(&mut tools, &mut piece)));
        let message = match result {
            Ok(Ok(())) => Worked::Piece(number, piece),
            Ok(Err(error)) => Worked::Failed(error),
            Err(_) => Worked::Broken,
        };
        let goes_on = matches!(message, Worked::Piece(..));
        if worked.send(message).is_err() || !goes_on {
            return;
        }
    }
}

/// Takes pieces in their order until they end; false when a thread broke.
fn take_all<S: Stages>(
    to_take: &Receiver<Worked<S>>,
    free: &Sender<S::Piece>,
    mut take: impl FnMut(&S::Piece) -> Result<(), S::Error>,
) -> Result<bool, S::Error> {
    let mut early = BTreeMap::new();
    let mut next = 0;
    while let Ok(message) = to_take.recv() {
        match message {
            Worked::Piece(number, piece) => early.insert(number, piece),
            Worked::Failed(error) => return Err(error),
            Worked::Broken => return Ok(false),
        };
        while let Some(piece) = early.remove(&next) {
            take(&piece)?;
            next += 1;
            drop(free.send(piece)); // the maker may have ended
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;
    use std::time::Duration;

    /// Squares of numbers; slow for some, so that threads overtake each other.
    struct Squares {
        fails_at: u64,
        panics_at: u64,
        tools: bool,
    }

    const SQUARES: Squares = Squares {
        fails_at: u64::MAX,
        panics_at: u64::MAX,
        tools: true,
    };

    impl Stages for Squares {
        type Piece = (u64, u64);
        type Error = String;
        type Maker = Range<u64>;
        type Tools = ();

        fn make(maker: &mut Range<u64>, piece: &mut (u64, u64)) -> Result<bool, String> {
            let Some(number) = maker.next() else {
                return Ok(false);
            };
            piece.0 = number;
            if number == 5000 {
                return Err("cannot make 5000".to_owned());
            }
            Ok(true)
        }

        fn tools(&self) -> Result<(), String> {
            if self.tools {
                Ok(())
            } else {
                Err("no tools".to_owned())
            }
        }

        fn work(&self, (): &mut (), piece: &mut (u64, u64)) -> Result<(), String> {
            if piece.0.is_multiple_of(7) {
                thread::park_timeout(Duration::from_micros(200));
            }
            assert_ne!(piece.0, self.panics_at, "as asked");
            if piece.0 == self.fails_at {
                return Err(format!("cannot square {}", piece.0));
            }
            piece.1 = piece.0 * piece.0;
            Ok(())
        }
    }

    fn squares(stages: &Squares, count: u64, threads: usize) -> (Result<End, String>, Vec<u64>) {
        let mut taken = Vec::new();
        let end = run(
            stages,
            0..count,
            threads,
            &AtomicBool::new(false),
            |piece| {
                taken.push(piece.1);
                Ok(())
            },
        );
        (end, taken)
    }

    #[test]
    fn pieces_come_in_order_whoever_works_on_them() {
        for threads in [1, 2, 3, 8] {
            let (end, taken) = squares(&SQUARES, 500, threads);
            assert_eq!(end, Ok(End::Complete));
            assert_eq!(taken, (0..500).map(|n| n * n).collect::<Vec<u64>>());
        }
    }

    #[test]
    fn whatever_fails_ends_it_with_the_reason() {
        for threads in [1, 2, 5] {
            let failing = Squares {
                fails_at: 100,
                ..SQUARES
            };
            let (end, taken) = squares(&failing, 10_000, threads);
            assert_eq!(end, Err("cannot square 100".to_owned()));
            assert!(taken.len() <= 100);
            let (end, _) = squares(&SQUARES, 10_000, threads);
            assert_eq!(end, Err("cannot make 5000".to_owned()));
            let without = Squares {
                tools: false,
                ..SQUARES
            };
            assert_eq!(squares(&without, 9, threads).0, Err("no tools".to_owned()));
            let end = run(
                &SQUARES,
                0..4000,
                threads,
                &AtomicBool::new(false),
                |piece| {
                    if piece.0 == 50 {
                        Err("full".to_owned())
                    } else {
                        Ok(())
                    }
                },
            );
            assert_eq!(end, Err("full".to_owned()));
        }
    }

    #[test]
    fn a_thread_that_breaks_does_not_hang_the_others() {
        let panicking = Squares {
            panics_at: 100,
            ..SQUARES
        };
        let (end, taken) = squares(&panicking, 10_000, 3);
        assert_eq!(end, Ok(End::Broken));
        assert!(taken.len() <= 100);
    }

    #[test]
    fn a_stop_ends_it_early() {
        for threads in [1, 4] {
            let stop = AtomicBool::new(false);
            let mut taken = 0;
            let end = run(&SQUARES, 0..4000, threads, &stop, |_| {
                taken += 1;
                stop.store(taken >= 20, Ordering::Relaxed);
                Ok(())
            });
            assert_eq!(end, Ok(End::Stopped));
            assert!((20..100).contains(&taken), "{taken}");
        }
    }
}
