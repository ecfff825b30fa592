//! Fetch one build by hand: `cargo run -p loadstone-fetch --example fetch -- 18.6.0 FOLDER [MIRROR]`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [version, destination, rest @ ..] = arguments.as_slice() else {
        return report(
            "usage: fetch VERSION FOLDER [MIRROR]",
            "",
            ExitCode::FAILURE,
        );
    };
    let mirror = rest.first().map(String::as_str);
    match loadstone_fetch::fetch_postgres(version, Path::new(destination), mirror) {
        Ok(folder) => report(&folder.display().to_string(), "", ExitCode::SUCCESS),
        Err(error) => report(&error.to_string(), &error.hint(), ExitCode::FAILURE),
    }
}

#[expect(clippy::print_stderr, reason = "a program for the terminal")]
fn report(message: &str, hint: &str, code: ExitCode) -> ExitCode {
    eprintln!("{message}\n{hint}");
    code
}
