//! [`GateLayer`]: crawlgate as a tower layer. It wraps the services of an application, so that
//! requests are judged before a service gets them. [`GateBuilder`] has its options, and
//! [`GateBuilder::open`] loads the policies and starts the threads.

use super::record_sink::RecordSink;
use super::service::Gate;
use super::state::{GateState, PeerAddress};
use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::facts::StoredFacts;
use crate::finding::Finding;
use crate::identity::IdentityVerifier;
use crate::judge::RequestLogs;
use crate::numbers::plural;
use crate::policy::origin::OriginRobotsTxt;
use crate::printable::printable_path;
use crate::requests::{RequestPipeline, RequestSettings};
use crate::scheduler::Scheduler;
use crate::settings::{
    AccessFormat, AddressDetail, ClientAddressField, EventSettings, LogDestination,
};
use crate::sites::policy_directory::{list_policies, site_name};
use crate::sites::{SiteLoadOptions, SitesStatus};
use crate::state::StateStore;
use crate::telemetry::{AccessLog, EventLog};
use crate::upkeep::{Instance, InstanceInputs, InstanceUpkeep, UpkeepThreads};
use crate::verdict::Kind;
use crate::yaml::SourceFile;
use http::{Extensions, HeaderName};
use ipnet::IpNet;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tower_layer::Layer;

/// What messages call the application's own robots.txt.
const OWN_ROBOTS_TXT: &str = "(robots.txt of the application)";

/// After so many requests of crawlers without one for robots.txt, these probably do not reach the
/// gate. Crawlers cache robots.txt for a day, so it is not the first request after each start.
const MIN_CRAWLER_REQUESTS: u64 = 1_000;

/// The gate as a tower layer. Cloning is cheap, and clones share everything.
///
/// The gate ends when the last clone and the last service that it wraps are dropped. Then its
/// threads stop, and it writes its logs and its state.
#[derive(Clone)]
pub struct GateLayer(pub(super) Arc<GateState>);

impl GateLayer {
    /// Loads the policies of a directory, and follows their changes.
    ///
    /// # Errors
    /// See [`OpenError`]. The error names the file and line of each mistake in a policy.
    pub fn open(policies: impl AsRef<Path>) -> Result<GateLayer, OpenError> {
        GateLayer::builder(policies).open()
    }

    /// The options of a gate with the policies of a directory. [`GateBuilder::open`] opens it.
    pub fn builder(policies: impl AsRef<Path>) -> GateBuilder {
        let mut builder = GateBuilder::default();
        builder.sites.policies = policies.as_ref().to_owned();
        builder
    }

    /// Ends the policy of a site whose file was deleted. `site` is the file's name without its
    /// ending: `shop` for `shop.yaml`. Without this call its last good policy stays in force. This
    /// blocks: it compiles policies.
    ///
    /// # Errors
    /// There is no such site, or its policy file still exists.
    pub fn remove_site(&self, site: &str) -> Result<(), RemoveSiteError> {
        let removed = self.0.upkeep.remove(&[site.to_owned()]);
        removed
            .map(drop)
            .map_err(|error| RemoveSiteError(Box::new(error)))
    }

    /// What needs attention now: a policy file that is gone or has mistakes, a log or a state
    /// directory that cannot be used, requests without the address of the peer, crawlers that never
    /// request robots.txt, and the like. Empty if all is well. This blocks for less than a
    /// millisecond.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), crawlgate::middleware::OpenError> {
    /// use crawlgate::middleware::GateLayer;
    ///
    /// let gate = GateLayer::open("policies")?;
    /// for problem in gate.problems() {
    ///     eprintln!("{}: {}", problem.id, problem.message);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn problems(&self) -> Vec<Finding> {
        let status = self.status();
        let rejected = status.sites.into_iter().filter(|site| !site.reload_ok);
        let findings = rejected.flat_map(|site| site.findings);
        status.warnings.into_iter().chain(findings).collect()
    }

    /// The status of the sites, also with the problem that `/robots.txt` does not reach the gate.
    fn status(&self) -> SitesStatus {
        let upkeep = &self.0.upkeep;
        let mut status = upkeep.status();
        let mut from_crawlers = 0;
        upkeep.instance.metrics.counts.for_each(|_, _, _, cells| {
            for (kind, _, requests) in cells.requests() {
                if kind != Kind::NotACrawler.into() {
                    from_crawlers += requests;
                }
            }
        });
        if !self.0.robots_txt_requested.load(Ordering::Relaxed)
            && from_crawlers >= MIN_CRAWLER_REQUESTS
        {
            status.warnings.push(Finding::new(
                "no-robots-txt-request",
                "crawlers sent 1,000 requests since the start, but nobody requested /robots.txt. If these requests do not \
                 reach the layer, crawlers never see the rules. Add the layer to the outer router, with Router::layer and \
                 not with Router::route_layer",
            ));
        }
        status
    }

    /// All metrics of the gate in the text format of Prometheus, for a handler of the application;
    /// with the feature `metrics`. `docs/logs-and-metrics.md` describes them. This blocks for
    /// less than a millisecond.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), crawlgate::middleware::OpenError> {
    /// use crawlgate::middleware::GateLayer;
    ///
    /// let gate = GateLayer::open("policies")?;
    /// let for_metrics = gate.clone();
    /// // In a handler of the application:
    /// let text: String = for_metrics.metrics();
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "metrics")]
    pub fn metrics(&self) -> String {
        let upkeep = &self.0.upkeep;
        let status = self.status();
        upkeep.set_gauges(&status);
        let metrics = &upkeep.instance.metrics;
        let removed = status.sites.iter().filter(|site| site.removed).count();
        let failed = status.sites.iter().filter(|site| !site.reload_ok).count();
        for (problem, count) in [
            ("warning", status.warnings.len()),
            ("policy_rejected", failed - removed),
            ("policy_removed", removed),
        ] {
            let gauge = metrics.problems.with_label_values(&[problem]);
            gauge.set(count as i64);
        }
        metrics.render()
    }
}

impl fmt::Debug for GateLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateLayer").finish_non_exhaustive()
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate {
            inner,
            shared: self.0.clone(),
        }
    }
}

/// The options of a gate. Begin with [`GateLayer::builder`], or with `GateBuilder::default()` if
/// the policies are in no directory ([`GateBuilder::policy`]).
///
/// ```no_run
/// use crawlgate::middleware::GateLayer;
/// # use std::net::SocketAddr;
/// # struct ConnectInfo<T>(T);
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = GateLayer::builder("policies")
///     .peer(|extensions| Some(extensions.get::<ConnectInfo<SocketAddr>>()?.0.ip()))
///     .trusted_proxies(["10.0.0.0/8".parse()?])
///     .event_log("/var/log/shop/crawlers.jsonl")
///     .open()?;
/// # drop(gate);
/// # Ok(())
/// # }
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct GateBuilder {
    sites: SiteLoadOptions,
    state: Option<PathBuf>,
    peer: Option<PeerAddress>,
    trusted_proxies: Vec<IpNet>,
    client_address: ClientAddressField,
    access_log: LogDestination,
    events: EventSettings,
    on_record: Option<RecordSink>,
    addresses: AddressDetail,
    clock_file: Option<PathBuf>,
}

/// Why a site cannot be removed.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct RemoveSiteError(Box<dyn Error + Send + Sync>);

/// Why a gate cannot be opened. A log or a state directory that cannot be read or written is no
/// error: the gate works without it, and [`GateLayer::problems`] and the log name it. But a state
/// directory that another process uses is an error ([`OpenError::State`]).
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The policy directory cannot be read, or no policy in it can be used and the state directory
    /// has no last good one; with [`GateBuilder::strict`], a policy has a mistake. The text names
    /// each mistake with its file and line.
    #[error(transparent)]
    Policies(Box<dyn Error + Send + Sync>),
    /// Another process uses the state directory, or the system refused the thread that writes it.
    #[error(transparent)]
    State(Box<dyn Error + Send + Sync>),
    /// The system refused a thread.
    #[error("cannot start a thread of crawlgate: {0}")]
    Thread(#[source] std::io::Error),
    /// The clock file cannot be used.
    #[error(transparent)]
    Clock(Box<dyn Error + Send + Sync>),
}

debug_as_display!(OpenError, RemoveSiteError);

impl GateBuilder {
    /// Adds a policy that is part of the program, for a gate without a policy directory. `name` is
    /// its file name in messages. The site is called `name` without its ending. If a policy
    /// directory is given too and exists, only the policies in that directory count, and the log
    /// has a warning. A second policy for the same site replaces the first. `defaults.yaml` is no
    /// site: it has the fields that all these policies share. Such a policy cannot name files, as
    /// `answers` and `robots.previous` do: use a directory for them.
    ///
    /// ```
    /// use crawlgate::middleware::GateBuilder;
    ///
    /// # fn main() -> Result<(), crawlgate::middleware::OpenError> {
    /// let policy = "purposes: { training: disallow }"; // or the text of a file
    /// let gate = GateBuilder::default().policy("shop.yaml", policy).open()?;
    /// # drop(gate);
    /// # Ok(())
    /// # }
    /// ```
    pub fn policy(mut self, name: &str, text: &str) -> GateBuilder {
        let source = SourceFile {
            name: name.into(),
            text: text.into(),
        };
        let texts = self.sites.without_directory.get_or_insert_default();
        texts.insert(site_name(Path::new(name)), Ok(source));
        self
    }

    /// Makes [`GateBuilder::open`] fail if any policy has a mistake, even if others can be used or
    /// the state directory has a last good one.
    pub fn strict(mut self) -> GateBuilder {
        self.sites.strict = true;
        self
    }

    /// The directory for what outlasts a restart. Without it every start is a first day: for 24
    /// hours no request counts as a violation. Needs the feature `state`.
    #[cfg(feature = "state")]
    pub fn state(mut self, directory: impl Into<PathBuf>) -> GateBuilder {
        self.state = Some(directory.into());
        self
    }

    /// A function that finds the address of the connection's other end in the extensions of a
    /// request. Without an address no crawler is verified, traps mark no client, and no client has
    /// a crawl rate. The log says so once. [`GateLayer::problems`] says so while the last request
    /// had no address.
    pub fn peer(mut self, peer: fn(&Extensions) -> Option<IpAddr>) -> GateBuilder {
        self.peer = Some(peer);
        self
    }

    /// Networks of proxies in front of the application. They name the client in `X-Forwarded-For`,
    /// or in the field of [`GateBuilder::client_address`]. If a proxy names no client, the client's
    /// address is unknown. Then the logs show the proxy's address, and for a crawler the doubt
    /// `client_unknown`. A network has a length, also that of a single address:
    /// `"10.0.0.1/32".parse()?`.
    pub fn trusted_proxies(mut self, networks: impl IntoIterator<Item = IpNet>) -> GateBuilder {
        self.trusted_proxies = networks.into_iter().collect();
        self
    }

    /// The field in which trusted proxies name the client: `X-Forwarded-For` by default. The gate
    /// reads no other field.
    pub fn client_address(mut self, field: HeaderName) -> GateBuilder {
        self.client_address = ClientAddressField(field);
        self
    }

    /// The rules that the application itself has, as the text of a robots.txt. Policies with
    /// `robots.origin: merge` or `only` use them. The gate never asks the application for
    /// `/robots.txt`.
    pub fn robots_txt(mut self, text: impl Into<Vec<u8>>) -> GateBuilder {
        let text: Vec<u8> = text.into();
        let file = OriginRobotsTxt::new(OWN_ROBOTS_TXT, text);
        self.sites.origins.for_every_site = Some(Arc::new(file));
        self
    }

    /// Writes a JSON line for each request to this file.
    pub fn access_log(mut self, file: impl Into<PathBuf>) -> GateBuilder {
        self.access_log = LogDestination::File(file.into());
        self
    }

    /// Writes a JSON line for each request against the rules or without a licence to this file, at
    /// most 100 a second.
    pub fn event_log(mut self, file: impl Into<PathBuf>) -> GateBuilder {
        self.events.destination = LogDestination::File(file.into());
        self
    }

    /// A function that gets the record of each request when it is over: a JSON object with the
    /// fields of a line of the access log (`docs/logs-and-metrics.md`), with or without an access
    /// log. The function runs where the response body is dropped, so it must not block or panic.
    /// Making the object takes about 4 us. If you need only metrics or events, use
    /// `GateLayer::metrics` or [`GateBuilder::event_log`].
    ///
    /// ```no_run
    /// use crawlgate::middleware::GateLayer;
    ///
    /// # fn main() -> Result<(), crawlgate::middleware::OpenError> {
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let gate = GateLayer::builder("policies")
    ///     .on_record(move |record| {
    ///         if record["kind"] == "violation" {
    ///             let _ = sender.send(record["crawler"].clone());
    ///         }
    ///     })
    ///     .open()?;
    /// # drop((gate, receiver));
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_record(
        mut self,
        call: impl Fn(&serde_json::Value) + Send + Sync + 'static,
    ) -> GateBuilder {
        self.on_record = Some(RecordSink {
            call: Arc::new(call),
            addresses: AddressDetail::Full,
        });
        self
    }

    /// Cuts client addresses in logs and records to /24 (IPv6: /48).
    pub fn truncate_addresses(mut self) -> GateBuilder {
        self.addresses = AddressDetail::Network;
        self
    }

    /// A file that shifts the clock, for tests: `elapsed 25h` lets a day and an hour pass,
    /// `set -2h` sets the time back. Each value is the total since the start. The file is read
    /// again within 20 ms of each change. If its text is neither form, the clock keeps its last
    /// setting, and the log has a warning.
    pub fn clock_file(mut self, file: impl Into<PathBuf>) -> GateBuilder {
        self.clock_file = Some(file.into());
        self
    }

    /// Loads the policies and starts the threads that follow their changes. This blocks: it
    /// compiles policies.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(mut self) -> Result<GateLayer, OpenError> {
        if let Some(texts) = &mut self.sites.without_directory
            && let Some(Ok(defaults)) = texts.remove("defaults")
        {
            for policy in texts.values_mut().flatten() {
                policy.append_defaults(&defaults.name, &defaults.text);
            }
        }
        let clock = self
            .clock_file
            .as_deref()
            .map_or_else(|| Ok(Clock::default()), Clock::following_file)
            .map_err(|error| OpenError::Clock(Box::new(error)))?;
        let started = clock.moment();
        let of_store = clock.clone();
        let opened = StateStore::open(self.state.as_deref(), Arc::new(move || of_store.moment()));
        let (store, remembered) = opened.map_err(|error| OpenError::State(Box::new(error)))?;
        if remembered.facts == StoredFacts::default() {
            self.require_policy()?;
        }
        let own_robots_txt = &mut self.sites.origins.for_every_site;
        own_robots_txt.get_or_insert_with(|| Arc::new(OriginRobotsTxt::new(OWN_ROBOTS_TXT, [])));
        let logs = self.logs()?;
        let policies = self.sites.policies.clone();
        let parts = InstanceInputs {
            clock,
            started,
            store: &store,
            restored: &remembered,
            sites: self.sites,
            new_hosts: Vec::new(),
            proofs: Arc::new(IdentityVerifier::with_policy_networks_only(
                Registry::builtin(),
            )),
            logs,
        };
        let instance = parts
            .open()
            .map_err(|error| OpenError::Policies(Box::new(error)))?;
        let sites = instance.sites.snapshot().sites().len();
        tracing::info!("serving {}", plural(sites, "site"));
        instance.log_first_day(&remembered, started.now);
        warn_about_html(&instance);
        let upkeep = InstanceUpkeep::new(instance.clone(), store.clone());
        let reloading = upkeep.clone();
        let keeping = upkeep.clone();
        let scheduler = Scheduler::start().map_err(OpenError::Thread)?;
        scheduler.add("planned-changes", move |_| {
            Some(keeping.apply_due_changes())
        });
        let threads = UpkeepThreads::start(
            instance.clone(),
            store.clone(),
            &policies,
            scheduler,
            move || {
                reloading.reload();
                warn_about_html(&reloading.instance);
            },
        );
        let settings = RequestSettings {
            trusted_proxies: self.trusted_proxies,
            client_address: self.client_address,
            ..RequestSettings::default()
        };
        let requests = RequestPipeline::new(
            instance.judge.clone(),
            instance.recorder.clone(),
            instance.clock.clone(),
            settings,
        );
        Ok(GateLayer(Arc::new(GateState {
            requests,
            upkeep,
            robots_txt_requested: AtomicBool::default(),
            peer: self.peer,
            store,
            threads: Some(threads.map_err(OpenError::Thread)?),
        })))
    }

    /// Fails for a directory without a policy file, and if there is neither a directory nor a
    /// policy. With stored facts there may be last good policies, and then the directory may be
    /// empty.
    fn require_policy(&self) -> Result<(), OpenError> {
        let sites = &self.sites;
        let problem = if sites.policies.as_os_str().is_empty()
            && sites.without_directory.iter().flatten().next().is_none()
        {
            "there is no policy: call GateBuilder::policy, or begin with GateLayer::builder(DIRECTORY)"
                .to_owned()
        } else if list_policies(&sites.policies).is_ok_and(|files| files.is_empty()) {
            let directory = printable_path(&sites.policies);
            format!(
                "there is no policy (*.yaml) in {directory}. Put one there, like shop.yaml with \"hosts: [shop.example]\""
            )
        } else {
            return Ok(());
        };
        Err(OpenError::Policies(problem.into()))
    }

    /// Opens the logs that have a file. Addresses in the history are always cut to their network.
    fn logs(&self) -> Result<RequestLogs, OpenError> {
        let mut logs = RequestLogs::off();
        logs.access = AccessLog::open(&self.access_log, AccessFormat::Json, self.addresses)
            .map_err(OpenError::Thread)?;
        logs.events = EventLog::open(&self.events, self.addresses, AddressDetail::Network)
            .map_err(OpenError::Thread)?;
        if let Some(sink) = &self.on_record {
            logs.sinks.push(Arc::new(RecordSink {
                addresses: self.addresses,
                ..sink.clone()
            }));
        }
        Ok(logs)
    }
}

/// Logs a warning for each policy with `html`, in a build that cannot rewrite pages.
fn warn_about_html(instance: &Instance) {
    if cfg!(feature = "html") {
        return;
    }
    for entry in instance
        .sites
        .snapshot()
        .sites()
        .iter()
        .filter(|entry| entry.site.html.is_some())
    {
        let site = entry.site.name.as_str();
        tracing::warn!(
            site,
            "\"html\" of the policy has no effect: crawlgate is built without its feature \"html\""
        );
    }
}
