//! [`SimulatedServer`]: a stand-in for the Redis server in tests of the exchange of facts between
//! crawlgate instances (such as which crawler fetched which robots.txt). It is in memory. A test
//! can make it unreachable, let it lose answers, flush it, restore it from a backup, or let it fail
//! over to a replica.

use super::TestRandom;
use crate::exchange::fact::MergedFacts;
use crate::exchange::{
    ExchangeStore, LogEntry, LogPosition, LogReadResult, Member, SharedFact, StoreBatch,
    StoreContents, StoreError, StoreIdentity,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What stands in the store.
#[derive(Clone, Default)]
struct ServerContent {
    epoch: Option<String>,
    served: MergedFacts,
    facts: BTreeMap<String, (i64, String)>,
    members: BTreeMap<String, Member>,
    log: Vec<(LogPosition, LogEntry)>,
    last: LogPosition,
}

pub struct ServerState {
    content: ServerContent,
    run: u64,
    pub milliseconds: i64,
    pub is_away: bool,
    /// One in so many writes is applied and not answered; none at 0.
    pub loses_answers: i64,
    /// What a replica has, and what a backup has.
    replica: ServerContent,
    backup: ServerContent,
    dice: TestRandom,
    longest_log: usize,
}

/// The store itself, as the world sees it.
#[derive(Clone)]
pub struct SimulatedServer(pub Arc<Mutex<ServerState>>);

impl SimulatedServer {
    pub fn new(seed: u64) -> SimulatedServer {
        let inner = ServerState {
            content: ServerContent::default(),
            run: 1,
            milliseconds: 0,
            is_away: false,
            loses_answers: 0,
            replica: ServerContent::default(),
            backup: ServerContent::default(),
            dice: TestRandom(seed),
            longest_log: 200,
        };
        SimulatedServer(Arc::new(Mutex::new(inner)))
    }

    pub fn with_state<T>(&self, change: impl FnOnce(&mut ServerState) -> T) -> T {
        change(&mut self.0.lock().expect("one thread"))
    }
}

impl ServerState {
    pub fn replicate(&mut self) {
        self.replica = self.content.clone();
    }

    pub fn back_up(&mut self) {
        self.backup = self.content.clone();
    }

    pub fn flush(&mut self) {
        // Ids of a stream begin anew; those of the next entries are by the clock.
        self.content = ServerContent::default();
    }

    pub fn restart_from_backup(&mut self) {
        self.content = self.backup.clone();
        self.run += 1;
    }

    pub fn restart(&mut self) {
        self.run += 1;
    }

    pub fn fail_over(&mut self) {
        self.content = self.replica.clone();
        self.run += 1;
    }

    fn identity(&mut self, founding: Option<&str>) -> StoreIdentity {
        if let Some(founding) = founding {
            let founding = format!("{founding}@{}", self.milliseconds);
            self.content.epoch.get_or_insert(founding);
        }
        StoreIdentity {
            run_id: self.run.to_string(),
            epoch: self.content.epoch.clone().unwrap_or_default(),
        }
    }

    fn add_fact(&mut self, fact: &SharedFact, replaces: bool) {
        let ServerContent { served, facts, .. } = &mut self.content;
        if fact.value.is_empty() {
            served.add(fact.clone());
        } else if replaces {
            facts.insert(fact.key.clone(), (fact.at, fact.value.clone()));
        } else {
            facts
                .entry(fact.key.clone())
                .or_insert((fact.at, fact.value.clone()));
        }
    }

    fn write(&mut self, batch: &StoreBatch) -> Option<LogPosition> {
        batch
            .facts
            .iter()
            .for_each(|fact| self.add_fact(fact, true));
        batch
            .if_missing
            .iter()
            .for_each(|fact| self.add_fact(fact, false));
        for key in &batch.forget {
            self.content.facts.remove(key);
        }
        if let Some(before) = batch.served_before {
            let served = std::mem::take(&mut self.content.served);
            for fact in served.iter().filter(|fact| fact.at >= before) {
                self.content.served.add(fact.clone());
            }
        }
        for id in &batch.forget_members {
            self.content.members.remove(id);
        }
        for member in &batch.members_if_missing {
            self.content
                .members
                .entry(member.id.clone())
                .or_insert_with(|| member.clone());
        }
        let entry = batch.entry.as_ref()?;
        self.content
            .members
            .insert(entry.member.id.clone(), entry.member.clone());
        let now = u64::try_from(self.milliseconds).expect("after 1970");
        let last = self.content.last;
        let position = if now > last.milliseconds {
            LogPosition {
                milliseconds: now,
                sequence: 0,
            }
        } else {
            LogPosition {
                sequence: last.sequence + 1,
                ..last
            }
        };
        self.content.last = position;
        self.content.log.push((position, entry.clone()));
        if self.content.log.len() > self.longest_log {
            self.content.log.drain(..self.longest_log / 4);
        }
        Some(position)
    }
}

/// The store as an instance reaches it, which may be cut off from it.
pub struct SimulatedStore<'a>(pub &'a SimulatedServer, pub bool);

impl SimulatedStore<'_> {
    fn with_server<T>(
        &self,
        ask: impl FnOnce(&mut ServerState) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut inner = self.0.0.lock().expect("one thread");
        if inner.is_away || self.1 {
            return Err(StoreError::Away("connection refused".into()));
        }
        ask(&mut inner)
    }
}

impl ExchangeStore for SimulatedStore<'_> {
    fn identity(&mut self, founding: &str) -> Result<(StoreIdentity, i64), StoreError> {
        self.with_server(|inner| {
            let identity = inner.identity(Some(founding));
            Ok((identity, inner.milliseconds))
        })
    }

    fn write(
        &mut self,
        expected: &StoreIdentity,
        batch: &StoreBatch,
    ) -> Result<Option<LogPosition>, StoreError> {
        self.with_server(|inner| {
            if inner.identity(None) != *expected {
                return Ok(None);
            }
            let position = inner.write(batch).unwrap_or_default();
            let many = inner.loses_answers;
            if many > 0 && inner.dice.one_in(many) {
                return Err(StoreError::Away("timed out".into()));
            }
            Ok(Some(position))
        })
    }

    fn read(&mut self, after: LogPosition) -> Result<LogReadResult, StoreError> {
        self.with_server(|inner| {
            let identity = inner.identity(None);
            let log = &inner.content.log;
            let place = log
                .binary_search_by_key(&after, |(position, _)| *position)
                .ok();
            let entries = place.map(|place| log[place + 1..].iter().take(1_000).cloned().collect());
            Ok(LogReadResult {
                identity,
                last: inner.content.last,
                entries,
            })
        })
    }

    fn read_sets(&mut self) -> Result<StoreContents, StoreError> {
        self.with_server(|inner| {
            let ServerContent {
                served,
                facts,
                members,
                ..
            } = &inner.content;
            let valued = facts.iter().filter(|(key, _)| !key.starts_with('v'));
            let valued = valued.map(|(key, (at, value))| SharedFact {
                key: key.clone(),
                at: *at,
                value: value.clone(),
            });
            Ok(StoreContents {
                facts: served.iter().cloned().chain(valued).collect(),
                members: members.values().cloned().collect(),
            })
        })
    }

    fn read_members(&mut self) -> Result<Vec<Member>, StoreError> {
        self.with_server(|inner| Ok(inner.content.members.values().cloned().collect()))
    }

    fn fetch(&mut self, keys: &[String]) -> Result<Vec<SharedFact>, StoreError> {
        self.with_server(|inner| {
            let found = keys.iter().filter_map(|key| {
                let (at, value) = inner.content.facts.get(key)?;
                Some(SharedFact {
                    key: key.clone(),
                    at: *at,
                    value: value.clone(),
                })
            });
            Ok(found.collect())
        })
    }
}
