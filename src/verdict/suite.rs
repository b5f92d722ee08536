//! [`run_tests`] runs a policy's own `tests:` against its compiled site. Each case that does not
//! hold becomes a [`Diagnostic`].

use super::explanation::{Explanation, ResponseFacts};
use super::identity::{Identity, identity_by_policy};
use super::report::{explain_for, report_unclaimed};
use super::{CachedVersions, Case, Claimant, Facts, HistoryBasis};
use crate::crawlers::Registry;
use crate::policy::model::{CachedByTest, KnownIdentity, Policy, PolicyTest};
use crate::policy::planned_pause::pauses_around;
use crate::policy::site::{ParsedVersion, SupersededVersion};
use crate::policy::{Site, SiteEntry, Snapshot, compile_with_origin};
use crate::time::Timestamp;
use crate::yaml::{Diagnostic, Located};
use std::borrow::Cow;
use std::sync::Arc;

/// Runs every case: a finding for each that does not hold, at its place in the policy. What goes by
/// the clock is as it is at the moment of the case; without one, as it is before any of it began,
/// so that a case holds tomorrow as it does today.
pub fn run_tests(site: &Arc<Site>, registry: &Registry) -> Vec<Diagnostic> {
    let snapshot = alone(site);
    site.policy
        .tests
        .iter()
        .flat_map(|test| {
            run(
                test,
                &at_its_moment(test, &snapshot, site, registry),
                registry,
            )
        })
        .collect()
}

/// A snapshot of the site as it is at the moment of a case; a case without a moment is before all
/// else. The site is compiled anew only if a retirement is at another stage then. Where that fails,
/// `snapshot`.
fn at_its_moment<'a>(
    test: &PolicyTest,
    snapshot: &'a Snapshot,
    site: &Arc<Site>,
    registry: &Registry,
) -> Cow<'a, Snapshot> {
    let at = test.at.unwrap_or(Timestamp(i64::MIN));
    if site.policy.next_switch(at) == site.next_switch {
        return Cow::Borrowed(snapshot);
    }
    match compile_with_origin(site.policy.clone(), &site.origin_known(), registry, at) {
        Ok(then) => Cow::Owned(alone(&Arc::new(then))),
        // Loading says so at the end of the plan.
        Err(_) => Cow::Borrowed(snapshot),
    }
}

/// The explanation of the request of a case, for tests that compare it with the running proxy.
#[cfg(feature = "internals")]
pub fn ask(test: &PolicyTest, site: &Arc<Site>, registry: &Registry) -> Explanation {
    answer(
        test,
        &at_its_moment(test, &alone(site), site, registry),
        registry,
    )
}

/// The host that a case asks for: its own, else the site's first (`www` in place of `*`), else
/// `site.test` for a site without hosts.
pub fn host_of(test: &PolicyTest, policy: &Policy) -> String {
    test.host
        .as_ref()
        .map(|host| host.value.clone())
        .or_else(|| {
            policy
                .hosts
                .first()
                .map(|host| host.to_string().replacen('*', "www", 1))
        })
        .unwrap_or_else(|| "site.test".to_owned())
}

/// A snapshot of the site alone.
fn alone(site: &Arc<Site>) -> Snapshot {
    Snapshot::new(vec![SiteEntry::new(site.clone(), Timestamp(0))], 0)
}

/// The site with the pauses around the moment of a case; a case without a moment has no pauses. A
/// pause without a beginning is left out, because its end is not known.
fn with_pauses_of(test: &PolicyTest, snapshot: &Snapshot) -> Snapshot {
    let entry = snapshot.sites()[0].clone();
    let pauses = pauses_around(&entry.site.policy, test.at);
    Snapshot::new(
        vec![entry.with_pauses(pauses, test.at.unwrap_or(Timestamp(0)))],
        0,
    )
}

/// The explanation of the request of a case, with the identity and the cached copy that the case
/// says. Without an identity the policy's networks decide; without a copy nothing is known of
/// copies, so that nothing is a violation. The response is HTML unless the case says otherwise.
fn answer(test: &PolicyTest, snapshot: &Snapshot, registry: &Registry) -> Explanation {
    let snapshot = &with_pauses_of(test, snapshot);
    let entry = &snapshot.sites()[0];
    let host = host_of(test, &entry.site.policy);
    let mut facts = Facts {
        host: host.as_bytes(),
        target: test.path.as_bytes(),
        method: b"GET",
        user_agent: test.agent.as_bytes(),
        client: test.ip,
        identity: Identity::Unverified,
        now: test.at.unwrap_or_default(),
    };
    let content_type = Some(test.content_type.as_deref().unwrap_or("text/html"));
    let response = ResponseFacts {
        status: test.status,
        content_type,
        origin_tags: &[],
    };
    let Some(claimant) = Claimant::named(snapshot, registry, &facts) else {
        return report_unclaimed(registry, &facts, &response);
    };
    facts.identity = match test.identity {
        Some(KnownIdentity::Verified) => Identity::Verified,
        Some(KnownIdentity::Impostor) => Identity::Impostor,
        Some(KnownIdentity::Unverified) => Identity::Unverified,
        None => identity_by_policy(&entry.site, &facts, claimant.claim, true),
    };
    let superseded;
    let nothing = CachedVersions {
        basis: HistoryBasis::Observed,
        ..CachedVersions::default()
    };
    let cached_versions = match &test.held {
        None => CachedVersions::default(),
        Some(CachedByTest::Nothing) => nothing,
        Some(CachedByTest::InForce) => CachedVersions {
            was_served: true,
            has_version_in_force: true,
            ..nothing
        },
        Some(CachedByTest::Superseded(text)) => {
            let parsed = Arc::new(ParsedVersion::read(Arc::from(text.as_bytes()), registry));
            superseded = [SupersededVersion {
                parsed,
                since: facts.now,
                superseded_at: facts.now,
            }];
            CachedVersions {
                versions: &superseded,
                cached: 1,
                was_served: true,
                ..nothing
            }
        }
    };
    explain_for(
        &Case {
            registry,
            facts,
            claimant,
            cached_versions,
        },
        &response,
    )
}

/// The comparison of what a case expects with the explanation that it got.
struct Comparison<'a> {
    test: &'a PolicyTest,
    got: &'a Explanation,
    failures: Vec<Diagnostic>,
}

impl Comparison<'_> {
    /// Compares a name or a number as text, and adds a failure where they differ. What the case
    /// does not expect (`None`) is not compared. `what` names it in the message, `came` is the
    /// actual value.
    fn value<T: ToString>(&mut self, expected: &Option<Located<T>>, what: &str, came: &str) {
        let Some(Located { value, span }) = expected else {
            return;
        };
        let expected = value.to_string();
        if expected == came {
            return;
        }
        let reason = self
            .got
            .rule
            .as_ref()
            .map_or("no rule decided".to_owned(), |rule| {
                format!(
                    "{}: {} decided, from {}",
                    rule.kind, rule.pattern, rule.source
                )
            });
        self.fail(
            Diagnostic::error(
                "test-failed",
                *span,
                format!("the {what} is `{came}`, not `{expected}`"),
            )
            .help(reason),
        );
    }

    /// Compares header lines and their order, and adds a failure where they differ. `what` begins
    /// the message, `none` is the text for no line.
    fn lines(&mut self, expected: &[Located<String>], came: &[String], what: &str, none: &str) {
        if expected.iter().map(|line| &line.value).eq(came) {
            return;
        }
        let span = expected.first().map_or(self.test.span, |line| line.span);
        let came = if came.is_empty() {
            none.to_owned()
        } else {
            format!("`{}`", came.join("` and `"))
        };
        let diagnostic = Diagnostic::error("test-failed", span, format!("{what} {came}"));
        self.fail(
            diagnostic.help("write the lines as they are sent, in their order; `[]` for none"),
        );
    }

    /// Adds a failure, with the request of the case as its context.
    fn fail(&mut self, diagnostic: Diagnostic) {
        let asked = format!(
            "{} asks for {}",
            self.test.agent.value, self.test.path.value
        );
        self.failures
            .push(diagnostic.related(self.test.span, asked));
    }
}

/// Runs one case: a finding for each expectation that does not hold. Action and status are those of
/// `mode: enforce`, also where the site only observes; the status of a request that passes is the
/// origin's. A host that is not the site's is the only finding then.
fn run(test: &PolicyTest, snapshot: &Snapshot, registry: &Registry) -> Vec<Diagnostic> {
    let got = answer(test, snapshot, registry);
    if got.site.is_none() {
        let span = test.host.as_ref().map_or(test.span, |host| host.span);
        return vec![Diagnostic::error(
            "test-failed",
            span,
            "this host is not one of the site's",
        )];
    }
    // The action depends on the mode; a test of the answer is about the action under `enforce`.
    let action = got.action.would.as_deref().unwrap_or(&got.action);
    let expect = &test.expect;
    let mut comparison = Comparison {
        test,
        got: &got,
        failures: Vec::new(),
    };
    comparison.value(&expect.verdict, "verdict", got.verdict.name());
    comparison.value(&expect.kind, "kind", got.kind.name());
    comparison.value(
        &expect.never_fetched,
        "mark `never_fetched`",
        &got.never_fetched.to_string(),
    );
    comparison.value(&expect.action, "action", action.kind);
    comparison.value(
        &expect.answer_status,
        "status",
        &action.status.unwrap_or(test.status).to_string(),
    );
    if let Some(lines) = &expect.tag {
        comparison.lines(lines, &got.x_robots_tag, "X-Robots-Tag is", "nothing");
    }
    if let Some(lines) = &expect.signals {
        comparison.lines(lines, &got.signals, "the signals of this response:", "none");
    }
    comparison.failures
}
