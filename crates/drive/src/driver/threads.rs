//! The threads of a drive: clients dealt to them, each with the poller that the kernel offers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use super::broken;
use crate::clock;
use crate::collector::{Finish, Report};
use crate::error::DriveError;
use crate::io::Poller;
use crate::io::epoll::EpollPoller;
use crate::io::uring::UringPoller;
use crate::protocol::Protocol;
use crate::spec::IoChoice;
use crate::worker::{Assignment, Worker};

/// Clients to threads, as evenly as possible, in order.
pub(super) fn deal<T>(clients: Vec<T>, threads: usize) -> Vec<Vec<T>> {
    let total = clients.len();
    let mut clients = clients.into_iter();
    (0..threads)
        .map(|thread| {
            clients
                .by_ref()
                .take(total / threads + usize::from(thread < total % threads))
                .collect()
        })
        .collect()
}

pub(super) fn spawn<P: Protocol>(
    assignment: Assignment<P>,
    choice: IoChoice,
) -> Option<thread::JoinHandle<()>> {
    let name = format!("drive-{}", assignment.number);
    let control = Arc::clone(&assignment.control);
    let body = move || {
        clock::wait_exactly();
        let (number, control, reports) = (
            assignment.number,
            Arc::clone(&assignment.control),
            assignment.reports.clone(),
        );
        let ran = catch_unwind(AssertUnwindSafe(|| work(assignment, choice)));
        if ran.is_err() {
            // In case it broke before the common start: the others must not wait for it.
            control.stop();
            control.arrive_broken(broken("a worker"));
            let error = Some(broken("a worker").to_string());
            let broken = true;
            let _ = reports.send(Report::Finished(
                number,
                Finish {
                    error,
                    broken,
                    ..Finish::default()
                },
            ));
        }
    };
    match thread::Builder::new().name(name).spawn(body) {
        Ok(handle) => Some(handle),
        Err(source) => {
            control.stop();
            control.arrive_broken(DriveError::thread(source));
            None
        }
    }
}

fn work<P: Protocol>(assignment: Assignment<P>, choice: IoChoice) {
    let slots = slots(&assignment);
    match choice {
        IoChoice::Epoll => run_on::<P, EpollPoller>(assignment),
        IoChoice::IoUring => run_on::<P, UringPoller>(assignment),
        IoChoice::Auto => match UringPoller::new(slots) {
            Ok(poller) => Worker::with_poller(assignment, poller).run(),
            // ENOSYS, EPERM (seccomp, sysctl), ENOMEM (old memlock limits): epoll does the same work.
            Err(_) => run_on::<P, EpollPoller>(assignment),
        },
    }
}

/// One for each connection, and one for the waker where there is one.
fn slots<P: Protocol>(assignment: &Assignment<P>) -> usize {
    assignment.clients.len() + usize::from(assignment.config.work.waits())
}

fn run_on<P: Protocol, I: Poller>(assignment: Assignment<P>) {
    match I::new(slots(&assignment)) {
        Ok(poller) => Worker::with_poller(assignment, poller).run(),
        Err(source) => {
            let error = DriveError::System {
                what: format!("setting up {}", I::NAME),
                source,
                hint: "use --io auto, or allow this process to use it".to_owned(),
            };
            let _ = assignment.control.arrive(Err(error));
        }
    }
}
