//! [`Services`]: the parts of the server behind its listeners, such as the sites, the judge of
//! requests, and the servers of the origins. [`Services::open`] opens the parts one after the
//! other. The clock and the state store come first, because the others need these two.

use super::ServerError;
use super::acme_services::AcmeServices;
use super::instances::StorePeers;
use super::origin_robots::{self, OriginRobotsTracker};
use super::sockets::listener_names;
use super::stop::flush_logs;
use crate::acme::AcmeScheduler;
use crate::admin::{Operations, OptionalServices};
use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::evidence::EvidenceRecorder;
use crate::facts::StoredFacts;
use crate::identity::refresh::{ListRefresher, ListUpdateHandle};
use crate::identity::{IdentityVerifier, ProofMethods, reverse_dns};
use crate::judge::{PeerConfirmation, RequestLogs};
use crate::origin::robots::StoredCopies;
use crate::requests::{ChallengeFileSources, RequestPipeline, RequestSettings};
use crate::scheduler::Scheduler;
use crate::settings::{IdentitySettings, ListSource, ListenAddress, Settings};
use crate::sites::{DefaultSite, InitialOriginRobots, SiteLoadOptions};
use crate::state::{RestoredState, StateError, StateStore};
use crate::telemetry::{AccessLog, EventLog};
use crate::upkeep::{Instance, InstanceInputs, InstanceUpkeep};
use crate::upstreams::Upstreams;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;

/// The opened services. The sites, the ledger, the clock and the logs are in the instance.
pub struct Services {
    pub settings: Settings,
    pub acme_services: AcmeServices,
    pub instance: Arc<Instance>,
    pub requests: Arc<RequestPipeline>,
    pub upstreams: Arc<Upstreams>,
    pub operations: Arc<Operations>,
    pub store: StateStore,
    /// The orders of certificates, if the settings have `acme`. They do not run yet.
    pub acme: Option<Arc<AcmeScheduler>>,
    /// The other instances, if the settings name a shared store.
    pub peers: Option<Arc<StorePeers>>,
    /// The evidence log, which third parties can check.
    pub evidence: EvidenceRecorder,
}

impl Services {
    /// Opens the state directory, loads the policies, and begins this run in the state store. Also
    /// returns the [`OriginRobotsTracker`], which do not run yet. If another process hands over to this one,
    /// `lock` is that of the state directory.
    pub fn open(
        settings: Settings,
        acme_services: AcmeServices,
        scheduler: &Scheduler,
        lock: Option<OwnedFd>,
    ) -> Result<(Arc<Services>, OriginRobotsTracker), ServerError> {
        let clock = open_clock(&settings)?;
        let started = clock.moment();
        let (store, restored) = open_state(&settings, lock, clock.clone())?;
        let now = started.now;
        let copies = StoredCopies::from_records(&restored.facts.origin_copies, now);
        let (proofs, queue) = open_proofs(&settings.identity, &restored.facts, &store);
        let confirmation = settings.store.as_ref().map(|_| Arc::default());
        let mut logs = open_logs(&settings, confirmation.clone())?;
        let evidence = open_evidence(&settings)?;
        logs.sinks
            .extend(evidence.sink(&proofs, &settings.identity.lists));
        let parts = InstanceInputs {
            clock,
            started,
            store: &store,
            restored: &restored,
            sites: site_options(&settings, &copies),
            new_hosts: settings.new_hosts.clone(),
            proofs,
            logs,
        };
        let instance = parts.open()?;
        evidence.subscribe_to_publications(&instance.sites, &instance.metrics);
        let peers = StorePeers::join(
            &settings,
            &instance,
            &store,
            &restored,
            confirmation,
            scheduler,
        )?;
        let sites = instance.sites.clone();
        let robots = OriginRobotsTracker::new(sites, &settings.origins, copies, store.clone(), now);
        let lists = start_proofs(&settings.identity, queue, &instance, scheduler)?;
        let upstreams = Arc::new(Upstreams::new(
            &settings.origins,
            &instance.metrics,
            instance.clock.clone(),
        )?);
        let requests = request_pipeline(&settings, &instance, &acme_services);
        let acme = acme_services.open_acme(&settings, &instance);
        let sources = OptionalServices {
            lists,
            certificates: Some(acme_services.certificate_source(acme.clone())),
            instances: peers
                .as_ref()
                .map(|peers| peers.store_monitor(&instance.metrics)),
            settings: Some(settings.clone()),
            first_day: instance.log_first_day(&restored, now),
        };
        let operations = Operations::new(
            InstanceUpkeep::new(instance.clone(), store.clone()),
            requests.clone(),
            upstreams.clone(),
            sources,
        );
        let services = Services {
            settings,
            acme_services,
            operations,
            instance,
            requests,
            upstreams,
            store,
            acme,
            peers,
            evidence,
        };
        Ok((Arc::new(services), robots))
    }

    /// Reports to other instances what was served, and writes the end of this run to the state
    /// store. The counts are written last, unless the shared store is unreachable. Call it after the
    /// last request.
    pub fn close(&self) {
        if let Some(peers) = &self.peers {
            peers.exchange.close();
            // The records that waited for other instances came into the logs only now.
            flush_logs(&self.instance);
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

    /// Reloads changed files of certificates and of origins' TLS. Sets the metric of rejected files.
    pub fn reload_files(&self) {
        let Instance { clock, metrics, .. } = &*self.instance;
        let refused = self
            .acme_services
            .certificates
            .reload_changed_files(clock.moment().now, metrics)
            + self.upstreams.reload_tls_files();
        metrics.edge.refused_renewals.set(refused as i64);
    }
}

/// The options of the sites, from the settings and the stored copies.
pub fn site_options(settings: &Settings, copies: &StoredCopies) -> SiteLoadOptions {
    SiteLoadOptions {
        policies: settings.policies.clone(),
        strict: settings.strict,
        without_directory: settings.policies_may_be_missing.then(Default::default),
        origins: InitialOriginRobots {
            default_sites: DefaultSite::from_settings(&settings.origins),
            ..origin_robots::known_origins(copies, &settings.origins)
        },
        published_proof: settings.identity.can_prove(),
    }
}

/// The request pipeline of the proxy's listeners.
fn request_pipeline(
    settings: &Settings,
    instance: &Instance,
    acme_services: &AcmeServices,
) -> Arc<RequestPipeline> {
    let Instance {
        judge,
        recorder,
        clock,
        ..
    } = instance;
    let settings = RequestSettings {
        trusted_proxies: settings.trusted_proxies.clone(),
        client_address: settings.client_address.clone(),
        challenges: ChallengeFileSources {
            webroot: settings.acme_webroot.clone(),
            own: acme_services.challenge_files(),
        },
        has_certificate: acme_services.has_certificate(),
        limits: settings.limits,
        is_for_proxies: false,
    };
    RequestPipeline::new(judge.clone(), recorder.clone(), clock.clone(), settings)
}

/// The machine's clock, or one that a file of the settings shifts. Fails if the settings have such a
/// file, or other ports for `acme`, and a listener is not on loopback.
fn open_clock(settings: &Settings) -> Result<Clock, ServerError> {
    if settings.clock.is_none() && settings.acme_ports.is_none() {
        return Ok(Clock::default());
    }
    let public = listener_names(settings).find_map(|name| match name {
        ListenAddress::Tcp(address) if !address.ip().is_loopback() => Some(address),
        _ => None,
    });
    match public {
        Some(address) => Err(ServerError::ClockOnPublicAddress { address }),
        None => Ok(settings
            .clock
            .as_deref()
            .map(Clock::following_file)
            .transpose()?
            .unwrap_or_default()),
    }
}

/// Opens the access log and the event log. A file that cannot be opened is a problem of the status,
/// and is tried again. `peers` confirm a violation before it is recorded.
fn open_logs(
    settings: &Settings,
    peers: Option<Arc<PeerConfirmation>>,
) -> Result<RequestLogs, ServerError> {
    let logs = &settings.logs;
    Ok(RequestLogs {
        access: AccessLog::open(&logs.access, logs.access_format, logs.addresses)
            .map_err(ServerError::from_io("cannot start the access log"))?,
        events: EventLog::open(&logs.events, logs.addresses, settings.history_addresses)
            .map_err(ServerError::from_io("cannot start the event log"))?,
        sinks: Vec::new(),
        keeps_paths: settings.history_paths,
        peers,
    })
}

/// Opens the state directory, or takes it over with its lock from the previous process.
fn open_state(
    settings: &Settings,
    lock: Option<OwnedFd>,
    clock: Clock,
) -> Result<(StateStore, RestoredState), StateError> {
    let moment = Arc::new(move || clock.moment());
    match (&settings.state, lock) {
        (Some(directory), Some(lock)) => StateStore::take_over(directory, lock, moment),
        (directory, _) => StateStore::open(directory.as_deref(), moment),
    }
}

/// Opens the evidence log; it is disabled without `evidence` in the settings. If opening fails, the
/// status has a problem, and requests are served all the same. Fails without a state directory.
fn open_evidence(settings: &Settings) -> Result<EvidenceRecorder, ServerError> {
    let Some(evidence) = &settings.evidence else {
        return Ok(EvidenceRecorder::default());
    };
    let directory = settings
        .state
        .as_deref()
        .ok_or(ServerError::WithoutState("evidence"))?;
    Ok(EvidenceRecorder::open(
        directory,
        evidence,
        settings.evidence_addresses,
    ))
}

/// Opens the proofs of crawlers' identities with the stored facts, and the queue of addresses for
/// reverse DNS; `None` if crawlgate sends no requests of its own.
fn open_proofs(
    settings: &IdentitySettings,
    facts: &StoredFacts,
    store: &StateStore,
) -> (Arc<IdentityVerifier>, Option<Receiver<IpAddr>>) {
    // Without outgoing requests the lists of an earlier run still count.
    let has_source = settings.outgoing || matches!(settings.lists, ListSource::Directory(_));
    let has_lists = has_source || !facts.network_lists.is_empty();
    let (queue, waiting) = settings.outgoing.then(reverse_dns::lookup_queue).unzip();
    let uses = ProofMethods {
        lists: settings.lists != ListSource::Off && has_lists,
        signatures: settings.signatures && has_lists,
    };
    let proofs = IdentityVerifier::new(Registry::builtin(), facts, store, uses, queue);
    (Arc::new(proofs), waiting)
}

/// Starts the thread for reverse DNS (if there is a `queue`) and the job for the lists of networks.
/// Returns the handle to refresh the lists; `None` if no lists are refreshed.
///
/// # Errors
/// The thread cannot be started.
fn start_proofs(
    settings: &IdentitySettings,
    queue: Option<Receiver<IpAddr>>,
    instance: &Instance,
    scheduler: &Scheduler,
) -> Result<Option<ListUpdateHandle>, ServerError> {
    if let Some(queue) = queue {
        reverse_dns::start_lookups(
            instance.proofs.clone(),
            settings.resolvers.clone(),
            queue,
            instance.clock.clone(),
            instance.metrics.clone(),
        )
        .map_err(ServerError::from_io(
            "cannot start the thread for reverse DNS",
        ))?;
    }
    if let ListSource::Directory(directory) = &settings.lists
        && !directory.is_dir()
    {
        tracing::warn!(
            directory = %directory.display(),
            "the directory in identity.lists does not exist: crawlgate reads the lists as soon as it does"
        );
    }
    let refresher = ListRefresher::new(instance.proofs.clone(), settings, instance.clock.clone());
    Ok(refresher.start(scheduler))
}
