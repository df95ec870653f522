//! What some tests need beside the toolchain: found, or said aloud to be missing.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::project;

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

/// A peer that serves HTTP on this machine, started by one of the scripts in `tests/peers`.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    /// Starts `script` with the folder that holds the peer, a free port and `arguments`, and waits until `ready` is
    /// answered with success.
    pub async fn start(
        script: &str,
        folder: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
        ready: &str,
    ) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = std::fs::File::create(folder.join(format!("server-{port}.log"))).unwrap();
        let mut command = Command::new("bash");
        command.arg(project(script)).arg(folder).arg(port.to_string()).args(arguments).envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut server = Self { child: command.spawn().unwrap(), url: format!("http://127.0.0.1:{port}") };
        server.wait(script, ready).await;
        server
    }

    async fn wait(&mut self, script: &str, ready: &str) {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().unwrap();
        let until = Instant::now() + Duration::from_secs(240);
        loop {
            let answer = client.get(format!("{}{ready}", self.url)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "{script} ended; its server log says why");
            assert!(Instant::now() < until, "{script} is not ready; its server log may say why");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of a peer: as the variable says, else inside `target`.
pub fn folder(variable: &str, name: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| project("target").join(name), PathBuf::from)
}
