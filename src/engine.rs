//! [`Engine`]: one policy, ready to judge requests. It is the interface for programs that judge
//! requests themselves: it reads no clock and no file, and remembers nothing from one [`Request`]
//! to the next.

use crate::crawlers::Registry;
use crate::policy::origin::{Origin, OriginFile};
use crate::policy::{IncludedFiles, Site, SiteEntry, Snapshot};
use crate::time::Timestamp;
use crate::verdict::{
    self, Action, ActionReport, CachedVersions, Explanation, Facts, HistoryBasis, Identity, Kind,
    ResponseFacts, Scratch, Surroundings, Verdict,
};
use crate::yaml::{Diagnostics, Source};
use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

thread_local! {
    /// Judging allocates nothing once this has grown.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// A policy, ready to judge requests.
///
/// ```
/// use crawlgate::{Engine, Kind, Request, Verdict};
///
/// # fn main() -> Result<(), crawlgate::Rejected> {
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
pub struct Loaded {
    /// The engine.
    pub engine: Engine,
    /// Warnings and notes about the policy.
    pub warnings: Diagnostics,
    /// The policy as text, for [`Diagnostic::render`](crate::yaml::Diagnostic::render).
    pub source: Source,
}

/// A policy with mistakes. As text it shows each mistake in its place, as rustc does.
#[non_exhaustive]
pub struct Rejected {
    /// The mistakes, and the warnings beside them.
    pub diagnostics: Diagnostics,
    /// The policy as text.
    pub source: Source,
}

/// The options of an [`Engine`]. Begin with [`Engine::builder`].
#[must_use]
#[derive(Clone, Debug)]
pub struct EngineBuilder {
    name: String,
    registry: &'static Registry,
    origin: Origin,
    at: Option<Timestamp>,
}

/// A request as it came. Begin with [`Request::get`].
#[must_use]
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    facts: Facts<'a>,
    at: Option<Timestamp>,
    basis: HistoryBasis,
}

/// The decision of a policy about a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Decided<'e> {
    /// The verdict of the rules.
    pub verdict: Verdict,
    /// The kind of the request.
    pub kind: Kind,
    /// The action that the application is to take.
    pub action: ActionReport,
    /// What `mode: enforce` would do, where `mode: observe` lets the request pass.
    pub would: Option<ActionReport>,
    /// The id of the crawler that the user agent claims to be, or the token that the policy has for
    /// it. `None` for a person, and where the policy does not hold for the host.
    pub crawler: Option<&'e str>,
    engine: &'e Engine,
    decision: Option<verdict::Decision>,
}

impl Engine {
    /// Reads a policy. `docs/policy.md` describes its language. [`Engine::builder`] has more
    /// options.
    ///
    /// # Errors
    /// [`Rejected`] when the text has a mistake.
    pub fn load(text: &str) -> Result<Loaded, Rejected> {
        Engine::builder().load(text)
    }

    /// The options of an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder {
            name: "policy.yaml".to_owned(),
            registry: Registry::builtin(),
            origin: Origin::Unknown,
            at: None,
        }
    }

    /// Judges a request. Where the policy has `hosts` and the request's host is not among them, the
    /// request passes.
    pub fn decide(&self, request: Request<'_>) -> Decided<'_> {
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
        Decided {
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
    /// `response` is what the origin answers: X-Robots-Tag depends on it.
    pub fn explain(&self, request: Request<'_>, response: &ResponseFacts<'_>) -> Explanation {
        verdict::explain(
            &self.snapshot,
            self.registry,
            &self.facts(&request),
            response,
        )
    }

    /// The robots.txt that the policy publishes.
    pub fn robots_txt(&self) -> &[u8] {
        &self.site().robots_txt.body
    }

    /// When the policy changes by its own dates: rules are retired, or a pause ends and the next
    /// one is computed. Load the policy again then, with [`EngineBuilder::at`].
    pub fn next_switch(&self) -> Option<Timestamp> {
        self.snapshot.next_switch()
    }

    fn site(&self) -> &Site {
        &self.snapshot.sites()[0].site
    }

    fn facts<'a>(&self, request: &Request<'a>) -> Facts<'a> {
        Facts {
            now: request.at.unwrap_or(self.at),
            ..request.facts
        }
    }
}

impl EngineBuilder {
    /// The name of the policy in messages. `policy.yaml` unless said.
    pub fn name(self, name: impl Into<String>) -> EngineBuilder {
        EngineBuilder {
            name: name.into(),
            ..self
        }
    }

    /// The known crawlers. [`Registry::builtin`] unless said.
    pub fn registry(self, registry: &'static Registry) -> EngineBuilder {
        EngineBuilder { registry, ..self }
    }

    /// The robots.txt that the application has itself, for policies with `robots.origin: merge`
    /// (the default) or `only`. Unless said, it is not known, and the policy stands alone.
    pub fn origin_robots_txt(self, bytes: &[u8]) -> EngineBuilder {
        let file = OriginFile::new("(robots.txt of the application)", bytes);
        EngineBuilder {
            origin: Origin::Read(Arc::new(file)),
            ..self
        }
    }

    /// The moment that the engine is for. Unless said, pauses and retirements of the policy have
    /// not begun.
    pub fn at(self, now: Timestamp) -> EngineBuilder {
        EngineBuilder {
            at: Some(now),
            ..self
        }
    }

    /// Reads a policy.
    ///
    /// # Errors
    /// [`Rejected`] when the text has a mistake.
    pub fn load(self, text: &str) -> Result<Loaded, Rejected> {
        let EngineBuilder {
            name,
            registry,
            origin,
            at,
        } = self;
        let source = Source {
            name: name.as_str().into(),
            text: text.into(),
        };
        let surroundings = Surroundings {
            origin: &origin,
            files: &IncludedFiles::default(),
        };
        let compiled_for = at.unwrap_or(Timestamp(i64::MIN));
        let site_name = name
            .rsplit_once('.')
            .map_or(name.as_str(), |(stem, _)| stem);
        let (site, diagnostics) =
            verdict::load_with(site_name, &source, surroundings, registry, compiled_for);
        let Some(site) = site else {
            return Err(Rejected {
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
        Ok(Loaded {
            engine,
            warnings: diagnostics,
            source,
        })
    }
}

impl<'a> Request<'a> {
    /// A GET of `target`, which is path and query, at `host`, which may have a port. Both are
    /// octets as they came: text or bytes.
    pub fn get(
        host: &'a (impl AsRef<[u8]> + ?Sized),
        target: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Request<'a> {
        let facts = Facts {
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
            basis: HistoryBasis::Unknown,
        }
    }

    /// Another method than GET.
    pub fn method(mut self, method: &'a (impl AsRef<[u8]> + ?Sized)) -> Request<'a> {
        self.facts.method = method.as_ref();
        self
    }

    /// The value of `User-Agent`. Without one the request counts as a person's.
    pub fn user_agent(mut self, user_agent: &'a (impl AsRef<[u8]> + ?Sized)) -> Request<'a> {
        self.facts.user_agent = user_agent.as_ref();
        self
    }

    /// The address of the client, which the `networks` of a policy are about. The engine does not
    /// prove with it who the client is: see [`Request::identity`].
    pub fn client(mut self, address: IpAddr) -> Request<'a> {
        self.facts.client = Some(address);
        self
    }

    /// Whether the client is the crawler that it claims to be. [`Identity::Unverified`] unless
    /// said.
    pub fn identity(mut self, identity: Identity) -> Request<'a> {
        self.facts.identity = identity;
        self
    }

    /// When the request came. Unless said, at the moment of [`EngineBuilder::at`].
    pub fn at(mut self, now: Timestamp) -> Request<'a> {
        self.at = Some(now);
        self
    }

    /// No crawler can have another robots.txt cached than this policy's. Only then is a disallowed
    /// request a violation.
    pub fn observed(mut self) -> Request<'a> {
        self.basis = HistoryBasis::Observed;
        self
    }
}

impl Decided<'_> {
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

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, diagnostic) in self.diagnostics.items.iter().enumerate() {
            let gap = if place == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{}", diagnostic.render(&self.source, false))?;
        }
        Ok(())
    }
}

/// As text: `main` prints an error that it returns in this way, and the text has lines.
impl fmt::Debug for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Rejected {}

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
    use crate::verdict::Verdict;

    #[test]
    fn a_policy_with_mistakes_is_rejected_with_each_in_its_place() {
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
    fn a_request_for_another_host_passes() {
        let engine = Engine::load("hosts: [shop.example]\npurposes: { training: disallow }\n")
            .expect("a policy")
            .engine;
        let decided =
            engine.decide(Request::get("elsewhere.example", "/").user_agent("GPTBot/1.2"));
        assert_eq!(
            (decided.verdict, decided.action.kind),
            (Verdict::NotACrawler, "pass")
        );
    }

    #[test]
    fn a_planned_pause_is_on_from_its_begin() {
        let text = "pause: { from: 2026-12-01T01:00:00Z, until: 2026-12-01T02:00:00Z }\n";
        let moment = |text| Timestamp::parse(text).expect("a moment");
        let loaded = Engine::builder()
            .at(moment("2026-12-01T00:00:00Z"))
            .load(text);
        let engine = loaded.expect("a policy").engine;
        assert_eq!(engine.next_switch(), Some(moment("2026-12-01T02:00:00Z")));
        let request = Request::get("shop.example", "/").user_agent("GPTBot/1.2");
        assert_eq!(engine.decide(request).action.status, None);
        assert_eq!(
            engine
                .decide(request.at(moment("2026-12-01T01:30:00Z")))
                .action
                .status,
            Some(503)
        );
    }
}
