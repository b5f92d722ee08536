//! What an operator can do, with its traces in metrics and logs.

use super::Refusal;
use super::instances::{Instances, StoreStatus};
use super::status::{self, InstanceStatus, ProblemKind};
use super::upgrade::{Upgrade, UpgradeReport, UpgradeRequest};
use crate::clock::Moment;
use crate::forwarding::Peer;
use crate::identity::refresh::{ListUpdate, UpdateHandle, file_name};
use crate::ledger::{ListHealth, Mark};
use crate::locks::lock;
use crate::requests::{Connection, HeadFields, RequestHead, Requests};
use crate::sites::{PauseError, PauseRequest, ReloadReport};
use crate::state::history::{Step, Told};
use crate::telemetry::{CertificateStatus, OrderStatus};
use crate::time::Timestamp;
use crate::upkeep::{Instance, Upkeep};
use crate::upstreams::Upstreams;
use crate::verdict::ResponseFacts;
use http::HeaderMap;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use strum::VariantArray;

/// Says how the certificates of the listeners are at a moment.
pub type CertificatesSource = Box<dyn Fn(Timestamp) -> Vec<CertificateStatus> + Send + Sync>;

/// Says how the hosts stand that crawlgate gets certificates for.
pub type OrdersSource = Box<dyn Fn() -> Vec<OrderStatus> + Send + Sync>;

/// Reload, pause, resume, status. Blocking: reloading compiles policies.
pub struct Operations {
    /// What requests are judged by and recorded in.
    pub instance: Arc<Instance>,
    requests: Arc<Requests>,
    upstreams: Arc<Upstreams>,
    ready: AtomicBool,
    started: Instant,
    upkeep: Arc<Upkeep>,
    /// Updates the published lists, where this crawlgate does.
    pub lists: OnceLock<UpdateHandle>,
    /// Says how the certificates of the listeners are, where there are any.
    pub certificates: OnceLock<CertificatesSource>,
    /// Says how the hosts stand that crawlgate gets certificates for.
    pub orders: OnceLock<OrdersSource>,
    /// The control socket, where there is one.
    control: OnceLock<PathBuf>,
    /// The store where several instances meet, where there is one.
    pub instances: OnceLock<Instances>,
    /// Hands over to the next process, where that is possible.
    pub upgrade: OnceLock<Upgrade>,
    /// What was said of the setup: once is enough.
    warned: Mutex<Vec<ProblemKind>>,
}

impl Operations {
    /// Sets the gauges of the sites that are there.
    pub fn new(upkeep: Arc<Upkeep>, requests: Arc<Requests>, upstreams: Arc<Upstreams>) -> Arc<Operations> {
        let operations = Operations {
            instance: upkeep.instance.clone(),
            requests,
            upstreams,
            upkeep,
            ready: AtomicBool::new(false),
            started: Instant::now(),
            lists: OnceLock::new(),
            certificates: OnceLock::new(),
            orders: OnceLock::new(),
            control: OnceLock::new(),
            instances: OnceLock::new(),
            upgrade: OnceLock::new(),
            warned: Mutex::default(),
        };
        operations.refresh();
        Arc::new(operations)
    }

    /// How the store and the instances in it stand. `None` without a store.
    pub fn instances(&self) -> Option<StoreStatus> {
        self.instances.get().map(Instances::status)
    }

    /// What the other instances counted, where there is a store: see [`Instances::counts`].
    pub(super) fn counts_of_others(&self, step: Step, from: Timestamp) -> Option<Result<Vec<Told>, String>> {
        self.instances.get().map(|instances| (instances.counts)(step, from))
    }

    /// Takes an instance for gone. `None` without a store.
    pub fn forget(&self, instance: &str) -> Option<Result<(), String>> {
        self.instances.get().map(|instances| (instances.forget)(instance))
    }

    /// Hands over to the next process. `None` where this crawlgate cannot.
    ///
    /// # Errors
    /// This process goes on.
    pub fn upgrade(&self, request: UpgradeRequest) -> Option<Result<UpgradeReport, Refusal>> {
        self.upgrade.get().map(|upgrade| upgrade(request))
    }

    /// Says where the control socket is. Once.
    pub fn answers_on(&self, control: &Path) {
        let _ = self.control.set(std::path::absolute(control).unwrap_or_else(|_| control.to_owned()));
    }

    /// The control socket, where there is one.
    pub fn control(&self) -> Option<&Path> {
        self.control.get().map(PathBuf::as_path)
    }

    /// Updates the published lists now. `None` where this crawlgate does not, or where it takes too long.
    pub fn update_lists(&self) -> Option<Vec<ListUpdate>> {
        let updates = self.lists.get()?.update();
        self.refresh();
        updates
    }

    /// Says whether requests are welcome: after the start until a stop begins.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Whether requests are welcome.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Loads what changed.
    pub fn reload(&self) -> ReloadReport {
        let report = self.upkeep.reload();
        self.refresh();
        report
    }

    /// Brings what goes by the clock up to date; returns for how long that is known to hold.
    pub fn keep_time(&self) -> Option<Duration> {
        self.upkeep.keep_time()
    }

    /// Pauses.
    ///
    /// # Errors
    /// See [`crate::sites::SiteManager::pause`].
    pub fn pause(&self, request: &PauseRequest) -> Result<Timestamp, PauseError> {
        let until = self.instance.sites.pause(request, self.now())?;
        tracing::warn!(site = request.site.as_deref().unwrap_or("all"), %until, "the pause began");
        self.refresh();
        Ok(until)
    }

    /// Resumes.
    ///
    /// # Errors
    /// See [`crate::sites::SiteManager::resume`].
    pub fn resume(&self, site: Option<&str>) -> Result<Vec<String>, PauseError> {
        let sites = self.instance.sites.resume(site, self.now())?;
        tracing::info!(?sites, "the pause ended");
        self.refresh();
        Ok(sites)
    }

    /// For how long it runs.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// How the running crawlgate does.
    pub fn status(&self) -> InstanceStatus {
        let (lived, now) = (self.moment().lived, self.now());
        let (policies, upstreams) = (self.upkeep.status(), self.upstreams.status(lived));
        let mut status = InstanceStatus {
            policies,
            problems: Vec::new(),
            origins: upstreams.servers,
            queues: upstreams.queues,
            without_origin: upstreams.without_origin,
            traffic: self.instance.traffic.status(lived),
            certificates: self.certificates.get().map(|of| of(now)).unwrap_or_default(),
            orders: self.orders.get().map(|of| of()).unwrap_or_default(),
            store: self.instances(),
        };
        status.find_problems(&upstreams.refused_files, &status::failing_lists(&self.instance.proofs.lists, now));
        status
    }

    /// Says once of each what is wrong with the setup. Other problems are logged where they are noticed.
    pub fn warn_of_setup(&self) {
        let mut warned = lock(&self.warned);
        for (problem, message) in status::of_setup(&self.instance.traffic.status(self.moment().lived)) {
            if !warned.contains(&problem) {
                tracing::warn!(problem = problem.name(), "{message}");
                warned.push(problem);
            }
        }
    }

    /// How it stands with the lists of networks that had anything to say.
    pub(super) fn list_health(&self) -> Vec<ListHealth> {
        self.upkeep.list_health()
    }

    /// Now, by both measures.
    pub(super) fn moment(&self) -> Moment {
        self.instance.clock.moment()
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.instance.clock.now())
    }

    /// The clients that are marked for a trap.
    pub fn marks(&self) -> Vec<Mark> {
        self.instance.behaviours.traps.list(self.moment())
    }

    /// Forgets the marks of an address or a network.
    pub fn release(&self, network: IpNet) -> Vec<Mark> {
        let released = self.instance.behaviours.traps.release(network, self.moment());
        tracing::info!(marks = released.len(), %network, "marks were released");
        released
    }

    /// Why a request would be treated as it would be, here and now.
    pub fn explain(&self, question: &LiveQuestion) -> LiveAnswer {
        // The operator says whose address it is.
        let peer = Peer { address: question.ip, is_trusted: true, is_tls: false };
        let content_type = question.content_type.as_deref();
        let response = ResponseFacts { status: question.status, content_type, origin_tags: &question.origin_tags };
        let explanation = self.requests.explain(question, &Connection::from(peer), &response);
        LiveAnswer {
            text: explanation.to_text(&self.instance.sites.snapshot(), question.colour),
            explanation: serde_json::to_value(&explanation).unwrap_or_default(),
        }
    }

    /// Brings the gauges up to date; pauses begin and end by the clock, so a scrape asks for it too.
    pub fn refresh(&self) {
        let InstanceStatus { policies: status, problems, store, .. } = self.status();
        if let Some(store) = store {
            store.set_gauges(&self.instance.metrics);
        }
        for kind in ProblemKind::VARIANTS {
            let count = problems.iter().filter(|found| found.problem == *kind).count();
            self.instance.metrics.problems.with_label_values(&[kind.name()]).set(count as i64);
        }
        self.upkeep.set_gauges(&status);
        self.upstreams.set_gauges();
        self.refresh_proofs();
        let origins = status.sites.iter().filter_map(|site| {
            let robots = site.origin_robots.as_ref()?;
            Some((site.site.as_str(), robots.state.name(), robots.last_success.map(|moment| moment.0)))
        });
        self.instance.metrics.set_origin_robots(origins);
    }

    fn refresh_proofs(&self) {
        let (metrics, proofs) = (&self.instance.metrics, &self.instance.proofs);
        for (list, url) in proofs.lists.all() {
            if let Some(known) = proofs.lists.get(list) {
                metrics.proofs.networks.with_label_values(&[file_name(url)]).set(known.entries() as i64);
                metrics.proofs.checked.with_label_values(&[file_name(url)]).set(known.copy.checked.0);
            }
        }
        metrics.proofs.addresses.set(proofs.names.count() as i64);
        metrics.raise(&metrics.proofs.left_out, proofs.left_out());
    }
}

/// A question about a request, to the running crawlgate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    fn forwarded_for(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        std::iter::empty()
    }

    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Owned(HeaderMap::new())
    }
}

/// Its answer, for a program and for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct LiveAnswer {
    pub explanation: serde_json::Value,
    pub text: String,
}
