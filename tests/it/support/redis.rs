//! A Redis of the test's own, that can be stopped and started.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::peer;

pub struct Redis {
    port: u16,
    password: Option<&'static str>,
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl Redis {
    /// A running Redis; `None`, and a word about it, where there is none on this machine.
    pub fn start(test: &str, password: Option<&'static str>) -> Option<Self> {
        if peer::found(&[(&["redis-server"], &["--version"])]).is_none() {
            peer::skip(test, "redis-server");
            return None;
        }
        // Nobody else takes a port that was free a moment ago, or almost nobody.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut redis = Self { port, password, folder: tempfile::tempdir().unwrap(), child: None };
        redis.start_again();
        Some(redis)
    }

    /// Starts it again, with what it held when it was stopped.
    pub fn start_again(&mut self) {
        let mut command = Command::new("redis-server");
        command.current_dir(self.folder.path()).args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
        if let Some(password) = self.password {
            command.args(["--requirepass", password]);
        }
        self.child = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(20);
        // A port that is open says nothing yet: it may still be loading.
        let client = redis::Client::open(self.url()).unwrap();
        let answers = || redis::cmd("PING").exec(&mut client.get_connection()?);
        while answers().is_err() {
            assert!(Instant::now() < until, "redis-server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn url(&self) -> String {
        let login = self.password.map(|password| format!(":{password}@")).unwrap_or_default();
        format!("redis://{login}127.0.0.1:{}/0", self.port)
    }

    /// What a command line client would say.
    pub fn say(&self, words: &[&[u8]]) -> redis::Value {
        let client = redis::Client::open(self.url()).unwrap();
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| {
            command.arg(*word);
        });
        command.query(&mut client.get_connection().unwrap()).unwrap()
    }

    /// Every key.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        redis::from_redis_value(self.say(&[b"KEYS", b"*"])).unwrap()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}
