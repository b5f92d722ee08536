//! [`Operations`]: what an operator can do with the running crawlgate, such as status, reload,
//! pause, resume and explain. The control socket, the admin listener and the module `server` call
//! these methods. A method that changes something writes the change to the log, and updates the
//! metrics.

use super::instances::StoreMonitor;
use super::problem::{Problem, ProblemKind};
use super::status::{self, InstanceStatus};
use crate::clock::Moment;
use crate::facts::ClientMark;
use crate::finding::Finding;
use crate::forwarding::{ConnectionPeer, is_trusted};
use crate::identity::refresh::{ListUpdateHandle, ListUpdateReport, list_file_name};
use crate::locks::lock;
use crate::requests::{ConnectionFacts, HeadFields, RequestHead, RequestPipeline};
use crate::settings::Settings;
use crate::sites::{PauseError, PauseRequest, ReloadReport, RemoveError};
use crate::telemetry::{AcmeHostStatus, CertificateStatus};
use crate::time::Timestamp;
use crate::upkeep::{Instance, InstanceUpkeep};
use crate::upstreams::Upstreams;
use crate::verdict::ResponseFacts;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use strum::VariantArray;

/// Returns the status of the certificates at a time, and of the orders for automatic certificates.
pub type CertificateStatusFn =
    Box<dyn Fn(Timestamp) -> (Vec<CertificateStatus>, Vec<AcmeHostStatus>) + Send + Sync>;

/// Services that run only if the settings say so.
#[derive(Default)]
pub struct OptionalServices {
    /// Fetches the published lists.
    pub lists: Option<ListUpdateHandle>,
    /// The status of the certificates and their orders.
    pub certificates: Option<CertificateStatusFn>,
    /// The shared store of several instances.
    pub instances: Option<StoreMonitor>,
    /// The settings, to notice that their file was changed.
    pub settings: Option<Settings>,
    /// Says why this start began another first day, and until when it lasts at least.
    pub first_day: Option<(Timestamp, Finding)>,
}

/// The operations of the running crawlgate. They block: a reload, for example, compiles policies.
pub struct Operations {
    /// The judge, the sites and the records.
    pub instance: Arc<Instance>,
    requests: Arc<RequestPipeline>,
    upstreams: Arc<Upstreams>,
    ready: AtomicBool,
    /// Until when the process of the last upgrade answers requests; `None` if it has ended.
    predecessor_until: Mutex<Option<Timestamp>>,
    started: Instant,
    /// Keeps sites and identities up to date.
    pub upkeep: Arc<InstanceUpkeep>,
    /// The services that run.
    pub sources: OptionalServices,
    /// The problems of the setup that were logged already.
    warned: Mutex<Vec<ProblemKind>>,
}

impl Operations {
    /// Is not ready at first.
    pub fn new(
        upkeep: Arc<InstanceUpkeep>,
        requests: Arc<RequestPipeline>,
        upstreams: Arc<Upstreams>,
        sources: OptionalServices,
    ) -> Arc<Operations> {
        let operations = Operations {
            instance: upkeep.instance.clone(),
            requests,
            upstreams,
            upkeep,
            ready: AtomicBool::new(false),
            predecessor_until: Mutex::default(),
            started: Instant::now(),
            sources,
            warned: Mutex::default(),
        };
        operations.update_metrics();
        Arc::new(operations)
    }

    /// Fetches the published lists now, and returns the update of each. `None` if this crawlgate
    /// fetches none, or if it takes too long.
    pub fn update_lists(&self) -> Option<Vec<ListUpdateReport>> {
        let updates = self.sources.lists.as_ref()?.update_now();
        self.update_metrics();
        updates
    }

    /// Sets what `/readyz` answers: ready from the end of the start to the beginning of the stop.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Whether `/readyz` answers that crawlgate is ready.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Sets until when the process of the last upgrade answers requests; `None` if it has ended.
    pub fn set_predecessor_until(&self, until: Option<Timestamp>) {
        *lock(&self.predecessor_until) = until;
    }

    /// Says that the process of the last upgrade still answers requests, and until when.
    pub fn predecessor_finding(&self) -> Option<Finding> {
        let until = (*lock(&self.predecessor_until))?.format_with("%H:%M:%S UTC");
        let message = format!(
            "The process before the last upgrade still has open connections. On each of these \
             connections it may send one more response by the rules from before the upgrade, until {until} at the latest."
        );
        Some(Finding::new("predecessor-answers", message))
    }

    /// Why a change that was just made is not fully in force, or may be lost at a restart.
    pub fn change_warnings(&self) -> Vec<Finding> {
        let mut warnings = self.instance.sites.persistence_problems();
        warnings.extend(self.predecessor_finding());
        warnings
    }

    /// Loads the policies that changed.
    pub fn reload(&self) -> ReloadReport {
        self.finish_reload(self.upkeep.reload())
    }

    /// Updates the metrics, and adds that the process of the last upgrade still answers requests.
    fn finish_reload(&self, report: ReloadReport) -> ReloadReport {
        self.update_metrics();
        ReloadReport {
            predecessor: self.predecessor_finding(),
            ..report
        }
    }

    /// Ends the policies of sites whose files are gone, and loads the policies that changed.
    ///
    /// # Errors
    /// See [`crate::sites::SiteManager::remove`].
    pub fn remove_sites(&self, sites: &[String]) -> Result<ReloadReport, RemoveError> {
        Ok(self.finish_reload(self.upkeep.remove(sites)?))
    }

    /// Pauses one site or all sites. Returns when the pause ends.
    ///
    /// # Errors
    /// See [`crate::sites::SiteManager::pause`].
    pub fn pause(&self, request: &PauseRequest) -> Result<Timestamp, PauseError> {
        let until = self.instance.sites.pause(request, self.moment().now)?;
        tracing::warn!(site = request.site.as_deref().unwrap_or("all"), %until, "the pause began");
        self.update_metrics();
        Ok(until)
    }

    /// Ends the pause of one site or of all. Returns the sites that were resumed.
    ///
    /// # Errors
    /// See [`crate::sites::SiteManager::resume`].
    pub fn resume(&self, site: Option<&str>) -> Result<Vec<String>, PauseError> {
        let sites = self.instance.sites.resume(site, self.moment().now)?;
        if !sites.is_empty() {
            tracing::info!(?sites, "the pause ended");
        }
        self.update_metrics();
        Ok(sites)
    }

    /// The state of the running crawlgate, with the problems that need attention.
    pub fn status(&self) -> InstanceStatus {
        let Moment { now, monotonic } = self.moment();
        let mut policies = self.upkeep.status();
        let first_day = self.sources.first_day.clone();
        let first_day = first_day.filter(|(until, _)| now <= *until);
        // A site's older versions matter only once the first day has ended.
        if let Some((no_violation_until, _)) = first_day {
            for site in &mut policies.sites {
                site.cached_until = site
                    .cached_until
                    .filter(|until| !site.cached_by_few && *until > no_violation_until);
            }
        }
        let upstreams = self.upstreams.status(monotonic);
        let certificates = self.sources.certificates.as_ref();
        let (certificates, orders) = certificates.map(|of| of(now)).unwrap_or_default();
        let mut status = InstanceStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: self.started.elapsed().as_secs(),
            ready: self.is_ready(),
            policies,
            predecessor: self.predecessor_finding(),
            first_day: first_day.map(|(_, finding)| finding),
            problems: Vec::new(),
            origins: upstreams.servers,
            queues: upstreams.queues,
            without_origin: upstreams.without_origin,
            traffic: self.instance.traffic.status(monotonic),
            certificates,
            orders,
            store: self.sources.instances.as_ref().map(StoreMonitor::status),
        };
        status.collect_problems(&upstreams.refused_files, &self.instance.proofs.lists, now);
        let settings = self.sources.settings.as_ref();
        status
            .problems
            .extend(settings.and_then(status::settings_problem));
        status
    }

    /// Logs problems of the setup, each kind once in a process. Other problems are logged where they
    /// are noticed.
    pub fn log_setup_problems(&self) {
        let mut warned = lock(&self.warned);
        let traffic = self.instance.traffic.status(self.moment().monotonic);
        for Problem {
            problem, message, ..
        } in status::setup_problems(&traffic)
        {
            if !warned.contains(&problem) {
                tracing::warn!(problem = problem.name(), "{message}");
                warned.push(problem);
            }
        }
    }

    /// The present moment.
    pub(super) fn moment(&self) -> Moment {
        self.instance.clock.moment()
    }

    /// The clients that are marked because they requested a trap.
    pub fn trap_marks(&self) -> Vec<ClientMark> {
        self.instance
            .behaviours
            .marked_clients
            .active_marks(self.moment())
    }

    /// Removes the marks of the clients in a network, and returns them.
    pub fn release_marks(&self, network: IpNet) -> Vec<ClientMark> {
        let released = self
            .instance
            .behaviours
            .marked_clients
            .release_network(network, self.moment());
        tracing::info!(marks = released.len(), %network, "marks were released");
        released
    }

    /// Explains how a GET request would be treated now. The request comes directly from the address
    /// of the question; for the address of a trusted proxy the client is not known.
    pub fn explain(&self, question: &ExplainRequest) -> ExplainResponse {
        let proxies = &self.requests.settings().trusted_proxies;
        let peer = ConnectionPeer {
            address: question.ip,
            names_no_client: question
                .ip
                .is_none_or(|address| is_trusted(address, proxies)),
            ..ConnectionPeer::default()
        };
        let content_type = question.content_type.as_deref();
        let response = ResponseFacts {
            status: question.status,
            content_type,
            origin_tags: &question.origin_tags,
        };
        let explanation =
            self.requests
                .explain(question, &ConnectionFacts::cleartext(peer), &response);
        ExplainResponse {
            text: explanation.to_text(&self.instance.sites.snapshot(), question.colour),
            explanation: serde_json::to_value(&explanation).unwrap_or_default(),
        }
    }

    /// Sets all gauges. Called after each operation, and before a scrape, because pauses begin and
    /// end by the clock.
    pub fn update_metrics(&self) {
        let InstanceStatus {
            policies: status,
            problems,
            store,
            ..
        } = self.status();
        if let Some((store, instances)) = store.zip(self.sources.instances.as_ref()) {
            store.set_gauges(&instances.metrics);
        }
        for kind in ProblemKind::VARIANTS {
            let count = problems
                .iter()
                .filter(|found| found.problem == *kind)
                .count();
            self.instance
                .metrics
                .problems
                .with_label_values(&[kind.name()])
                .set(count as i64);
        }
        self.upkeep.set_gauges(&status);
        self.upstreams.set_gauges();
        self.update_proof_metrics();
        let origins = status.sites.iter().filter_map(|site| {
            let robots = site.origin_robots.as_ref()?;
            Some((
                site.site.as_str(),
                robots.state.name(),
                robots.last_success.map(|moment| moment.0),
            ))
        });
        self.instance.metrics.set_origin_robots(origins);
    }

    /// Sets the metrics about the proof of identities: entries and age of each published list, known
    /// addresses, and dropped lookups.
    fn update_proof_metrics(&self) {
        let metrics = &self.instance.metrics;
        let proofs = &self.instance.proofs;
        for (list, url) in proofs.lists.all() {
            if let Some(known) = proofs.lists.get(list) {
                metrics
                    .proofs
                    .networks
                    .with_label_values(&[list_file_name(url)])
                    .set(known.entry_count() as i64);
                metrics
                    .proofs
                    .checked
                    .with_label_values(&[list_file_name(url)])
                    .set(known.copy.checked.0);
            }
        }
        metrics
            .proofs
            .addresses
            .set(proofs.names.address_count() as i64);
        metrics.raise_counter(&metrics.proofs.left_out, proofs.dropped_lookups());
    }
}

/// The request of `crawlgate upgrade`.
#[derive(Serialize, Deserialize)]
pub struct UpgradeRequest {
    /// Whether to end a process that still answers its last requests.
    #[serde(default)]
    pub now: bool,
    /// Whether to upgrade although no service manager follows the next process.
    #[serde(default)]
    pub unsupervised: bool,
}

/// The result of `crawlgate upgrade`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct UpgradeReport {
    /// The old process, which answers its last requests.
    pub before: u32,
    /// The process that serves.
    pub pid: u32,
    /// How long the upgrade took, from the start of the new process on.
    pub milliseconds: u64,
}

/// The request of `crawlgate explain --live`.
#[derive(Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ExplainRequest {
    pub host: String,
    pub target: String,
    pub user_agent: String,
    pub ip: Option<IpAddr>,
    pub content_type: Option<String>,
    pub status: u16,
    /// Lines of X-Robots-Tag that the origin sends.
    #[serde(default)]
    pub origin_tags: Vec<String>,
    /// Whether the text may have colours.
    pub colour: bool,
}

impl RequestHead for ExplainRequest {
    /// The fields of a GET request by HTTP/1.1 with this host, target and user agent.
    fn fields(&self) -> HeadFields<'_> {
        HeadFields {
            method: b"GET",
            target: self.target.as_bytes(),
            host: self.host.as_bytes(),
            http: "1.1",
            user_agent: Some(self.user_agent.as_bytes()),
            ..HeadFields::default()
        }
    }

    fn values(&self, _: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]> {
        std::iter::empty()
    }

    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Owned(HeaderMap::new())
    }
}

/// The answer to a [`ExplainRequest`], for a program and for a person.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ExplainResponse {
    pub explanation: serde_json::Value,
    pub text: String,
}
