//! What some tests need beside the toolchain: found, or said aloud to be missing.

use std::io::Write;
use std::process::{Command, Stdio};

/// Notes that a test is skipped for want of `what`; fails when the environment says that nothing may be skipped.
pub fn skip(test: &str, what: &str) {
    assert!(std::env::var_os("REQUIRE_PEERS").is_none(), "{test} needs {what}, and REQUIRE_PEERS is set");
    // Past the capture of the test runner, so that it is seen in a run that passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: needs {what}");
}

/// The first of these command lines that runs to a good end, without the arguments that were only for the trial.
pub fn found(trials: &[(&[&str], &[&str])]) -> Option<Vec<String>> {
    let runs = |(program, trial): &&(&[&str], &[&str])| {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(*trial).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    trials.iter().find(runs).map(|(program, _)| program.iter().map(|&part| part.to_owned()).collect())
}
