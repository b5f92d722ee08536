//! [`Operations`]: what an operator can ask of the running crawlgate, such as status, reload,
//! pause, resume, explain and upgrade. The control socket, the admin listener and `server` call it.
//! It logs changes and updates the metrics. [`UpgradeRequest`] and [`UpgradeReport`] are the
//! request and the answer of `crawlgate upgrade`.

use super::instances::{Instances, StoreStatus};
use super::problem::{Problem, ProblemKind};
use super::status::{self, InstanceStatus};
use crate::clock::Moment;
use crate::facts::Mark;
use crate::forwarding::{Peer, is_trusted};
use crate::identity::refresh::{ListUpdate, UpdateHandle, file_name};
use crate::requests::{Connection, HeadFields, RequestHead, Requests};
use crate::sites::{PauseError, PauseRequest, ReloadReport, RemoveError};
use crate::telemetry::{CertificateStatus, OrderStatus};
use crate::time::Timestamp;
use crate::upkeep::{Instance, Upkeep};
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

/// Returns the status of the certificates at a moment, and of the hosts for which crawlgate gets
/// certificates.
pub type CertificatesSource =
    Box<dyn Fn(Timestamp) -> (Vec<CertificateStatus>, Vec<OrderStatus>) + Send + Sync>;

/// What operations show and do where the settings ask for it.
#[derive(Default)]
pub struct Sources {
    /// Updates the published lists.
    pub lists: Option<UpdateHandle>,
    /// Returns the status of the certificates and their orders.
    pub certificates: Option<CertificatesSource>,
    /// The shared store through which several instances exchange facts.
    pub instances: Option<Instances>,
}

/// The operations of the running crawlgate. They block: a reload compiles policies.
pub struct Operations {
    /// What requests are judged by and recorded in.
    pub instance: Arc<Instance>,
    requests: Arc<Requests>,
    upstreams: Arc<Upstreams>,
    ready: AtomicBool,
    /// When it began to run.
    started: Instant,
    /// Keeps sites and identities up to date.
    pub upkeep: Arc<Upkeep>,
    /// What not every crawlgate has.
    pub sources: Sources,
    /// The problems of the setup that were logged: once is enough.
    warned: Mutex<Vec<ProblemKind>>,
}

impl Operations {
    /// Begins not ready, with the metrics up to date.
    pub fn new(
        upkeep: Arc<Upkeep>,
        requests: Arc<Requests>,
        upstreams: Arc<Upstreams>,
        sources: Sources,
    ) -> Arc<Operations> {
        let operations = Operations {
            instance: upkeep.instance.clone(),
            requests,
            upstreams,
            upkeep,
            ready: AtomicBool::new(false),
            started: Instant::now(),
            sources,
            warned: Mutex::default(),
        };
        operations.refresh();
        Arc::new(operations)
    }

    /// The state of the store and its instances. `None` without a store.
    pub fn instances(&self) -> Option<StoreStatus> {
        self.sources.instances.as_ref().map(Instances::status)
    }

    /// Fetches the published lists now, and returns the update of each. `None` where this crawlgate
    /// fetches none, or where it takes too long.
    pub fn update_lists(&self) -> Option<Vec<ListUpdate>> {
        let updates = self.sources.lists.as_ref()?.update();
        self.refresh();
        updates
    }

    /// Sets whether requests are welcome. They are after the start until a stop begins.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Whether requests are welcome.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Loads the policies that changed.
    pub fn reload(&self) -> ReloadReport {
        let report = self.upkeep.reload();
        self.refresh();
        report
    }

    /// Ends the policies of sites whose files are gone, and loads the policies that changed.
    ///
    /// # Errors
    /// See [`crate::sites::SiteManager::remove`].
    pub fn remove(&self, sites: &[String]) -> Result<ReloadReport, RemoveError> {
        let report = self.upkeep.remove(sites)?;
        self.refresh();
        Ok(report)
    }

    /// Pauses one site or all sites. Returns when the pause ends.
    ///
    /// # Errors
    /// See [`crate::sites::SiteManager::pause`].
    pub fn pause(&self, request: &PauseRequest) -> Result<Timestamp, PauseError> {
        let until = self.instance.sites.pause(request, self.moment().now)?;
        tracing::warn!(site = request.site.as_deref().unwrap_or("all"), %until, "the pause began");
        self.refresh();
        Ok(until)
    }

    /// Ends the pause of one site or of all. Returns the sites that were resumed.
    ///
    /// # Errors
    /// See [`crate::sites::SiteManager::resume`].
    pub fn resume(&self, site: Option<&str>) -> Result<Vec<String>, PauseError> {
        let sites = self.instance.sites.resume(site, self.moment().now)?;
        tracing::info!(?sites, "the pause ended");
        self.refresh();
        Ok(sites)
    }

    /// The state of the running crawlgate, with the problems that need attention.
    pub fn status(&self) -> InstanceStatus {
        let Moment { now, lived } = self.moment();
        let policies = self.upkeep.status();
        let upstreams = self.upstreams.status(lived);
        let certificates = self.sources.certificates.as_ref();
        let (certificates, orders) = certificates.map(|of| of(now)).unwrap_or_default();
        let mut status = InstanceStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: self.started.elapsed().as_secs(),
            policies,
            problems: Vec::new(),
            origins: upstreams.servers,
            queues: upstreams.queues,
            without_origin: upstreams.without_origin,
            traffic: self.instance.traffic.status(lived),
            certificates,
            orders,
            store: self.instances(),
        };
        status.find_problems(&upstreams.refused_files, &self.instance.proofs.lists, now);
        status
    }

    /// Logs each kind of problem of the setup once in the life of the process. Other problems are
    /// logged where they are noticed.
    pub fn warn_of_setup(&self) {
        let mut warned = crate::locks::lock(&self.warned);
        let traffic = self.instance.traffic.status(self.moment().lived);
        for Problem {
            problem, message, ..
        } in status::of_setup(&traffic)
        {
            if !warned.contains(&problem) {
                tracing::warn!(problem = problem.name(), "{message}");
                warned.push(problem);
            }
        }
    }

    /// The present moment, by the wall clock and in lived time.
    pub(super) fn moment(&self) -> Moment {
        self.instance.clock.moment()
    }

    /// The clients that are marked for a trap.
    pub fn marks(&self) -> Vec<Mark> {
        self.instance.behaviours.traps.list(self.moment())
    }

    /// Releases the clients of an address or a network that are marked for a trap. Returns the
    /// marks that were removed.
    pub fn release(&self, network: IpNet) -> Vec<Mark> {
        let released = self
            .instance
            .behaviours
            .traps
            .release(network, self.moment());
        tracing::info!(marks = released.len(), %network, "marks were released");
        released
    }

    /// Explains how a GET request would be treated now, by text and by JSON. It counts as sent by
    /// the address of the question, directly; from a trusted proxy's address its client is not
    /// known.
    pub fn explain(&self, question: &LiveQuestion) -> LiveAnswer {
        // A request that comes from this address without a word of a proxy.
        let proxies = &self.requests.settings().trusted_proxies;
        let peer = Peer {
            address: question.ip,
            is_unnamed: question
                .ip
                .is_some_and(|address| is_trusted(address, proxies)),
            ..Peer::default()
        };
        let content_type = question.content_type.as_deref();
        let response = ResponseFacts {
            status: question.status,
            content_type,
            origin_tags: &question.origin_tags,
        };
        let explanation = self
            .requests
            .explain(question, &Connection::from(peer), &response);
        LiveAnswer {
            text: explanation.to_text(&self.instance.sites.snapshot(), question.colour),
            explanation: serde_json::to_value(&explanation).unwrap_or_default(),
        }
    }

    /// Brings the gauges up to date. Called after each operation, and before a scrape, because
    /// pauses begin and end by the clock.
    pub fn refresh(&self) {
        let InstanceStatus {
            policies: status,
            problems,
            store,
            ..
        } = self.status();
        if let Some((store, instances)) = store.zip(self.sources.instances.as_ref()) {
            store.set_gauges(&instances.metrics, &self.instance.metrics);
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
        self.refresh_proofs();
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

    /// Brings the metrics about the proof of identities up to date: entries and age of each
    /// published list, known addresses, and what was left out.
    fn refresh_proofs(&self) {
        let metrics = &self.instance.metrics;
        let proofs = &self.instance.proofs;
        for (list, url) in proofs.lists.all() {
            if let Some(known) = proofs.lists.get(list) {
                metrics
                    .proofs
                    .networks
                    .with_label_values(&[file_name(url)])
                    .set(known.entries() as i64);
                metrics
                    .proofs
                    .checked
                    .with_label_values(&[file_name(url)])
                    .set(known.copy.checked.0);
            }
        }
        metrics.proofs.addresses.set(proofs.names.count() as i64);
        metrics.raise(&metrics.proofs.left_out, proofs.left_out());
    }
}

/// The request to hand over, with its conditions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct UpgradeRequest {
    /// Whether a process that still answers its last requests is ended first.
    #[serde(default)]
    pub now: bool,
    /// Whether it is fine that no service manager follows the next process.
    #[serde(default)]
    pub unsupervised: bool,
}

/// The answer: another process serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpgradeReport {
    /// The process before. It answers its last requests.
    pub before: u32,
    /// The process that serves.
    pub pid: u32,
    /// How long it took, from the start of the program on.
    pub milliseconds: u64,
}

/// A question about a request, to the running crawlgate.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct LiveQuestion {
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

impl RequestHead for LiveQuestion {
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

/// The answer to a [`LiveQuestion`], for a program and for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct LiveAnswer {
    pub explanation: serde_json::Value,
    pub text: String,
}
