//! [`ServerGroup`]: the servers of one origin, which serve the same hosts and paths behind
//! crawlgate. It chooses a server for each request, ejects servers whose requests fail, and marks
//! servers as down if their health checks fail (`server_state` has the states). It reads no clock:
//! time is an argument.

use super::outcomes::ServerOutcomes;
use super::server::{
    Admission, AdmissionQueue, ConfiguredServer, InFlightGuard, NO_TRIAL, OriginState,
    RoutingFacts, Server,
};
use super::server_state::{ExclusionCause, ServerState};
use super::table::ServerTable;
use super::tls::ServerTls;
use crate::locks::lock;
use crate::settings::{HealthSettings, OriginSettings};
use crate::telemetry::ServerId;
use crate::time::Timestamp;
use ServerChange::*;
use arc_swap::ArcSwap;
use smallvec::SmallVec;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The servers of one origin.
pub struct ServerGroup {
    pub settings: OriginSettings,
    pub entries: Vec<Arc<ConfiguredServer>>,
    pub origin_state: Arc<OriginState>,
    pub tls: Option<Arc<ServerTls>>,
    table: ArcSwap<ServerTable>,
    turn: AtomicUsize,
    /// The addresses of each entry. Locked while the table is rebuilt.
    members: Mutex<EntryServers>,
}

/// Stands for the address of a server with a Unix socket.
const SOCKET_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A change of a server's state.
#[derive(Clone)]
pub enum ServerChange {
    /// It gets no requests for this time, for this reason.
    Ejected(Duration, &'static str),
    /// Checks say that it is down.
    Down(ExclusionCause),
    /// It gets requests again.
    Returned,
}

/// The addresses of each entry.
type EntryServers = Vec<Vec<Arc<Server>>>;

impl ServerGroup {
    /// The servers of the origin with the number `origin` in the settings. Servers that are given
    /// as addresses are ready at once, names after [`ServerGroup::set_addresses`].
    pub fn new(
        origin: usize,
        settings: &OriginSettings,
        tls: Option<Arc<ServerTls>>,
    ) -> ServerGroup {
        let origin_state = Arc::new(OriginState {
            trial_due: AtomicU64::new(NO_TRIAL),
            queue: settings.capacity.clone().map(AdmissionQueue::new),
        });
        let mut entries = Vec::new();
        for (server, server_settings) in settings.servers.iter().enumerate() {
            entries.push(Arc::new(ConfiguredServer {
                index: ServerId { origin, server },
                address: server_settings.address.clone(),
                url: server_settings.address.url(),
                authority: server_settings.address.authority(),
                weight: server_settings.weight,
                is_backup: server_settings.is_backup,
                timeouts: settings.timeouts,
                tls: tls.clone(),
                certificate_name: settings.certificate_name().map(str::to_owned),
                outcomes: ServerOutcomes::default(),
                origin_state: origin_state.clone(),
            }));
        }
        let group = ServerGroup {
            settings: settings.clone(),
            table: ArcSwap::default(),
            turn: AtomicUsize::new(0),
            members: Mutex::new(entries.iter().map(|_| Vec::new()).collect()),
            origin_state,
            tls,
            entries,
        };
        for entry in &group.entries {
            if entry.address.socket.is_some() {
                group.set_addresses(entry, &[SOCKET_ADDRESS]);
            } else if let Some(ip) = entry.address.ip() {
                group.set_addresses(entry, &[SocketAddr::new(ip, entry.address.port)]);
            }
        }
        group
    }

    fn members(&self) -> MutexGuard<'_, EntryServers> {
        lock(&self.members)
    }

    /// Replaces the addresses of a server of the settings. An address that stays keeps its state.
    /// The order does not matter.
    pub fn set_addresses(&self, entry: &Arc<ConfiguredServer>, addresses: &[SocketAddr]) {
        let mut members = self.members();
        let Some(known) = members.get_mut(entry.index.server) else {
            return;
        };
        // DNS returns the same addresses in another order.
        let mut wanted = addresses.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let addresses = known.iter().map(|server| server.address);
        if addresses.eq(wanted.iter().copied()) {
            return;
        }
        let mut servers = Vec::new();
        for address in wanted {
            let same = known.iter().find(|server| server.address == address);
            servers.push(match same {
                Some(server) => server.clone(),
                None => {
                    let server = Server::new(entry.clone(), address);
                    // The first check decides alone only while nothing is known of the entry.
                    if !known.is_empty() {
                        server.update_state(|state| state.count_check(true));
                    }
                    Arc::new(server)
                }
            });
        }
        *known = servers;
        self.rebuild_table(&members);
    }

    /// Rebuilds the table of servers to choose from, and sets when the next trial is due. Called
    /// after each change of a server. If the origin limits open requests, waiting people get free
    /// places.
    fn rebuild_table(&self, members: &EntryServers) {
        let all: Vec<Arc<Server>> = members.iter().flatten().cloned().collect();
        let due = all
            .iter()
            .filter_map(|server| server.state().trial_due())
            .min();
        self.origin_state
            .trial_due
            .store(due.unwrap_or(NO_TRIAL), Release);
        let table = Arc::new(ServerTable::new(all));
        self.table.store(table.clone());
        if let Some(queue) = &self.origin_state.queue {
            queue.set_servers(&table.usable);
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
    pub fn servers_of(&self, entry: &ConfiguredServer) -> Vec<Arc<Server>> {
        self.members()
            .get(entry.index.server)
            .cloned()
            .unwrap_or_default()
    }

    /// Chooses a server and admits the request there, puts it into the queue, or refuses it; `None`
    /// if no server has an address. `now` is the time since the start. A repeatable request may be
    /// the trial of an ejected server. If none comes for as long as a first ejection lasts, any
    /// other request is the trial: an origin may get nothing but POST.
    pub fn admit(&self, facts: &RoutingFacts<'_>, now: impl Fn() -> Duration) -> Option<Admission> {
        let due = self.origin_state.trial_due.load(Acquire);
        if due != NO_TRIAL {
            let wait = match &self.settings.ejection {
                Some(ejection) if !facts.is_repeatable => as_millis(ejection.initial_time),
                _ => 0,
            };
            if let Some(latest) = as_millis(now()).checked_sub(wait)
                && due <= latest
                && let Some(server) = self.begin_trial(|server| {
                    server.state().trial_due().is_some_and(|due| due <= latest)
                })
            {
                return Some(Admission::Admitted(InFlightGuard::for_trial(server)));
            }
        }
        let turn = self.turn.fetch_add(1, Relaxed);
        let table = self.table.load();
        let first = table.choose(self.settings.balance, turn, facts.client)?;
        let Some(queue) = &self.origin_state.queue else {
            return Some(Admission::Admitted(InFlightGuard::new(first.clone())));
        };
        let other_servers = table
            .usable
            .iter()
            .filter(|server| !Arc::ptr_eq(server, first));
        let servers: SmallVec<[&Arc<Server>; 8]> =
            std::iter::once(first).chain(other_servers).collect();
        Some(queue.admit(&servers, facts, now()))
    }

    /// Admits another attempt, after the server of `before` failed: at another server, else at an
    /// ejected one as an early trial, else at the same one. There is no limit, because the request
    /// has waited already. It takes no turn: otherwise each retry would use up the turn of the other
    /// server, and a server that is down would be the first choice of every request.
    ///
    /// An ejected server is tried because a second server that fails would otherwise take the site
    /// down, although the first one may be back.
    pub fn admit_retry(&self, before: &InFlightGuard) -> InFlightGuard {
        let failed = &before.server;
        let table = self.table.load();
        if let Some(server) = table.next_after(failed) {
            return InFlightGuard::for_retry(server.clone(), before);
        }
        let Some(ejected) = table.excluded_other(failed) else {
            return InFlightGuard::for_retry(failed.clone(), before);
        };
        match self.begin_trial(|server| Arc::ptr_eq(server, ejected)) {
            Some(server) => InFlightGuard::for_trial(server),
            None => InFlightGuard::for_retry(ejected.clone(), before),
        }
    }

    /// Whether there is another server for a request that failed at this one: one in use, a backup,
    /// or an ejected one.
    pub fn has_other_server(&self, server: &Arc<Server>) -> bool {
        let table = self.table.load();
        table.next_after(server).is_some() || table.excluded_other(server).is_some()
    }

    /// Begins the trial of the first server that `is_selected`, and returns it; `None` if there is
    /// none, or if it is no longer ejected.
    fn begin_trial(&self, is_selected: impl Fn(&Arc<Server>) -> bool) -> Option<Arc<Server>> {
        let members = self.members();
        let server = members
            .iter()
            .flatten()
            .find(|server| is_selected(server))
            .cloned();
        let has_begun = server.filter(|server| server.update_state(ServerState::begin_trial));
        self.rebuild_table(&members);
        has_begun
    }

    /// Counts a failure of a server, and returns its ejection, if that follows. Several failures in
    /// a row eject a server, unless too few servers would be left; a failed trial ejects it again. A
    /// failed early trial only ends: the server stays ejected for the rest of its time. Ejects
    /// nothing without `ejection` in the settings.
    pub fn record_failure(
        &self,
        server: &Arc<Server>,
        reason: &'static str,
        elapsed: Duration,
        now: Timestamp,
    ) -> Option<ServerChange> {
        let elapsed = as_millis(elapsed);
        let failures = server.count_failure();
        let rules = self.settings.ejection.as_ref()?;
        if failures < rules.failures && !server.state().is_on_trial() {
            return None;
        }
        let members = self.members();
        if server.state().is_early_trial(elapsed) {
            server.update_state(ServerState::cancel_trial);
            self.rebuild_table(&members);
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
        let cause = ExclusionCause {
            since: now,
            reason,
            status: None,
        };
        let time = server.update_state(|state| state.eject(rules, cause, elapsed));
        self.rebuild_table(&members);
        Some(Ejected(time, reason))
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
    /// again; then the change is returned.
    pub fn record_answer(&self, server: &Arc<Server>, now: Duration) -> Option<ServerChange> {
        let now = as_millis(now);
        if !server.record_answer(now) {
            return None;
        }
        self.update_server(server, |state| state.finish_trial(now))
            .then_some(Returned)
    }

    /// Counts the result of a check, and returns the change of the server's state, if that follows:
    /// down after several failures in a row, up again after several successes.
    pub fn record_check(
        &self,
        server: &Arc<Server>,
        rules: &HealthSettings,
        result: Result<(), ExclusionCause>,
        elapsed: Duration,
    ) -> Option<ServerChange> {
        let (count, is_down) = {
            let mut state = server.state();
            (state.count_check(result.is_ok()), state.is_down())
        };
        let change = match result {
            Ok(()) if is_down && count >= rules.healthy_after => Returned,
            Err(cause) if !is_down && count >= rules.unhealthy_after => Down(cause),
            _ => return None,
        };
        self.update_server(server, |state| match result {
            Ok(()) => state.mark_up(as_millis(elapsed)),
            Err(cause) => state.mark_down(cause),
        });
        Some(change)
    }

    /// Updates the state of a server and rebuilds the table.
    fn update_server<T>(&self, server: &Server, update: impl FnOnce(&mut ServerState) -> T) -> T {
        let members = self.members();
        let result = server.update_state(update);
        self.rebuild_table(&members);
        result
    }

    /// The Host of a check: that of `health`, else the one that the origin wants, else the first
    /// host of the origin that is no pattern, else that of the server.
    pub fn health_check_host(&self, entry: &ConfiguredServer) -> String {
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

/// Whether a server may be ejected: another server must be up, and at most half of all may be
/// excluded then, or a backup must be up.
fn may_eject(members: &EntryServers, server: &Arc<Server>) -> bool {
    let all: Vec<&Arc<Server>> = members.iter().flatten().collect();
    let ejected = all.iter().filter(|server| !server.is_up()).count();
    let is_within_half = (ejected + 1) * 2 <= all.len();
    all.iter()
        .filter(|other| !Arc::ptr_eq(other, server) && other.is_up())
        .any(|other| is_within_half || other.entry.is_backup)
}

/// Converts a time to milliseconds, the unit of [`ServerState`].
pub fn as_millis(time: Duration) -> u64 {
    time.as_millis() as u64
}
