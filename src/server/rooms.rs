//! [`Rooms`]: the parts of the server that answer requests, apart from its listeners.
//! [`Rooms::open`] opens them in this order: the clock; the state store; the sites, the ledger of
//! what crawlers were served, and the judge of requests; the exchange of facts with other
//! instances; and the servers of the origins.

use super::ServerError;
use super::authority::AuthorityParts;
use super::instances::StorePeers;
use super::origin_robots::{self, OriginRobots};
use super::sockets::names;
use super::stop::flush;
use crate::acme::Acme;
use crate::admin::{Operations, Sources};
use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::evidence::Evidence;
use crate::facts::StoredFacts;
use crate::identity::refresh::{Refresher, UpdateHandle};
use crate::identity::{Proofs, Uses, reverse_dns};
use crate::judge::{Logs, PeerConfirmation};
use crate::origin::robots::StoredCopies;
use crate::requests::{Challenges, RequestSettings, Requests};
use crate::scheduler::Scheduler;
use crate::settings::{IdentitySettings, ListSettings, ListenAddress, LogDestination, Settings};
use crate::sites::{DefaultSite, KnownOrigins, SiteOptions};
use crate::state::{Remembered, StateError, StateStore};
use crate::telemetry::{AccessLog, Events};
use crate::time::Timestamp;
use crate::upgrade::Memory;
use crate::upkeep::{Instance, JudgeParts, Upkeep};
use crate::upstreams::Upstreams;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

/// The opened rooms. The instance has the sites, the ledger, the clock and the logs.
pub struct Rooms {
    pub settings: Settings,
    pub authority: AuthorityParts,
    pub instance: Arc<Instance>,
    pub requests: Arc<Requests>,
    pub upstreams: Arc<Upstreams>,
    pub operations: Arc<Operations>,
    pub store: StateStore,
    /// The orders of certificates, if the settings have `acme`. They do not run yet.
    pub acme: Option<Arc<Acme>>,
    /// The other instances, where there is a store to meet them in.
    pub peers: Option<Arc<StorePeers>>,
    /// The log that third parties can check.
    pub evidence: Evidence,
}

impl Rooms {
    /// Opens the state directory, loads the policies, and begins this run in the state store. What
    /// fetches the origins' own robots.txt is returned beside the rooms: it does not run yet. If
    /// another process hands over to this one, `lock` is that of the state directory, and `memory`
    /// what else that process remembers.
    pub fn open(
        settings: Settings,
        authority: AuthorityParts,
        scheduler: &Scheduler,
        lock: Option<OwnedFd>,
        memory: Memory,
    ) -> Result<(Arc<Rooms>, OriginRobots), ServerError> {
        let clock = clock(&settings)?.going_on(Duration::from_millis(memory.lived));
        let (store, remembered) = open_state(&settings, lock, clock.clone())?;
        let now = clock.moment().now;
        let copies = stored_copies(&remembered, now);
        let sites = policies(&settings, &copies);
        let (proofs, queue) = proofs(&settings.identity, &remembered.facts, &store);
        let confirmation = settings.store.as_ref().map(|_| Arc::default());
        let mut logs = logs(&settings, confirmation.clone())?;
        let evidence = evidence(&settings)?;
        logs.sinks.extend(evidence.sink(&proofs));
        let parts = JudgeParts {
            clock,
            state: (&store, &remembered),
            sites,
            new_hosts: settings.new_hosts.clone(),
            proofs,
            logs,
            passed: memory.behaviours,
        };
        let instance = parts.open()?;
        evidence.follow(&instance.sites, &instance.metrics);
        let peers = StorePeers::join(
            &settings,
            &instance,
            &store,
            &remembered,
            confirmation,
            scheduler,
        )?;
        let sites = instance.sites.clone();
        let robots = OriginRobots::new(sites, &settings.origins, copies, store.clone(), now);
        let lists = start_proofs(&settings.identity, queue, &instance, scheduler)?;
        let upstreams = Upstreams::new(
            &settings.origins,
            &instance.metrics,
            instance.events.clone(),
            instance.clock.clone(),
        )?;
        upstreams.go_on(&memory.servers);
        // An authority may ask because of the process before.
        authority.answer_passed(memory.questions);
        let upstreams = Arc::new(upstreams);
        let requests = requests(&settings, &instance, &authority);
        let acme = authority.open(&settings, &instance);
        let sources = Sources {
            lists,
            certificates: Some(authority.source(acme.clone())),
            instances: peers.as_ref().map(|peers| peers.shown(&instance.metrics)),
        };
        let operations = Operations::new(
            Upkeep::new(instance.clone(), store.clone()),
            requests.clone(),
            upstreams.clone(),
            sources,
        );
        let rooms = Rooms {
            settings,
            authority,
            operations,
            instance,
            requests,
            upstreams,
            store,
            acme,
            peers,
            evidence,
        };
        Ok((Arc::new(rooms), robots))
    }

    /// Tells other instances what was served, and writes the end of this run to the state store.
    /// The counts are written last, unless the store of the instances is away. Nothing may be
    /// served any more.
    pub fn close(&self) {
        if let Some(peers) = &self.peers {
            peers.exchange.close();
            // The records that waited for other instances came into the logs only now.
            flush(&self.instance);
        }
        self.evidence.close();
        if let Err(error) = self.store.close() {
            tracing::warn!("{error}; the next start will treat this run as crashed");
        }
        if let Some(peers) = &self.peers
            && peers.exchange.status().away.is_none()
        {
            peers.write_counts();
        }
    }

    /// Looks at the files of certificates and of origins' TLS again, and takes those that changed.
    /// Sets the metric of files that were refused.
    pub fn renew_files(&self) {
        let Instance { clock, metrics, .. } = &*self.instance;
        let refused = self
            .authority
            .certificates
            .renew(clock.moment().now, metrics)
            + self.upstreams.renew_tls_files();
        metrics.edge.refused_renewals.set(refused as i64);
    }
}

/// The copies of the origins' robots.txt that the last run left.
pub fn stored_copies(remembered: &Remembered, now: Timestamp) -> StoredCopies {
    StoredCopies::read(&remembered.facts.origin_copies, now)
}

/// The options of the sites, by the settings and the stored copies.
pub fn policies(settings: &Settings, copies: &StoredCopies) -> SiteOptions {
    SiteOptions {
        policies: settings.policies.clone(),
        strict: settings.strict,
        may_be_missing: settings.policies_may_be_missing,
        origins: KnownOrigins {
            default_sites: DefaultSite::of(&settings.origins),
            ..origin_robots::known(copies, &settings.origins)
        },
        published_proof: settings.identity.proves(),
    }
}

/// The sequence of requests that come to the listeners of the proxy.
fn requests(settings: &Settings, instance: &Instance, authority: &AuthorityParts) -> Arc<Requests> {
    let Instance {
        judge,
        recorder,
        clock,
        ..
    } = instance;
    let settings = RequestSettings {
        trusted_proxies: settings.trusted_proxies.clone(),
        client_address: settings.client_address.clone(),
        challenges: Challenges {
            webroot: settings.acme_webroot.clone(),
            own: authority.own_files(),
        },
        is_encrypted: authority.is_encrypted(),
        limits: settings.limits,
        is_for_proxies: false,
    };
    Requests::new(judge.clone(), recorder.clone(), clock.clone(), settings)
}

/// The machine's clock, or one that a file of the settings shifts. Fails if the settings name such
/// a file, or other ports for `acme` than an authority uses, and a listener is not on loopback.
fn clock(settings: &Settings) -> Result<Clock, ServerError> {
    if settings.clock.is_none() && settings.acme_ports.is_none() {
        return Ok(Clock::default());
    }
    let public = names(settings).find_map(|name| match name {
        ListenAddress::Tcp(address) if !address.ip().is_loopback() => Some(address),
        _ => None,
    });
    match public {
        Some(address) => Err(ServerError::ClockOnPublicAddress { address }),
        None => Ok(settings
            .clock
            .as_deref()
            .map(Clock::following)
            .transpose()?
            .unwrap_or_default()),
    }
}

/// Opens the access log and the event log. Fails if one of them cannot be opened. `peers` are to
/// confirm a violation before it is recorded.
fn logs(settings: &Settings, peers: Option<Arc<PeerConfirmation>>) -> Result<Logs, ServerError> {
    let access = &settings.logs.access;
    let cannot_open = match access {
        LogDestination::File(path) => format!("cannot open the access log {}", path.display()),
        LogDestination::Off | LogDestination::Stdout => "cannot open the access log".to_owned(),
    };
    Ok(Logs {
        access: AccessLog::open(access, settings.logs.access_format, settings.logs.addresses)
            .map_err(ServerError::io(cannot_open))?,
        events: Events::open(
            &settings.logs.events,
            settings.logs.addresses,
            settings.history_addresses,
        )
        .map_err(ServerError::io("cannot open the event log"))?,
        sinks: Vec::new(),
        peers,
    })
}

/// Opens the state directory, or takes it over with its lock from the process before.
fn open_state(
    settings: &Settings,
    lock: Option<OwnedFd>,
    clock: Clock,
) -> Result<(StateStore, Remembered), StateError> {
    let moment = Arc::new(move || clock.moment());
    match (&settings.state, lock) {
        (Some(directory), Some(lock)) => StateStore::take_over(directory, lock, moment),
        (directory, _) => StateStore::open(directory.as_deref(), moment),
    }
}

/// Opens the log that third parties can check; it is off without `evidence` in the settings. If
/// opening fails, the status has a problem, and requests are served all the same. Without a state
/// directory it is an error.
fn evidence(settings: &Settings) -> Result<Evidence, ServerError> {
    let Some(said) = &settings.evidence else {
        return Ok(Evidence::off());
    };
    let directory = settings
        .state
        .as_deref()
        .ok_or(ServerError::WithoutState("evidence"))?;
    Ok(Evidence::open(directory, said, settings.evidence_addresses))
}

/// Makes the proofs of crawlers' identities, with what the state store remembers, and the queue of
/// addresses that DNS is to be asked about; `None` where crawlgate sends no requests of its own.
fn proofs(
    settings: &IdentitySettings,
    facts: &StoredFacts,
    store: &StateStore,
) -> (Arc<Proofs>, Option<Receiver<IpAddr>>) {
    // Without outgoing requests the lists of an earlier run still count.
    let has_source = settings.outgoing || matches!(settings.lists, ListSettings::Directory(_));
    let has_lists = has_source || !facts.network_lists.is_empty();
    let (queue, waiting) = settings.outgoing.then(reverse_dns::queue).unzip();
    let uses = Uses {
        lists: settings.lists != ListSettings::Off && has_lists,
        signatures: settings.signatures && has_lists,
    };
    let proofs = Proofs::new(Registry::builtin(), facts, store, uses, queue);
    (Arc::new(proofs), waiting)
}

/// Starts the thread for reverse DNS (if there is a `queue`) and the job for the lists of networks.
/// Returns the handle to refresh the lists; `None` where no lists are refreshed.
///
/// # Errors
/// The thread cannot be started.
fn start_proofs(
    settings: &IdentitySettings,
    queue: Option<Receiver<IpAddr>>,
    instance: &Instance,
    scheduler: &Scheduler,
) -> Result<Option<UpdateHandle>, ServerError> {
    if let Some(queue) = queue {
        reverse_dns::start(
            instance.proofs.clone(),
            settings.resolvers.clone(),
            queue,
            instance.clock.clone(),
            instance.metrics.clone(),
        )
        .map_err(ServerError::io("cannot start the thread for reverse DNS"))?;
    }
    if let ListSettings::Directory(directory) = &settings.lists
        && !directory.is_dir()
    {
        tracing::warn!(
            directory = %directory.display(),
            "`identity.lists` names a directory that is not there: crawlgate reads lists as soon as it is"
        );
    }
    let refresher = Refresher::new(instance.proofs.clone(), settings, instance.clock.clone());
    Ok(refresher.start(scheduler))
}
