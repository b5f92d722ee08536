//! [`Engine`]: one policy, compiled to judge HTTP requests. It is the library's interface for
//! programs that judge each [`Request`] themselves, without the proxy. The engine reads no clock
//! and no file, and keeps no state between requests.

use crate::crawlers::Registry;
use crate::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use crate::policy::{IncludedFiles, Site, SiteEntry, Snapshot};
use crate::printable::join;
use crate::time::Timestamp;
use crate::verdict::{
    self, Action, ActionReport, CachedVersions, CachedVersionsBasis, DecisionScratch, Explanation,
    Identity, Kind, PolicyDependencies, RequestFacts, ResponseFacts, SiteClaim, Verdict,
    identity_by_policy,
};
use crate::yaml::{DEFAULTS, Diagnostic, Diagnostics, SourceFile};
use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

thread_local! {
    /// Reused buffers, so that judging does not allocate.
    static SCRATCH: RefCell<DecisionScratch> = RefCell::default();
}

/// A policy, compiled to judge requests.
///
/// ```
/// use crawlgate::{Engine, Kind, Request, Verdict};
///
/// # fn main() -> Result<(), crawlgate::PolicyError> {
/// let text = "purposes: { training: disallow }\nrobots: { origin: replace }\nenforcement: { mode: enforce }\n";
/// let engine = Engine::load(text)?.engine;
/// assert!(String::from_utf8_lossy(engine.robots_txt()).contains("User-agent: GPTBot"));
///
/// let request = Request::get("shop.example", "/").user_agent("GPTBot/1.2");
/// let decided = engine.decide(request);
/// assert_eq!((decided.verdict, decided.action.status), (Verdict::Disallowed, Some(403)));
/// // The crawler may have fetched another robots.txt before. `observed` says that it cannot have.
/// assert_eq!(decided.kind, Kind::Unproven);
/// assert_eq!(engine.decide(request.observed()).kind, Kind::Violation);
/// # Ok(())
/// # }
/// ```
pub struct Engine {
    snapshot: Snapshot,
    registry: &'static Registry,
    at: Timestamp,
}

/// An engine, and the warnings about its policy.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadedEngine {
    /// The engine.
    pub engine: Engine,
    /// Warnings and notes about the policy.
    pub warnings: Diagnostics,
    /// The policy as text, for [`Diagnostic::render`](crate::yaml::Diagnostic::render).
    pub source: SourceFile,
}

/// The error for a policy with mistakes. As text it shows each mistake in its place, as rustc does.
#[non_exhaustive]
pub struct PolicyError {
    /// The mistakes, and the warnings beside them.
    pub diagnostics: Diagnostics,
    /// The policy as text.
    pub source: SourceFile,
}

/// The options of an [`Engine`]. Begin with [`Engine::builder`].
#[must_use]
#[derive(Clone, Debug)]
pub struct EngineBuilder {
    name: String,
    registry: &'static Registry,
    origin: OriginRobotsAvailability,
    files: IncludedFiles,
    at: Option<Timestamp>,
}

/// A request to judge. Begin with [`Request::get`].
#[must_use]
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    facts: RequestFacts<'a>,
    at: Option<Timestamp>,
    basis: CachedVersionsBasis,
}

/// The decision of a policy about a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineDecision<'e> {
    /// The verdict of the rules.
    pub verdict: Verdict,
    /// The kind of the request.
    pub kind: Kind,
    /// The action for the application to take.
    pub action: ActionReport,
    /// What enforcement of this crawler would do, if the request passes only because the policy
    /// observes the crawler. Unknown bots are observed even with `mode: enforce` for the site.
    pub would: Option<ActionReport>,
    /// The id of the crawler that the user agent claims to be, or the token that the policy has for
    /// it. `None` for a browser, and for a host that is not in the policy's `hosts`.
    pub crawler: Option<&'e str>,
    engine: &'e Engine,
    decision: Option<verdict::Decision>,
}

impl Engine {
    /// Compiles a policy. `docs/policy.md` describes its language. [`Engine::builder`] has more
    /// options.
    ///
    /// # Errors
    /// [`PolicyError`] when the text has a mistake.
    pub fn load(text: &str) -> Result<LoadedEngine, PolicyError> {
        Engine::builder().load(text)
    }

    /// The options of an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder {
            name: "policy.yaml".to_owned(),
            registry: Registry::builtin(),
            origin: OriginRobotsAvailability::Missing,
            files: IncludedFiles::default(),
            at: None,
        }
    }

    /// Judges a request. If the host is not in the policy's `hosts`, the request passes as
    /// [`Verdict::NotACrawler`].
    pub fn decide(&self, request: Request<'_>) -> EngineDecision<'_> {
        let facts = self.facts(&request);
        let cached_versions = CachedVersions {
            basis: request.basis,
            ..CachedVersions::default()
        };
        let decision = SCRATCH.with_borrow_mut(|scratch| {
            verdict::decide(
                &self.snapshot,
                self.registry,
                &facts,
                &cached_versions,
                scratch,
            )
        });
        let site = self.site();
        let decided = decision.as_ref();
        let action = decided.map_or(Action::Pass, |decision| decision.action);
        let would = decided.and_then(|decision| decision.would);
        EngineDecision {
            verdict: decided.map(|decision| decision.verdict).unwrap_or_default(),
            kind: decided.map(|decision| decision.kind).unwrap_or_default(),
            action: verdict::action_report(action, site),
            would: would.map(|would| verdict::action_report(would, site)),
            crawler: decided.and_then(|decision| {
                verdict::claim_label(decision.claim, self.registry, Some(site))
            }),
            engine: self,
            decision,
        }
    }

    /// Judges a request and says why. The user agent may be the bare name or token of a crawler.
    /// `response` is what the origin answers: the lines of X-Robots-Tag depend on it.
    pub fn explain(&self, request: Request<'_>, response: &ResponseFacts<'_>) -> Explanation {
        verdict::explain(
            &self.snapshot,
            self.registry,
            &self.facts(&request),
            request.basis,
            response,
        )
    }

    /// The robots.txt that the policy publishes.
    pub fn robots_txt(&self) -> &[u8] {
        &self.site().robots_txt.body
    }

    /// When the policy next changes by its own dates: rules are retired, or a pause ends. Load the
    /// policy again then, with [`EngineBuilder::evaluated_at`]. When a pause begins, the engine
    /// applies it by itself: you need not load the policy again.
    pub fn next_switch(&self) -> Option<Timestamp> {
        self.snapshot.next_switch()
    }

    fn site(&self) -> &Site {
        &self.snapshot.sites()[0].site
    }

    fn facts<'a>(&self, request: &Request<'a>) -> RequestFacts<'a> {
        let mut facts = RequestFacts {
            now: request.at.unwrap_or(self.at),
            ..request.facts
        };
        if facts.client.is_some()
            && facts.identity == Identity::Unverified
            && let Some(claimant) = SiteClaim::find(&self.snapshot, self.registry, &facts)
        {
            facts.identity = identity_by_policy(self.site(), &facts, claimant.claim, true);
        }
        facts
    }
}

impl EngineBuilder {
    /// The name of the policy in messages. `policy.yaml` by default.
    pub fn name(self, name: impl Into<String>) -> EngineBuilder {
        EngineBuilder {
            name: name.into(),
            ..self
        }
    }

    /// The known crawlers. [`Registry::builtin`] by default. [`Registry::with_records`] adds
    /// crawlers of your own.
    pub fn registry(self, registry: &'static Registry) -> EngineBuilder {
        EngineBuilder { registry, ..self }
    }

    /// The application's own robots.txt, for policies with `robots.origin: merge` (the default) or
    /// `only`. Without this file, the engine judges by the policy alone.
    pub fn origin_robots_txt(self, bytes: &[u8]) -> EngineBuilder {
        let file = OriginRobotsTxt::new("(robots.txt of the application)", bytes);
        EngineBuilder {
            origin: OriginRobotsAvailability::Available(Arc::new(file)),
            ..self
        }
    }

    /// The content of a file that the policy names, such as that of `robots.previous`. A file called
    /// `defaults.yaml` adds its fields to the policy, as in a directory. The engine itself reads no
    /// files.
    pub fn file(mut self, name: &str, bytes: &[u8]) -> EngineBuilder {
        self.files.0.insert(name.to_owned(), bytes.into());
        self
    }

    /// The time at which the policy is loaded. Each path in `retire` is at the stage that it has at
    /// this time. The engine knows the pauses around this time. Whether one of them is in force
    /// depends on the time of each request ([`Request::received_at`]). Without this call the engine
    /// knows no pauses, and nothing is retired.
    pub fn evaluated_at(self, now: Timestamp) -> EngineBuilder {
        EngineBuilder {
            at: Some(now),
            ..self
        }
    }

    /// Compiles a policy.
    ///
    /// # Errors
    /// [`PolicyError`] when the text has a mistake.
    pub fn load(self, text: &str) -> Result<LoadedEngine, PolicyError> {
        let EngineBuilder {
            name,
            registry,
            origin,
            files,
            at,
        } = self;
        let mut source = SourceFile {
            name: name.as_str().into(),
            text: text.into(),
        };
        if let Some(defaults) = files.0.get(DEFAULTS) {
            let Ok(defaults) = std::str::from_utf8(defaults) else {
                let mut diagnostics = Diagnostics::default();
                diagnostics.push(Diagnostic::whole_file(
                    "not-utf8",
                    "defaults.yaml is not UTF-8",
                ));
                return Err(PolicyError {
                    diagnostics,
                    source,
                });
            };
            source.append_defaults(DEFAULTS, defaults);
        }
        let surroundings = PolicyDependencies {
            origin: &origin,
            files: &files,
        };
        let compiled_for = at.unwrap_or(Timestamp(i64::MIN));
        let site_name = name
            .rsplit_once('.')
            .map_or(name.as_str(), |(stem, _)| stem);
        let (site, diagnostics) =
            verdict::load_site_at(site_name, &source, surroundings, registry, compiled_for);
        let Some(site) = site else {
            return Err(PolicyError {
                diagnostics,
                source,
            });
        };
        let now = at.unwrap_or_default();
        let pauses = crate::policy::planned_pause::pauses_around(&site.policy, at);
        let entry = SiteEntry::new(site, now).with_pauses(pauses, now);
        let engine = Engine {
            snapshot: Snapshot::new(vec![entry], 0),
            registry,
            at: now,
        };
        Ok(LoadedEngine {
            engine,
            warnings: diagnostics,
            source,
        })
    }
}

impl<'a> Request<'a> {
    /// A GET of `target` (path and query) at `host` (with or without a port), as text or bytes.
    pub fn get(
        host: &'a (impl AsRef<[u8]> + ?Sized),
        target: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Request<'a> {
        let facts = RequestFacts {
            host: host.as_ref(),
            target: target.as_ref(),
            method: b"GET",
            user_agent: b"",
            client: None,
            identity: Identity::Unverified,
            now: Timestamp::default(),
        };
        Request {
            facts,
            at: None,
            basis: CachedVersionsBasis::Unknown,
        }
    }

    /// Sets another method than GET.
    pub fn method(mut self, method: &'a (impl AsRef<[u8]> + ?Sized)) -> Request<'a> {
        self.facts.method = method.as_ref();
        self
    }

    /// Sets the value of `User-Agent`. Without one the request counts as a tool's.
    pub fn user_agent(mut self, user_agent: &'a (impl AsRef<[u8]> + ?Sized)) -> Request<'a> {
        self.facts.user_agent = user_agent.as_ref();
        self
    }

    /// Sets the client's address. If the policy lists `networks` of the crawler, the address shows
    /// whether the client is that crawler. [`Request::identity`] overrides this, except with
    /// `Unverified`.
    pub fn client(mut self, address: IpAddr) -> Request<'a> {
        self.facts.client = Some(address);
        self
    }

    /// Sets whether the client is the crawler that it claims to be. [`Identity::Unverified`] by
    /// default.
    pub fn identity(mut self, identity: Identity) -> Request<'a> {
        self.facts.identity = identity;
        self
    }

    /// Sets the time of the request. By default it is the time of [`EngineBuilder::evaluated_at`].
    pub fn received_at(mut self, now: Timestamp) -> Request<'a> {
        self.at = Some(now);
        self
    }

    /// Declares that crawlers can have cached only the robots.txt of this policy. Without this call
    /// a disallowed request is [`Kind::Unproven`](crate::Kind::Unproven). With it, the request is a
    /// [`Kind::Violation`](crate::Kind::Violation).
    pub fn observed(mut self) -> Request<'a> {
        self.basis = CachedVersionsBasis::Observed;
        self
    }
}

impl EngineDecision<'_> {
    /// The lines of X-Robots-Tag that the policy adds to a response with this status and content
    /// type, if the request passes.
    pub fn x_robots_tag(&self, status: u16, content_type: Option<&str>) -> Vec<String> {
        let Some(decision) = &self.decision else {
            return Vec::new();
        };
        let tags = self.engine.site().tags.tags(
            &decision.path_rules,
            status,
            content_type.map(str::as_bytes),
        );
        tags.map(|tags| tags.lines.to_vec()).unwrap_or_default()
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.diagnostics.items.iter();
        let texts = items.map(|diagnostic| diagnostic.render(&self.source, false));
        f.write_str(&join(texts, "\n\n"))
    }
}

debug_as_display!(PolicyError);

impl Error for PolicyError {}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("site", &self.site().name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Engine, Request};
    use crate::time::Timestamp;
    use crate::verdict::{ActionKind, Identity, Kind, ResponseFacts, Verdict};

    #[test]
    fn rejected_policy_shows_every_mistake() {
        let rejected = Engine::builder()
            .name("shop.yaml")
            .load("purposes: { trainin: disallow }\nhost: x\n");
        let rejected = rejected.expect_err("two mistakes");
        let text = rejected.to_string();
        assert_eq!(rejected.diagnostics.items.len(), 2, "{text}");
        assert!(
            text.contains("shop.yaml:1:13") && text.contains("shop.yaml:2:1"),
            "{text}"
        );
    }

    #[test]
    fn file_that_the_policy_names_is_not_missing() {
        let builder = Engine::builder().file("before.txt", b"User-agent: *\nDisallow: /\n");
        let policy = "robots: { origin: replace, previous: before.txt }\n";
        let is_missing = |builder: super::EngineBuilder| {
            let warnings = builder.load(policy).expect("a policy").warnings;
            warnings.items.iter().any(|item| item.id == "missing-file")
        };
        assert!(is_missing(Engine::builder()) && !is_missing(builder));
    }

    #[test]
    fn defaults_apply_unless_the_policy_has_its_own() {
        let load = |defaults: &str, policy| {
            let builder = Engine::builder().file("defaults.yaml", defaults.as_bytes());
            builder.load(policy)
        };
        let defaults = "purposes: { training: disallow, seo: disallow }\n";
        let loaded = load(defaults, "purposes: { training: allow }").expect("a policy");
        for (user_agent, is_disallowed) in [("GPTBot/1.2", false), ("AhrefsBot/7.0", true)] {
            let request = Request::get("shop.example", "/").user_agent(user_agent);
            let verdict = loaded.engine.decide(request).verdict;
            assert_eq!(verdict == Verdict::Disallowed, is_disallowed, "{verdict:?}");
        }
        let rejected = load("\nhost: x\n", "purposes: { training: allow }");
        let text = rejected.expect_err("a mistake").to_string();
        assert!(text.contains("defaults.yaml:2:1"), "{text}");
        let builder = Engine::builder().file("defaults.yaml", b"# \xff\n");
        let rejected = builder.load("purposes: { training: allow }").err();
        let found = rejected.expect("a mistake").diagnostics;
        assert_eq!(found.items[0].id, "not-utf8");
    }

    #[test]
    fn request_for_another_host_passes() {
        let engine = Engine::load("hosts: [shop.example]\npurposes: { training: disallow }\n")
            .expect("a policy")
            .engine;
        let decided =
            engine.decide(Request::get("elsewhere.example", "/").user_agent("GPTBot/1.2"));
        assert_eq!(
            (decided.verdict, decided.action.kind),
            (Verdict::NotACrawler, ActionKind::Pass)
        );
    }

    #[test]
    fn networks_of_the_policy_show_who_a_client_is() {
        let policy = "crawlers: [{ token: GPTBot, networks: 20.0.0.0/8 }]\n\
                      robots: { origin: replace, groups: [{ agents: GPTBot, disallow: /a }] }\n";
        let engine = Engine::load(policy).expect("a policy").engine;
        for (client, identity, kind) in [
            ("20.1.1.1", Identity::Verified, Kind::Violation),
            ("9.9.9.9", Identity::Impostor, Kind::Impostor),
        ] {
            let client = client.parse().expect("an address");
            let request = Request::get("shop.example", "/a").user_agent("GPTBot/1.2");
            let request = request.client(client).observed();
            let explained = engine.explain(request, &ResponseFacts::default());
            assert_eq!((explained.identity, explained.kind), (identity, kind));
            assert_eq!(engine.decide(request).kind, kind);
        }
    }

    #[test]
    fn planned_pause_starts_on_time() {
        let text = "pause: { from: 2026-12-01T01:00:00Z, until: 2026-12-01T02:00:00Z }\n";
        let moment = |text| Timestamp::parse(text).expect("a moment");
        let loaded = Engine::builder()
            .evaluated_at(moment("2026-12-01T00:00:00Z"))
            .load(text);
        let engine = loaded.expect("a policy").engine;
        assert_eq!(engine.next_switch(), Some(moment("2026-12-01T02:00:00Z")));
        let request = Request::get("shop.example", "/").user_agent("GPTBot/1.2");
        assert_eq!(engine.decide(request).action.status, None);
        assert_eq!(
            engine
                .decide(request.received_at(moment("2026-12-01T01:30:00Z")))
                .action
                .status,
            Some(503)
        );
    }
}
