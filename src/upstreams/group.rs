//! [`Group`]: the servers of one origin. It chooses the server of a request, ejects servers whose
//! requests fail, and takes servers down whose checks fail (`server_state` has the states). It
//! reads no clock: time is an argument.

use super::server::{Entrance, Entry, Held, NEVER, Room, Server, Shared, Wanted};
use super::server_state::{Because, PassedState, ServerState};
use super::table::Table;
use super::tally::Tally;
use super::tls::ServerTls;
use crate::locks::lock;
use crate::settings::{HealthSettings, OriginSettings};
use crate::telemetry::ServerPlace;
use crate::time::Timestamp;
use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The servers of one origin.
pub struct Group {
    pub settings: OriginSettings,
    pub entries: Vec<Arc<Entry>>,
    pub shared: Arc<Shared>,
    pub tls: Option<Arc<ServerTls>>,
    table: ArcSwap<Table>,
    turn: AtomicUsize,
    /// Held while the table is made.
    members: Mutex<Members>,
    /// States of servers in the previous process, until the servers have their address here.
    passed: Mutex<Vec<(PassedServer, ServerState)>>,
}

/// A server that gets no requests, for the next process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedServer {
    /// The name of the origin. The next process may have other settings.
    origin: String,
    url: String,
    address: String,
    standing: PassedState,
}

/// Stands for the address of a server with a Unix socket.
const OF_SOCKET: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A change of a server's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It gets no requests for this time, for this reason.
    Ejected(Duration, &'static str),
    /// Checks say that it is down.
    Down(Unwell),
    /// It gets requests again.
    Returned,
}

/// The addresses of each entry.
type Members = Vec<Vec<Arc<Server>>>;

impl Group {
    /// The servers of the origin with the number `origin` in the settings. Servers that are given
    /// as addresses are ready at once, names after [`Group::use_addresses`].
    pub fn new(origin: usize, settings: &OriginSettings, tls: Option<Arc<ServerTls>>) -> Group {
        let shared = Arc::new(Shared {
            trial_due: AtomicU64::new(NEVER),
            room: settings.places.clone().map(Room::new),
        });
        let mut entries = Vec::new();
        for (server, said) in settings.servers.iter().enumerate() {
            entries.push(Arc::new(Entry {
                place: ServerPlace { origin, server },
                address: said.address.clone(),
                url: said.address.url(),
                authority: said.address.authority(),
                weight: said.weight,
                is_backup: said.is_backup,
                timeouts: settings.timeouts,
                tls: tls.clone(),
                certificate_name: settings.certificate_name().map(str::to_owned),
                tally: Tally::default(),
                shared: shared.clone(),
            }));
        }
        let group = Group {
            settings: settings.clone(),
            table: ArcSwap::default(),
            turn: AtomicUsize::new(0),
            members: Mutex::new(entries.iter().map(|_| Vec::new()).collect()),
            passed: Mutex::default(),
            shared,
            tls,
            entries,
        };
        for entry in &group.entries {
            if entry.address.socket.is_some() {
                group.use_addresses(entry, &[OF_SOCKET]);
            } else if let Some(ip) = entry.address.ip() {
                group.use_addresses(entry, &[SocketAddr::new(ip, entry.address.port)]);
            }
        }
        group
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        lock(&self.members)
    }

    /// Uses these addresses for a server of the settings, in place of those before. An address that
    /// stays keeps its state, a new one may get one of the previous process. The same addresses in
    /// another order change nothing.
    pub fn use_addresses(&self, entry: &Arc<Entry>, addresses: &[SocketAddr]) {
        let mut members = self.members();
        let Some(known) = members.get_mut(entry.place.server) else {
            return;
        };
        let mut seen = HashSet::new();
        let wanted: Vec<SocketAddr> = addresses
            .iter()
            .copied()
            .filter(|address| seen.insert(*address))
            .collect();
        if known.len() == wanted.len() && known.iter().all(|server| seen.contains(&server.address))
        {
            // DNS gives the same ones in another order.
            return;
        }
        let mut servers = Vec::new();
        for address in wanted {
            let same = known.iter().find(|server| server.address == address);
            servers.push(match same {
                Some(server) => server.clone(),
                None => Arc::new(Server::new(entry.clone(), address)),
            });
        }
        *known = servers;
        self.make_table(&members);
        drop(members);
        self.take_passed();
    }

    /// The servers that get no requests, for the next process. `now` is in milliseconds since the
    /// start.
    pub fn pass(&self, now: u64) -> Vec<PassedServer> {
        let mut passed = Vec::new();
        for server in self.members().iter().flatten() {
            if let Some(standing) = server.state().pass(now) {
                passed.push(PassedServer {
                    origin: self.name(),
                    url: server.entry.url.clone(),
                    address: server.shown_address(),
                    standing,
                });
            }
        }
        passed
    }

    /// Gives servers of this origin the states that the previous process passed: now, or as soon as
    /// they have their address. `now` is in milliseconds since the start.
    pub fn go_on(&self, passed: &[PassedServer], now: u64) {
        let name = self.name();
        for server in passed.iter().filter(|passed| passed.origin == name) {
            let state = ServerState::passed(server.standing.clone(), now);
            lock(&self.passed).push((server.clone(), state));
        }
        self.take_passed();
    }

    /// Gives the waiting states of the previous process to the servers that have their address by
    /// now. A state that the settings do not allow any more, or an ejection that would leave too
    /// few servers, is dropped; states of servers without their address go on waiting.
    fn take_passed(&self) {
        let mut passed = lock(&self.passed);
        if passed.is_empty() {
            return;
        }
        let members = self.members();
        passed.retain(|(PassedServer { url, address, .. }, standing)| {
            let Some(server) = members
                .iter()
                .flatten()
                .find(|server| server.entry.url == *url && server.shown_address() == *address)
            else {
                return true;
            };
            // The settings may have no `health` or no `ejection` any more.
            let may = if standing.is_down() {
                self.settings.health.is_some()
            } else {
                self.settings.ejection.is_some() && may_eject(&members, server)
            };
            if may {
                server.change(|now| *now = standing.clone());
            }
            false
        });
        self.make_table(&members);
    }

    /// Makes the table of servers to choose from anew, and sets when the next trial is due. Called
    /// after each change of a server. In an origin with a bound, people who wait get the places of
    /// the servers in use.
    fn make_table(&self, members: &Members) {
        let all: Vec<Arc<Server>> = members.iter().flatten().cloned().collect();
        let due = all
            .iter()
            .filter_map(|server| server.state().trial_due())
            .min();
        self.shared
            .trial_due
            .store(due.unwrap_or(NEVER), Ordering::Release);
        let table = Arc::new(Table::new(all));
        self.table.store(table.clone());
        if let Some(room) = &self.shared.room {
            room.open_at(&table.usable);
        }
    }

    /// Its name in metrics: its first host, `*` for every other host, and its first path if it has
    /// one.
    pub fn name(&self) -> String {
        let OriginSettings { hosts, paths, .. } = &self.settings;
        format!(
            "{}{}",
            hosts.first().map_or("*", String::as_str),
            paths.first().map_or("", String::as_str)
        )
    }

    /// The addresses of an entry.
    pub fn servers(&self, entry: &Entry) -> Vec<Arc<Server>> {
        self.members()
            .get(entry.place.server)
            .cloned()
            .unwrap_or_default()
    }

    /// A place at the server whose turn it is, a place in the queue, or a refusal; `None` where no
    /// server has an address. `now` is the time since the start. A request that may be sent twice
    /// may be the trial of an ejected server. Where no such request comes for as long as a first
    /// ejection lasts, any other one is the trial: an origin may get nothing but POST.
    pub fn enter(&self, wanted: &Wanted<'_>, now: impl Fn() -> Duration) -> Option<Entrance> {
        let due = self.shared.trial_due.load(Ordering::Acquire);
        if due != NEVER {
            let wait = match &self.settings.ejection {
                Some(ejection) if !wanted.is_repeatable => milliseconds(ejection.time),
                _ => 0,
            };
            if let Some(latest) = milliseconds(now()).checked_sub(wait)
                && due <= latest
                && let Some(server) = self.begin_trial(|server| {
                    server.state().trial_due().is_some_and(|due| due <= latest)
                })
            {
                return Some(Entrance::Place(Held::enter_on_trial(server)));
            }
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let table = self.table.load();
        let first = table.choose(self.settings.balance, turn, wanted.client)?;
        let Some(room) = &self.shared.room else {
            return Some(Entrance::Place(Held::enter(first.clone())));
        };
        let others = table
            .usable
            .iter()
            .filter(|server| !Arc::ptr_eq(server, first));
        let servers: SmallVec<[&Arc<Server>; 8]> = std::iter::once(first).chain(others).collect();
        Some(room.enter(&servers, wanted, now()))
    }

    /// A place for another attempt, after the server of `before` failed: at another server, else at
    /// an ejected one, which is tried before its time, else at the same one. It is granted even if
    /// all places are taken, because the request has waited already. It takes no turn: a server
    /// that is down would otherwise be the first choice of every request, because the retry of each
    /// uses up the turn of the other server.
    ///
    /// An ejected server is tried because a second server that fails would otherwise take the site
    /// down, although the first one may be back.
    pub fn enter_after(&self, before: &Held) -> Held {
        let failed = &before.server;
        let table = self.table.load();
        if let Some(server) = table.after(failed) {
            return Held::enter_again(server.clone(), before);
        }
        let Some(ejected) = table.ejected(failed) else {
            return Held::enter_again(failed.clone(), before);
        };
        match self.begin_trial(|server| Arc::ptr_eq(server, ejected)) {
            Some(server) => Held::enter_on_trial(server),
            None => Held::enter_again(ejected.clone(), before),
        }
    }

    /// Whether there is another server for a request that this one has failed: one in use, a
    /// backup, or an ejected one.
    pub fn has_another(&self, server: &Arc<Server>) -> bool {
        let table = self.table.load();
        table.after(server).is_some() || table.ejected(server).is_some()
    }

    /// Begins the trial of the first server that `is_meant`, and returns it. `None` if there is
    /// none, or if it is not ejected any more.
    fn begin_trial(&self, is_meant: impl Fn(&Arc<Server>) -> bool) -> Option<Arc<Server>> {
        let members = self.members();
        let server = members
            .iter()
            .flatten()
            .find(|server| is_meant(server))
            .cloned();
        let has_begun = server.filter(|server| server.change(ServerState::begin_trial));
        self.make_table(&members);
        has_begun
    }

    /// Counts a failure of a server. Enough failures in a row eject it, and so does one on trial,
    /// unless too few servers would be left (`may_eject`). A trial before its time just ends: the
    /// server stays ejected for the rest of it. Returns the ejection, if there is one; never
    /// without `ejection` in the settings.
    pub fn failed(
        &self,
        server: &Arc<Server>,
        reason: &'static str,
        elapsed: Duration,
        now: Timestamp,
    ) -> Option<Change> {
        let elapsed = milliseconds(elapsed);
        let failures = server.count_failure();
        let rules = self.settings.ejection.as_ref()?;
        if failures < rules.failures && !server.state().is_on_trial() {
            return None;
        }
        let members = self.members();
        if server.state().is_tried_early(elapsed) {
            server.change(ServerState::break_off_trial);
            self.make_table(&members);
            return None;
        }
        let may = if server.is_up() {
            may_eject(&members, server)
        } else {
            server.state().is_on_trial()
        };
        if !may {
            return None;
        }
        let because = Because {
            since: now,
            reason: reason.into(),
            status: None,
        };
        let time = server.change(|state| state.eject(rules, because, elapsed));
        self.make_table(&members);
        Some(Change::Ejected(time, reason))
    }

    /// Whether an answer with this status counts as a failure: it is 400 or higher, and one of
    /// `ejection.statuses`.
    pub fn is_failure(&self, status: u16) -> bool {
        let mut statuses = self
            .settings
            .ejection
            .iter()
            .flat_map(|ejection| &ejection.statuses);
        status >= 400 && statuses.any(|range| range.contains(&status))
    }

    /// Counts an answer of a server at `now`, the time since the start. A server on trial is up
    /// again: that change is returned.
    pub fn answered(&self, server: &Arc<Server>, now: Duration) -> Option<Change> {
        let now = milliseconds(now);
        if !server.record_answer(now) {
            return None;
        }
        let members = self.members();
        let has_come_back = server.change(|state| state.come_back(now));
        self.make_table(&members);
        has_come_back.then_some(Change::Returned)
    }

    /// Counts the result of a check. Returns the change of the server's state, if the settings ask
    /// for one after so many equal results in a row: down after failures, up again after successes.
    pub fn checked(
        &self,
        server: &Arc<Server>,
        rules: &HealthSettings,
        result: Result<(), Unwell>,
        elapsed: Duration,
        now: Timestamp,
    ) -> Option<Change> {
        let (count, is_down) = {
            let mut state = server.state();
            (state.count_check(result.is_ok()), state.is_down())
        };
        let change = match result {
            Ok(()) if is_down && count >= rules.healthy_after => Change::Returned,
            Err(unwell) if !is_down && count >= rules.unhealthy_after => Change::Down(unwell),
            _ => return None,
        };
        let members = self.members();
        server.change(|state| match result {
            Ok(()) => state.go_up(milliseconds(elapsed)),
            Err(Unwell { reason, status }) => state.go_down(Because {
                since: now,
                reason: reason.into(),
                status,
            }),
        });
        self.make_table(&members);
        Some(change)
    }

    /// The Host of a check: that of `health`, else the one that the origin wants, else the first
    /// host of the origin that is no pattern, else that of the server.
    pub fn checked_host(&self, entry: &Entry) -> String {
        let OriginSettings {
            health,
            host,
            hosts,
            ..
        } = &self.settings;
        let of_health = health.as_ref().and_then(|health| health.host.as_ref());
        let host = of_health.or(host.as_ref());
        host.or_else(|| hosts.iter().find(|host| !host.starts_with('*')))
            .unwrap_or(&entry.authority)
            .clone()
    }
}

/// Why a check failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwell {
    /// A fixed word.
    pub reason: &'static str,
    /// The status of the answer, if that is the reason.
    pub status: Option<u16>,
}

/// Whether a server may be ejected: another one has to be up, and at most half of all may be out
/// then, or a backup has to be up.
fn may_eject(members: &Members, server: &Arc<Server>) -> bool {
    let all: Vec<&Arc<Server>> = members.iter().flatten().collect();
    let ejected = all.iter().filter(|server| !server.is_up()).count();
    let is_within_half = (ejected + 1) * 2 <= all.len();
    all.iter()
        .filter(|other| !Arc::ptr_eq(other, server) && other.is_up())
        .any(|other| is_within_half || other.entry.is_backup)
}

/// Converts a time to milliseconds, the unit of [`ServerState`].
pub fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}
