//! A command of `\shell` or `\setshell`: a process group of its own, which ends with its transaction.
//!
//! The driver's thread does not wait for it: it looks at the command now and then, and serves its other clients.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::clock::now_ns;
use crate::protocol::Failure;
use crate::record::ErrorClass;

/// Of the output only the first line is used, and little of it.
const OUTPUT_BYTES_MAX: usize = 4096;
/// A command is looked at again after a twentieth of its time so far, within these limits.
const PAUSE_MIN_NS: u64 = 100_000;
const PAUSE_MAX_NS: u64 = 20_000_000;
/// What a command may take to end itself once it is asked to.
const TERM_NS: u64 = 100_000_000;
const TERM_LOOK: Duration = Duration::from_millis(1);

pub(super) struct Shell {
    line: String,
    child: Child,
    group: Pid,
    output: Vec<u8>,
    begun_ns: u64,
    /// When it was asked to end.
    asked_ns: Option<u64>,
    ended: Option<ExitStatus>,
}

impl Shell {
    /// Start a command; `reads` when its output is wanted, else `shows` when it goes where ours does.
    pub(super) fn start(line: &str, reads: bool, shows: bool) -> Result<Self, Failure> {
        let stdout = match (reads, shows) {
            (true, _) => Stdio::piped(),
            (false, true) => Stdio::inherit(),
            (false, false) => Stdio::null(),
        };
        let spawned = Command::new("sh")
            .args(["-c", line])
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn();
        let cannot = |error: String| Failure::script(format!("cannot run {line:?}: {error}"));
        let child = spawned.map_err(|error| cannot(error.to_string()))?;
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
        let shell = Self {
            group,
            output: Vec::new(),
            begun_ns: now_ns(),
            asked_ns: None,
            ended: None,
            line: line.to_owned(),
            child,
        };
        if let Some(stdout) = &shell.child.stdout {
            fcntl(stdout, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
                .map_err(|errno| cannot(errno.to_string()))?;
        }
        Ok(shell)
    }

    /// What it has written, once it has ended; `None` while it runs.
    pub(super) fn look(&mut self, limit_ns: u64) -> Result<Option<String>, Failure> {
        self.read();
        let Some(status) = self.try_wait() else {
            if self.age_ns() < limit_ns {
                return Ok(None);
            }
            self.ask_to_end();
            return Err(self.too_long(limit_ns));
        };
        self.read(); // what came between the last look and its end
        let reads = self.child.stdout.is_some();
        // As pgbench: a number that `grep -c` writes counts, though no match makes it end with 1.
        if (reads && !self.output.is_empty()) || (!reads && status.success()) {
            return Ok(Some(String::from_utf8_lossy(&self.output).into_owned()));
        }
        let cannot = if reads {
            "could not read result of shell command"
        } else {
            "could not launch shell command"
        };
        let said = format!("{cannot}: {:?} ended with {status}", self.line);
        Err(Failure::script(said))
    }

    /// How long to wait before it is looked at again.
    pub(super) fn pause_ns(&self) -> u64 {
        (self.age_ns() / 20).clamp(PAUSE_MIN_NS, PAUSE_MAX_NS)
    }

    /// Ask it, and all that it has started, to end. Dropping it waits for that, and then makes it end.
    pub(super) fn ask_to_end(&mut self) {
        if self.asked_ns.is_none() && self.try_wait().is_none() {
            self.asked_ns = Some(now_ns());
            let _ = killpg(self.group, Signal::SIGTERM); // no such group: it has ended
        }
    }

    fn age_ns(&self) -> u64 {
        now_ns().saturating_sub(self.begun_ns)
    }

    fn too_long(&self, limit_ns: u64) -> Failure {
        let limit = Duration::from_nanos(limit_ns).as_secs_f64();
        let message = format!("{:?} has not ended within {limit} s", self.line);
        Failure::new(ErrorClass::Timeout, message)
    }

    fn read(&mut self) {
        let Some(stdout) = &mut self.child.stdout else {
            return;
        };
        let mut piece = [0; 4096];
        // An error means that there is nothing to read for now.
        while let Ok(count @ 1..) = stdout.read(&mut piece) {
            let room = OUTPUT_BYTES_MAX - self.output.len();
            self.output.extend_from_slice(&piece[..count.min(room)]);
        }
    }

    fn try_wait(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            // A child that cannot be waited for is not there any more.
            let gone = || Some(ExitStatus::from_raw(0));
            self.ended = self.child.try_wait().unwrap_or_else(|_| gone());
        }
        self.ended
    }

    /// Processes of its group are left.
    fn group_lives(&self) -> bool {
        killpg(self.group, None).is_ok()
    }
}

impl Drop for Shell {
    /// Nothing of a command that was not over is left.
    fn drop(&mut self) {
        self.ask_to_end();
        let Some(asked_ns) = self.asked_ns else {
            return;
        };
        while now_ns() < asked_ns + TERM_NS {
            let _ = self.try_wait(); // its own entry would count as alive
            if !self.group_lives() {
                return;
            }
            thread::park_timeout(TERM_LOOK);
        }
        let _ = killpg(self.group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience(mut condition: impl FnMut() -> bool) {
        let begun_ns = now_ns();
        while !condition() {
            assert!(now_ns() - begun_ns < 20_000_000_000, "it hangs");
            thread::park_timeout(TERM_LOOK);
        }
    }

    fn output_of(line: &str) -> Result<String, Failure> {
        let mut shell = Shell::start(line, true, false)?;
        loop {
            if let Some(output) = shell.look(u64::MAX)? {
                return Ok(output);
            }
            thread::park_timeout(TERM_LOOK);
        }
    }

    #[test]
    fn output_and_failure_are_told() {
        assert_eq!(output_of("echo 42").unwrap(), "42\n");
        assert_eq!(output_of("echo 0; exit 1").unwrap(), "0\n");
        let failure = output_of("true").unwrap_err();
        assert!(failure.message.starts_with("could not read result"));
        assert_eq!(
            output_of("yes | head -c 100000").unwrap().len(),
            OUTPUT_BYTES_MAX
        );
        let failure = output_of("exit 3").unwrap_err();
        assert!(failure.message.contains("exit status: 3"), "{failure:?}");
    }

    #[test]
    fn one_that_takes_too_long_fails_and_leaves_nothing() {
        // A grandchild that does not heed the polite request.
        let line = "trap '' TERM; sleep 307 & sh -c 'trap \"\" TERM; sleep 307; sleep 307'";
        let mut shell = Shell::start(line, false, false).unwrap();
        let mut failure = None;
        patience(|| {
            failure = shell.look(50_000_000).err();
            failure.is_some()
        });
        assert_eq!(failure.unwrap().class, ErrorClass::Timeout);
        let group = shell.group;
        drop(shell);
        patience(|| !is_alive(group));
    }

    /// A process of this group runs; what only waits for its parent to notice its end does not.
    fn is_alive(group: Pid) -> bool {
        let files = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let path = entry.unwrap().path().join("stat");
            std::fs::read_to_string(path).ok()
        });
        files
            .filter_map(|stat| Some(stat.rsplit_once(") ")?.1.to_owned()))
            .any(|rest| {
                let mut fields = rest.split(' ');
                let state = fields.next().unwrap();
                let its_group = fields.nth(1).unwrap().parse::<i32>().unwrap();
                its_group == group.as_raw() && state != "Z"
            })
    }
}
