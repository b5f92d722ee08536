//! [`Attempts`]: the servers that one request is sent to, one after the other. Every door that forwards keeps one for each
//! request. Must not know how a request is sent.

use super::health::FailedRequest;
use super::{Choice, NoPeer, Origins};
use crate::telemetry::ServerPlace;
use std::time::{Duration, Instant};

/// Servers tried for a request.
const MOST: u8 = 2;

/// What was tried for one request.
#[derive(Debug, Default)]
pub struct Attempts {
    choice: Option<Choice>,
    count: u8,
    /// Whether it was counted that the last server did not answer.
    failure_counted: bool,
    has_no_origin: bool,
    began: Option<Instant>,
}

impl Attempts {
    /// The server to try next.
    ///
    /// # Errors
    /// There is none.
    pub fn next(&mut self, origins: &Origins, host: &[u8]) -> Result<Choice, NoPeer> {
        self.began.get_or_insert_with(Instant::now);
        self.count = self.count.saturating_add(1);
        let chosen = match self.choice {
            Some(failed) => origins.choose_after(failed),
            None => origins.choose(host),
        };
        match chosen {
            Ok(choice) => {
                self.failure_counted &= self.choice.is_some_and(|before| before.is_same_server(choice));
                self.choice = Some(choice);
            }
            Err(NoPeer::NoAddress(choice)) => self.choice = Some(choice),
            Err(NoPeer::NoOrigin) => self.has_no_origin = true,
        }
        chosen
    }

    /// Whether another server may be tried.
    pub fn may_go_on(&self) -> bool {
        self.count < MOST
    }

    /// The server that was last tried.
    pub fn choice(&self) -> Option<Choice> {
        self.choice
    }

    /// The place of that server in the settings.
    pub fn place(&self) -> Option<ServerPlace> {
        self.choice.map(Choice::place)
    }

    /// Whether no origin of the settings is for the host.
    pub fn has_no_origin(&self) -> bool {
        self.has_no_origin
    }

    /// The server did not accept a connection.
    pub fn connect_failed(&self, origins: &Origins) {
        if let Some(choice) = self.choice {
            origins.connect_failed(choice);
        }
    }

    /// Counts and logs, once for each server, that it did not answer the request.
    pub fn failed(&mut self, origins: &Origins, request: &FailedRequest<'_>) {
        if let Some(choice) = self.choice.filter(|_| !self.failure_counted) {
            self.failure_counted = true;
            origins.failed(choice, request);
        }
    }

    /// Counts the answer of the server. Gives the server, and how long the request took until then.
    pub fn answered(&self, origins: &Origins, status: u16, lived: Duration) -> Option<(ServerPlace, Duration)> {
        let choice = self.choice?;
        origins.answered(choice, status, lived);
        Some((choice.place(), self.began?.elapsed()))
    }
}
