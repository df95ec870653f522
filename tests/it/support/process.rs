//! The service as a process of its own, started as a user starts it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

pub struct Process {
    pub child: Child,
    pub url: String,
    log: Option<std::thread::JoinHandle<String>>,
}

/// The program with a clean environment.
pub fn command(arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_context-recall"));
    command.env_clear().args(arguments).envs(variables.iter().copied());
    command
}

/// Runs the program to its end.
pub fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    command(arguments, variables).output().unwrap()
}

impl Process {
    /// Starts the service on a free port and waits for the line that names it.
    pub fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = command(arguments, variables);
        command.args(["--port", "0", "--log", "json"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut log = String::new();
        let url = loop {
            let mut line = String::new();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the service ended: {log}");
            log.push_str(&line);
            let entry: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(address) = entry["address"].as_str() {
                break format!("http://{address}");
            }
        };
        let log = std::thread::spawn(move || {
            std::io::Read::read_to_string(&mut lines, &mut log).unwrap();
            log
        });
        Self { child, url, log: Some(log) }
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end; gives exit code and log.
    pub fn end(mut self, patience: Duration) -> (Option<i32>, String) {
        let until = std::time::Instant::now() + patience;
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(std::time::Instant::now() < until, "the service did not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        (code, self.log.take().unwrap().join().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
