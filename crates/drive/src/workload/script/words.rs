//! What is told of a script while it runs, in the words of pgbench, which other tools look for.

use std::fmt::Display;

use loadstone_script::{CommandKind, QueryMode, RuntimeError, RuntimeErrorKind, ShellArg};

use super::ScriptProgram;
use crate::messages::{Kind, Line};
use crate::protocol::Failure;
use crate::record::ErrorClass;
use crate::workload::Place;

impl ScriptProgram {
    /// A line of the script's course, if that is wanted.
    fn log_step(&self, text: impl FnOnce() -> String) {
        if let Some(messages) = &self.set.messages
            && messages.spec.steps
        {
            let text = format!("client {} {}", self.client, text());
            messages.push(Line::new(Kind::Note, text));
        }
    }

    pub(super) fn log_begin(&self) {
        self.log_step(|| {
            format!(
                "executing script \"{}\"",
                self.set.scripts[self.script].name
            )
        });
    }

    pub(super) fn log_sent(&self, flat: usize) {
        self.log_step(|| match self.set.mode {
            QueryMode::Prepared => format!("sending {}", self.set.names[flat]),
            QueryMode::Simple => format!("sending {}", String::from_utf8_lossy(&self.texts)),
            QueryMode::Extended => {
                format!("sending {}", String::from_utf8_lossy(self.last_prepared()))
            }
        });
    }

    pub(super) fn log_received(&self) {
        self.log_step(|| "receiving".to_owned());
    }

    /// The text of the statement that the machine is at.
    pub(super) fn last_prepared(&self) -> &[u8] {
        let commands = &self.set.scripts[self.script].commands;
        match commands.get(self.machine.command()).map(|c| &c.kind) {
            Some(CommandKind::Sql(statement)) => statement.prepared.as_bytes(),
            _ => b"",
        }
    }

    /// `client 0 aborted in command 3 (sleep) of script 1; …`
    fn aborted_in(&self, command: usize, name: &str, said: &str) -> Line {
        let (client, script) = (self.client, self.script);
        let text = format!(
            "client {client} aborted in command {command} ({name}) of script {script}; {said}"
        );
        Line::new(Kind::Error, text)
    }

    /// Where in the text a command stands.
    fn place_of(&self, command: usize) -> Option<Line> {
        let script = &self.set.scripts[self.script];
        let line = script.commands.get(command)?.line;
        let text = format!("{}:{line}", script.name);
        Some(Line::new(Kind::Detail, text))
    }

    fn note(&mut self, lines: impl IntoIterator<Item = Line>, command: usize) {
        self.trouble.clear();
        if self.set.messages.is_some() {
            self.trouble.extend(lines);
            self.trouble.extend(self.place_of(command));
        }
    }

    /// Keep what is told of a command that could not be run.
    pub(super) fn note_runtime_error(&mut self, error: &RuntimeError) {
        let (command, name) = (error.command, error.name);
        let said = error.kind.to_string();
        let lines = match &error.kind {
            RuntimeErrorKind::OpenPipeline => {
                let text = format!("client {} aborted: {said}", self.client);
                vec![Line::new(Kind::Error, text)]
            }
            RuntimeErrorKind::CaptureInPipeline(capture) => {
                vec![self.aborted_in(command, capture, &said)]
            }
            RuntimeErrorKind::SimpleMode
            | RuntimeErrorKind::NestedPipeline
            | RuntimeErrorKind::NoPipeline => vec![self.aborted_in(command, name, &said)],
            RuntimeErrorKind::Eval(_) => vec![
                Line::new(Kind::Error, said),
                self.aborted_in(command, name, "evaluation of meta-command failed"),
            ],
            RuntimeErrorKind::VariableName(_) => vec![
                Line::new(Kind::Error, format!("{name}: {said}")),
                self.aborted_in(command, name, "assignment of meta-command failed"),
            ],
            _ => vec![
                Line::new(Kind::Error, format!("{name}: {said}")),
                self.aborted_in(command, name, "execution of meta-command failed"),
            ],
        };
        self.note(lines, command);
    }

    /// A `\shell` or `\setshell` failed: keep what is told of it.
    pub(super) fn shell_failure(
        &mut self,
        command: usize,
        said: &dyn Display,
        failure: Failure,
    ) -> Failure {
        let kind = &self.set.scripts[self.script].commands[command].kind;
        let name = kind.name();
        // pgbench names the command that the shell was to run.
        let first = match kind {
            CommandKind::Shell { args } | CommandKind::SetShell { args, .. } => args.first(),
            _ => None,
        };
        let run = match first {
            Some(ShellArg::Text(word)) => word.to_string(),
            Some(ShellArg::Var(_, variable)) => format!(":{variable}"),
            None => name.to_owned(),
        };
        let lines = [
            Line::new(Kind::Error, format!("{run}: {said}")),
            self.aborted_in(command, name, "execution of meta-command failed"),
        ];
        self.note(lines, command);
        failure
    }

    /// `\gset` or `\aset` cannot take what the statement gave: keep what is told of it.
    pub(super) fn result_failure(
        &mut self,
        result: u32,
        before: Option<&str>,
        said: &str,
    ) -> Failure {
        let name = if self.captured.every_result {
            "aset"
        } else {
            "gset"
        };
        let command = self.machine.command();
        let text = format!(
            "client {} script {} command {command} query {result}: {said}",
            self.client, self.script,
        );
        let before = before.map(|before| format!("{name}: {before}"));
        let lines = before.into_iter().chain([text]);
        self.note(lines.map(|text| Line::new(Kind::Error, text)), command);
        Failure::script(format!("\\{name}: {said}"))
    }

    /// What is told of a failure.
    pub(super) fn lines(
        &mut self,
        failure: &Failure,
        place: Option<&Place>,
        ends: bool,
    ) -> Vec<Line> {
        if !self.trouble.is_empty() {
            return std::mem::take(&mut self.trouble);
        }
        let (client, script) = (self.client, self.script);
        let flat = place.and_then(|place| place.statement);
        let command = flat.map_or(self.machine.command(), |flat| {
            self.set.locate(flat as usize).1
        });
        let report = place.map_or(failure.message.as_str(), |place| place.report.as_str());
        if !ends {
            let text = format!(
                "client {client} got an error in command {command} (SQL) of script {script}; {report}"
            );
            return vec![Line::new(Kind::Note, text)];
        }
        match failure.class {
            ErrorClass::Server(state) => {
                let result = place.map_or(0, |place| place.result);
                let text = format!(
                    "client {client} script {script} aborted in command {command} query {result}: {report}"
                );
                let mut detail = format!("SQLSTATE {}", String::from_utf8_lossy(&state));
                if let Some(line) = self.place_of(command) {
                    detail = format!("{detail}, {}", line.text);
                }
                if self.unprepared
                    && self.set.mode == QueryMode::Prepared
                    && let Some(flat) = flat
                {
                    let name = &self.set.names[flat as usize];
                    detail = format!("{detail}: the prepared statement \"{name}\" does not exist");
                }
                vec![
                    Line::new(Kind::Error, text),
                    Line::new(Kind::Detail, detail),
                ]
            }
            ErrorClass::Script if failure.message.starts_with("COPY ") => {
                let text = "COPY is not supported in pgbench, aborting";
                vec![Line::new(Kind::Error, text)]
            }
            ErrorClass::Script => {
                let text = format!("client {client} aborted: {}", failure.message);
                vec![Line::new(Kind::Error, text)]
            }
            _ => vec![
                Line::new(Kind::Error, failure.message.clone()),
                self.aborted_in(command, "SQL", "perhaps the backend died while processing"),
            ],
        }
    }
}
