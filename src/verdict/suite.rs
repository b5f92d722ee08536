//! [`run_tests`] runs the tests that a site owner wrote into a policy (`tests:`), against the
//! compiled policy. Each expectation that is not met becomes a [`Diagnostic`].

use super::explanation::{Explanation, ResponseFacts};
use super::identity::{Identity, identity_by_policy};
use super::report::{explain_request, explain_unclaimed};
use super::unenforced_reason::UnenforcedReason;
use super::{CachedVersions, CachedVersionsBasis, RequestFacts, RequestToJudge, SiteClaim};
use crate::crawlers::Registry;
use crate::policy::model::{IdentityStatus, Policy, PolicyTest, TestCachedRobotsTxt};
use crate::policy::planned_pause::pauses_around;
use crate::policy::site::{ParsedRobotsVersion, SupersededVersion};
use crate::policy::{Site, SiteEntry, Snapshot, compile_with_origin};
use crate::robots::escape_url;
use crate::time::Timestamp;
use crate::yaml::{Diagnostic, Located};
use std::sync::Arc;

/// Added to the help of a failed test of an unknown bot.
const UNKNOWN_BOT_HINT: &str = ". Unknown bots are only observed, unless \"enforcement\" has \
                                \"purposes: { other: enforce }\". A test's \"action\" is what \
                                enforcement would do; its \"mode\" says whether it does";

/// The help for a wrong `mode`.
const MODE_HELP: &str = "the mode comes from \"enforcement\": from \"agents\", else from \"purposes\", \
                         else from \"mode\". Unknown bots are only observed, unless a line names them \
                         or \"other\". With \"unverified: observe\" so are crawlers that are not \
                         verified";

/// Runs all tests of a policy. Returns a finding for each expectation that is not met, at its place
/// in the policy. A test with `at` sees the pauses and retirements of that moment. A test without
/// `at` sees none, so its result does not change with the date.
pub fn run_tests(site: &Arc<Site>, registry: &Registry) -> Vec<Diagnostic> {
    site.policy
        .tests
        .iter()
        .flat_map(|test| run_test(test, site_at_test(test, site, registry), registry))
        .collect()
}

/// The site as it is at the moment of a test (`at`), or before all retirements without one. The
/// site is compiled again only if a retirement is at another stage then. If that fails, `site`.
fn site_at_test(test: &PolicyTest, site: &Arc<Site>, registry: &Registry) -> Arc<Site> {
    let at = test.at.unwrap_or(Timestamp(i64::MIN));
    if site.policy.next_switch(at) == site.next_switch {
        return site.clone();
    }
    match compile_with_origin(
        site.policy.clone(),
        &site.origin_availability(),
        registry,
        at,
    ) {
        Ok(then) => Arc::new(then),
        // `load_site_at` reports the errors at the end of a plan.
        Err(_) => site.clone(),
    }
}

/// The host of a test: its own, else the site's first (`www` in place of `*`), else
/// `site.test` for a site without hosts.
pub fn test_host(test: &PolicyTest, policy: &Policy) -> String {
    match (&test.host, policy.hosts.first()) {
        (Some(host), _) => host.value.clone(),
        (None, Some(host)) => host.to_string().replacen('*', "www", 1),
        (None, None) => "site.test".to_owned(),
    }
}

/// A snapshot of the site alone, with the pauses around the moment of a test; a test without a
/// moment has no pauses. A pause without a beginning is left out, because its end is not known.
fn snapshot_at_test(test: &PolicyTest, site: Arc<Site>) -> Snapshot {
    let pauses = pauses_around(&site.policy, test.at);
    let entry = SiteEntry::new(site, Timestamp(0));
    Snapshot::new(
        vec![entry.with_pauses(pauses, test.at.unwrap_or_default())],
        0,
    )
}

/// Explains the request of a test. Without `identity` the policy's networks decide. Without a
/// cached copy nothing is known of copies, so that no request is a violation. The response is HTML
/// unless the test says otherwise.
fn explain_test(test: &PolicyTest, site: Arc<Site>, registry: &Registry) -> Explanation {
    let snapshot = &snapshot_at_test(test, site);
    let entry = &snapshot.sites()[0];
    let host = test_host(test, &entry.site.policy);
    let target = escape_url(&test.path);
    let mut facts = RequestFacts {
        host: host.as_bytes(),
        target: target.as_bytes(),
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
    let Some(claimant) = SiteClaim::find_by_name(snapshot, registry, &facts) else {
        return explain_unclaimed(registry, &facts, &response);
    };
    facts.identity = match test.identity {
        Some(IdentityStatus::Verified) => Identity::Verified,
        Some(IdentityStatus::Impostor) => Identity::Impostor,
        Some(IdentityStatus::Unverified) => Identity::Unverified,
        None => identity_by_policy(&entry.site, &facts, claimant.claim, true),
    };
    let superseded;
    let nothing = CachedVersions {
        basis: CachedVersionsBasis::Observed,
        ..CachedVersions::default()
    };
    let cached_versions = match &test.cached {
        None => CachedVersions::default(),
        Some(TestCachedRobotsTxt::Nothing) => nothing,
        Some(TestCachedRobotsTxt::InForce) => CachedVersions {
            was_served: true,
            has_version_in_force: true,
            ..nothing
        },
        Some(TestCachedRobotsTxt::Superseded(text)) => {
            let parsed = Arc::new(ParsedRobotsVersion::parse(
                Arc::from(text.as_bytes()),
                registry,
            ));
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
    explain_request(
        &RequestToJudge {
            registry,
            facts,
            claimant,
            cached_versions,
        },
        &response,
    )
}

/// Compares what a test expects with the explanation of its request.
struct TestComparison<'a> {
    test: &'a PolicyTest,
    got: &'a Explanation,
    failures: Vec<Diagnostic>,
}

impl TestComparison<'_> {
    /// Compares a name or a number as text, and adds a failure if they differ. Without an
    /// expectation (`None`) nothing is compared. `what` names the value in the message.
    fn compare_value<T: ToString>(
        &mut self,
        expected: &Option<Located<T>>,
        what: &str,
        came: &str,
    ) {
        let Some(Located { value, span }) = expected else {
            return;
        };
        let expected = value.to_string();
        if expected == came {
            return;
        }
        let message = format!("the {what} is \"{came}\", not \"{expected}\"");
        let diagnostic = Diagnostic::error("test-failed", *span, message);
        self.add_failure(diagnostic.help(self.value_help(what)));
    }

    /// Why the request has another value than expected.
    fn value_help(&self, what: &str) -> String {
        if what == "mode" {
            return MODE_HELP.to_owned();
        }
        let mut reason = format!(
            "the request is {}: {}",
            self.got.verdict.name(),
            self.got.reason()
        );
        if let Some(rule) = &self.got.rule {
            reason += &format!(
                ". The rule is \"{}: {}\", from {}",
                rule.kind, rule.pattern, rule.source
            );
        }
        if self.got.observed == Some(UnenforcedReason::Unlisted) {
            reason += UNKNOWN_BOT_HINT;
        }
        reason
    }

    /// Compares header lines and their order, and adds a failure if they differ. `what` begins
    /// the message, `none` is the text for no line.
    fn compare_lines(
        &mut self,
        expected: &[Located<String>],
        came: &[String],
        what: &str,
        none: &str,
    ) {
        if expected.iter().map(|line| &line.value).eq(came) {
            return;
        }
        let span = expected.first().map_or(self.test.span, |line| line.span);
        let came = if came.is_empty() {
            none.to_owned()
        } else {
            format!("\"{}\"", came.join("\" and \""))
        };
        let diagnostic = Diagnostic::error("test-failed", span, format!("{what} {came}"));
        self.add_failure(
            diagnostic.help(
                "write the lines as crawlgate sends them, in the same order; \"[]\" for none",
            ),
        );
    }

    /// Adds a failure, with the request of the test as its context.
    fn add_failure(&mut self, diagnostic: Diagnostic) {
        let asked = format!(
            "{} requests {}",
            self.test.agent.value, self.test.path.value
        );
        self.failures
            .push(diagnostic.related(self.test.span, asked));
    }
}

/// Runs one test and returns a finding for each expectation that is not met. Action and status are
/// those of enforcement, also if the crawler is only observed. The status of a request that passes is
/// the origin's. If the host is not the site's, that is the only finding.
fn run_test(test: &PolicyTest, site: Arc<Site>, registry: &Registry) -> Vec<Diagnostic> {
    let got = explain_test(test, site, registry);
    if got.site.is_none() {
        let span = test.host.as_ref().map_or(test.span, |host| host.span);
        return vec![Diagnostic::error(
            "test-failed",
            span,
            "the site does not have this host",
        )];
    }
    // A test of the answer is about enforcement; only `mode` depends on the mode.
    let action = got.action.would.as_deref().unwrap_or(&got.action);
    let expect = &test.expect;
    let mut comparison = TestComparison {
        test,
        got: &got,
        failures: Vec::new(),
    };
    comparison.compare_value(&expect.verdict, "verdict", got.verdict.name());
    comparison.compare_value(&expect.kind, "kind", got.kind.name());
    comparison.compare_value(
        &expect.never_fetched,
        "mark \"never_fetched\"",
        &got.never_fetched.to_string(),
    );
    comparison.compare_value(&expect.action, "action", action.kind.name());
    comparison.compare_value(&expect.mode, "mode", got.mode.name());
    comparison.compare_value(
        &expect.answer_status,
        "status",
        &action.status.unwrap_or(test.status).to_string(),
    );
    if let Some(lines) = &expect.tag {
        comparison.compare_lines(lines, &got.x_robots_tag, "X-Robots-Tag is", "nothing");
    }
    if let Some(lines) = &expect.signals {
        comparison.compare_lines(lines, &got.signals, "the signals of this response:", "none");
    }
    comparison.failures
}
