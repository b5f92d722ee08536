//! A real Redis: on a port of its own on loopback, with nothing on disk unless it is asked to.

use super::Authority;
use super::program::Program;
use super::upgrade::signal;
use redis::{Connection, FromRedisValue};
use std::process::Command;
use tempfile::TempDir;

/// A running Redis.
pub struct RedisServer {
    pub program: Program,
    /// Of the default user.
    password: Option<&'static str>,
    /// What its certificate is from.
    tls: Option<(Authority, TempDir)>,
}

impl RedisServer {
    pub fn start() -> RedisServer {
        RedisServer::with(&[])
    }

    /// With more of the command line.
    pub fn with(more: &[&str]) -> RedisServer {
        RedisServer {
            program: program(more, |port| vec!["--port".into(), port]),
            password: None,
            tls: None,
        }
    }

    /// One that was started with a password.
    pub fn of(program: Program, password: &'static str) -> RedisServer {
        RedisServer {
            program,
            password: Some(password),
            tls: None,
        }
    }

    /// With a password.
    pub fn with_password(password: &'static str) -> RedisServer {
        let server = RedisServer::with(&["--requirepass", password]);
        RedisServer {
            password: Some(password),
            ..server
        }
    }

    /// With TLS alone; its certificate is for `localhost`.
    pub fn with_tls() -> RedisServer {
        let (authority, files) = (Authority::new(), tempfile::tempdir().expect("a directory"));
        authority.certify(files.path(), "redis", &["localhost"], 2100);
        std::fs::write(files.path().join("ca.pem"), authority.pem()).expect("a file");
        let file = |name: &str| files.path().join(name).display().to_string();
        let program = program(&[], |port| {
            let words =
                ["--port", "0", "--tls-auth-clients", "no", "--tls-port"].map(str::to_owned);
            let files = [
                "--tls-cert-file".into(),
                file("redis.pem"),
                "--tls-key-file".into(),
                file("redis.key"),
            ];
            words
                .into_iter()
                .chain([port])
                .chain(files)
                .chain(["--tls-ca-cert-file".into(), file("ca.pem")])
                .collect()
        });
        RedisServer {
            program,
            password: None,
            tls: Some((authority, files)),
        }
    }

    /// Its URL, as settings have it.
    pub fn url(&self) -> String {
        let port = self.program.address.port();
        match (&self.tls, self.password) {
            (Some(_), _) => format!("rediss://localhost:{port}/0"),
            (None, Some(password)) => format!(
                "redis://:{}@127.0.0.1:{port}/0",
                password.replace(' ', "%20")
            ),
            (None, None) => format!("redis://127.0.0.1:{port}/0"),
        }
    }

    /// The file with the authority of its certificate.
    pub fn ca(&self) -> String {
        let (_, files) = self.tls.as_ref().expect("a server with TLS");
        files.path().join("ca.pem").display().to_string()
    }

    /// A connection of a person.
    pub fn connect(&self) -> Connection {
        redis::Client::open(self.url())
            .and_then(|client| client.get_connection())
            .expect("a connection")
    }

    /// One command.
    pub fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command
            .query(&mut self.connect())
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// It answers nothing, and keeps its connections.
    pub fn pause(&self) {
        signal(self.program.pid(), "STOP");
    }

    pub fn resume(&self) {
        signal(self.program.pid(), "CONT");
    }
}

fn program(more: &[&str], listen: impl Fn(String) -> Vec<String>) -> Program {
    Program::start(|prepared| {
        let mut redis = Command::new("redis-server");
        redis.args(listen(prepared.address.port().to_string()));
        redis.args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            &prepared.root(),
        ]);
        redis.args(more);
        redis
    })
}
